"""What the metadata says of a stream's past. Made by `make queries` from sql/annex/back_test/queries/recorded.sql."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

PAST_STREAM = text(
    """SELECT s.stream_id, s.sealed_clock, now_clock() AS now,
    (SELECT min(created_at) FROM epoch e WHERE e.stream_id = s.stream_id) AS known,
    coalesce(time_clock(CAST(:since AS timestamptz)), 0) AS since
FROM stream s WHERE s.stream_name = :stream AND s.state <> 'deleted'"""
)


class PastStream(NamedTuple):
    """A row of `past_stream`."""

    stream_id: int
    sealed_clock: int | None
    now: int
    known: int
    since: int


def past_stream(
    connection: Connection, *, since: datetime | None, stream: str
) -> PastStream | None:
    """Return a stream: when it was sealed, the clock of now, since when it is known, and `since` as a clock."""
    result = connection.execute(PAST_STREAM, {"since": since, "stream": stream})
    row = result.one_or_none()
    return None if row is None else PastStream._make(row)


PAST_EPOCHS = text(
    """SELECT epoch, created_at AS clock, cause FROM epoch
WHERE stream_id = :id AND created_at >= :since ORDER BY epoch LIMIT :most"""
)


class RecordedEpoch(NamedTuple):
    """A row of `past_epochs`."""

    epoch: int
    clock: int
    cause: str


def past_epochs(connection: Connection, *, id: int, since: int, most: int) -> list[RecordedEpoch]:
    """Return when epochs began, and by which operation."""
    result = connection.execute(PAST_EPOCHS, {"id": id, "since": since, "most": most})
    return [RecordedEpoch._make(row) for row in result]


PAST_SEGMENTS = text(
    """SELECT g.segment_id, g.key_low, g.key_high, coalesce(c.created_at, :known) AS begin,
    g.sealed_clock AS ends
FROM segment g LEFT JOIN epoch c ON c.stream_id = g.stream_id AND c.epoch = g.creation_epoch
WHERE g.stream_id = :id AND (g.sealed_clock IS NULL OR g.sealed_clock > :since)
ORDER BY g.segment_id LIMIT :most"""
)


class RecordedSegment(NamedTuple):
    """A row of `past_segments`."""

    segment_id: int
    key_low: float
    key_high: float
    begin: int
    ends: int | None


def past_segments(
    connection: Connection, *, known: int, id: int, since: int, most: int
) -> list[RecordedSegment]:
    """Return segments from when to when they were there. One whose epoch is pruned is as old as the history."""
    result = connection.execute(
        PAST_SEGMENTS, {"known": known, "id": id, "since": since, "most": most}
    )
    return [RecordedSegment._make(row) for row in result]


PAST_COMMITS = text(
    """SELECT segment_id, clock, sum(events)::bigint AS events, sum(bytes)::bigint AS bytes
FROM commits_between(:id, CAST(:since AS bigint) + 1, 9223372036854775807)
GROUP BY segment_id, clock ORDER BY segment_id, clock LIMIT :most"""
)


class PastCommits(NamedTuple):
    """A row of `past_commits`."""

    segment_id: int
    clock: int
    events: int
    bytes: int


def past_commits(connection: Connection, *, id: int, since: int, most: int) -> list[PastCommits]:
    """Return the commits of each segment."""
    result = connection.execute(PAST_COMMITS, {"id": id, "since": since, "most": most})
    return [PastCommits._make(row) for row in result]
