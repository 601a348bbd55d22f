"""What the metadata says of a stream's past: epochs, segments, commits and head, in one snapshot.

The number of statements does not depend on the length of the history.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from weir.controller.locks import no_such_stream
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.history.scene import HeadPart, Mark, SegmentDrawn, SegmentPanel
from weir.history.slices import slices_of, width_of_bin
from weir.history.time_axis import say_time
from weir.model.key_space import KeyRange, even_split
from weir.model.names import StreamName
from weir.model.segment import Segment
from weir.model.segment_rates import Commit
from weir.model.split_points import HotSegment

SAMPLED_RANGES = 16  # of each of which the files give a sample of its own
MOST_ROWS = 2_000_000  # of epochs, of segments, and of commits in segments, that are read

_STREAM = text(
    """SELECT s.stream_id, s.sealed_clock,
        now_clock() AS now,
        (SELECT min(created_at) FROM epoch e WHERE e.stream_id = s.stream_id) AS known,
        CASE WHEN CAST(:since AS timestamptz) IS NULL THEN 0
             ELSE time_clock(CAST(:since AS timestamptz)) END AS since
    FROM stream s WHERE s.stream_name = :stream AND s.state <> 'deleted'"""
)
_EPOCHS = text(
    """SELECT epoch, reference_epoch, created_at, cause, reason FROM epoch
    WHERE stream_id = :id AND created_at >= :since ORDER BY epoch LIMIT :most"""
)
# A segment whose epoch is pruned is as old as the history.
_SEGMENTS = text(
    """SELECT g.segment_id, g.key_low, g.key_high, c.created_at AS created,
        g.sealed_clock AS sealed, coalesce(g.events, t.tail_offset) AS events,
        coalesce(g.bytes, t.tail_bytes) AS bytes
    FROM segment g
    LEFT JOIN segment_tail t USING (stream_id, segment_id)
    LEFT JOIN epoch c ON c.stream_id = g.stream_id AND c.epoch = g.creation_epoch
    WHERE g.stream_id = :id AND (g.sealed_clock IS NULL OR g.sealed_clock > :since)
    ORDER BY g.segment_id LIMIT :most"""
)
# The commits of each segment: those within `width` microseconds as one.
_COMMITS = text(
    """SELECT segment_id, max(clock) AS clock, sum(events) AS events, sum(bytes) AS bytes
    FROM commits_between(:id, :since + 1, 9223372036854775807)
    GROUP BY segment_id, clock / :width ORDER BY segment_id, clock LIMIT :most"""
)
# When the head's offset of each segment was reached.
_HEAD = text(
    """SELECT e.segment_id, e.event_offset, (
        SELECT i.clock FROM commit_at(:id, e.segment_id, e.event_offset - 1) i) AS clock
    FROM stream s CROSS JOIN LATERAL cut_entries(s.head) e WHERE s.stream_id = :id"""
)


class RecordedEpoch(NamedTuple):
    """An epoch: when it began, by which operation and why."""

    epoch: int
    reference_epoch: int
    clock: int
    cause: str
    reason: str


class RecordedSegment(NamedTuple):
    """A segment, from `begin` to `end` (None while it is active), and what it got in all."""

    segment: Segment
    begin: int
    end: int | None
    events: int
    bytes: int


@dataclass(frozen=True)
class Recorded:
    """The past of a stream from `begin` to `end`; times are in microseconds since 1970.

    `commits`: of each segment, by id, by clock; in the unit that was asked for.
    """

    stream_id: int
    begin: int
    end: int
    unit: str
    epochs: Sequence[RecordedEpoch]
    segments: Sequence[RecordedSegment]
    commits: Mapping[int, Sequence[Commit]]
    head: Sequence[HeadPart]

    def panel(self, heading: str) -> SegmentPanel:
        """Return the segments as they were, for a picture."""
        width = width_of_bin(self.begin, self.end)
        segments = [
            SegmentDrawn(
                one.segment.name, one.segment.key_low, one.segment.key_high, one.begin, one.end,
                one.bytes if self.unit == "bytes" else one.events,
                slices_of(self.commits.get(one.segment.segment_id, ()), self.begin, width),
            )
            for one in self.segments
            if one.end is None or one.end > self.begin
        ]  # fmt: skip
        marks = [
            Mark(
                one.clock,
                one.cause if one.cause in ("roll", "policy") else "scale",
                f"epoch {one.epoch}",
            )
            for one in self.epochs
            if one.cause != "create" and one.clock >= self.begin
        ]
        return SegmentPanel(heading, segments, marks, self.head)

    def sampled_ranges(self) -> list[HotSegment]:
        """Return what to ask of the files to learn where all events since `begin` lie: ranges that
        tile the key space.
        """
        return [
            HotSegment(self.stream_id, Segment(i, *keys), 2, 1.0, 1, self.unit, self.begin)
            for i, keys in enumerate(even_split(SAMPLED_RANGES))
        ]


def recorded(
    database: Database,
    stream: StreamName,
    *,
    unit: str = "events",
    since: datetime | None = None,
    exact: bool = False,
) -> Recorded:
    """Read the past of a stream in one snapshot, by five statements.

    `unit`: events or bytes. `since`: where to begin (None: at its creation). `exact`: each commit
    by itself, otherwise as many as a picture shows. Raises NotFound for an unknown stream, and
    InvalidInput if there are more than `MOST_ROWS` of something, or if `since` is in the future.
    """
    return database.snapshot(lambda c: _read(c, stream, unit, since, exact))


def _read(
    connection: Connection, stream: StreamName, unit: str, since: datetime | None, exact: bool
) -> Recorded:
    row = connection.execute(_STREAM, {"stream": str(stream), "since": since}).one_or_none()
    if row is None:
        raise no_such_stream(stream)
    begin = max(row.since, row.known)
    end = row.now if row.sealed_clock is None else row.sealed_clock
    if begin >= end:
        raise InvalidInput(
            "time_in_future",
            f"the history of {stream} ends at {say_time(end)} UTC, which is not after "
            f"{say_time(begin)} UTC; give an earlier time, or check the clock of the database.",
        )
    width = 1 if exact else width_of_bin(begin, end)
    asked = {"id": row.stream_id, "since": row.since, "most": MOST_ROWS + 1}
    epochs = [RecordedEpoch(*one) for one in connection.execute(_EPOCHS, asked)]
    segments = [
        RecordedSegment(
            Segment(one.segment_id, one.key_low, one.key_high),
            row.known if one.created is None else one.created, one.sealed, one.events, one.bytes,
        )
        for one in connection.execute(_SEGMENTS, asked)
    ]  # fmt: skip
    rows = connection.execute(_COMMITS, asked | {"width": width}).all()
    if max(len(epochs), len(segments), len(rows)) > MOST_ROWS:
        raise InvalidInput(
            "history_too_long",
            f"{stream} has more than {MOST_ROWS:,} epochs, segments, or commits to segments since "
            f"{say_time(begin)} UTC; begin later.",
        )
    begins = {one.segment.segment_id: max(one.begin, begin) for one in segments}
    found = connection.execute(_HEAD, asked).all()
    head = _head([(r.segment_id, r.event_offset, r.clock) for r in found], segments)
    return Recorded(
        row.stream_id, begin, end, unit, epochs, segments, _commits(rows, begins, unit), head
    )


def _commits(rows: Sequence[Any], begins: Mapping[int, int], unit: str) -> dict[int, list[Commit]]:
    """Return the commits of each segment, each with the clock of the one before it."""
    found = {}
    for segment_id, entries in groupby(rows, key=lambda row: int(row.segment_id)):
        since, commits = begins[segment_id], []
        for row in entries:
            amount = row.bytes if unit == "bytes" else row.events
            commits.append(Commit(row.clock, min(since, row.clock), int(amount)))
            since = row.clock
        found[segment_id] = commits
    return found


def _head(
    cut: Sequence[tuple[int, int | None, int | None]], segments: Sequence[RecordedSegment]
) -> list[HeadPart]:
    """Return where the head lies in each part of the key space, by key.

    `cut`: (segment, offset or None if it is future, when that offset was reached). What a future
    segment shares with a present one is passed only up to the present one.
    """
    by_id = {one.segment.segment_id: one for one in segments}
    parts = []
    # Segments that were sealed before the history begins are not known, and not drawn.
    cut = [one for one in cut if one[0] in by_id]
    present = [one for one in cut if one[1] is not None]
    for segment_id, _, clock in present:
        one = by_id[segment_id]
        at = one.begin if clock is None else clock
        parts.append(HeadPart(one.segment.key_low, one.segment.key_high, at))
    taken = [KeyRange(part.key_low, part.key_high) for part in parts]
    for segment_id, offset, _ in cut:
        if offset is None:
            one = by_id[segment_id]
            free = _without(KeyRange(one.segment.key_low, one.segment.key_high), taken)
            parts += [HeadPart(low, high, one.begin) for low, high in free]
            taken += free
    return sorted(parts)


def _without(keys: KeyRange, taken: Sequence[KeyRange]) -> list[KeyRange]:
    """Return what is left of a range without others, which are disjoint."""
    left, low = [], keys.low
    for other in sorted(taken):
        if other.high <= low or other.low >= keys.high:
            continue
        if other.low > low:
            left.append(KeyRange(low, other.low))
        low = max(low, other.high)
    if low < keys.high:
        left.append(KeyRange(low, keys.high))
    return left
