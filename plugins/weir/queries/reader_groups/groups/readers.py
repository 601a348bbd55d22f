"""Readers of groups. Made by `make queries` from sql/queries/reader_groups/groups/readers.sql."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

OTHER_READER = text(
    """SELECT reader_id, lease_until = 'infinity' AS query, joined_at FROM reader
WHERE group_id = :group_id AND reader_id <> :reader_id
ORDER BY lease_until DESC, reader_id LIMIT 1"""
)


class OtherReader(NamedTuple):
    """A row of `other_reader`."""

    reader_id: str
    query: bool
    joined_at: datetime


def other_reader(connection: Connection, *, group_id: int, reader_id: str) -> OtherReader | None:
    """Return another reader of a group: a streaming query rather than others."""
    result = connection.execute(OTHER_READER, {"group_id": group_id, "reader_id": reader_id})
    row = result.one_or_none()
    return None if row is None else OtherReader._make(row)


RENEW = text(
    """UPDATE reader r SET lease_until = clock_timestamp() + :lease * interval '1 second'
FROM reader_group g WHERE g.name = :group AND r.group_id = g.group_id
  AND r.reader_id = :reader_id AND r.token = :token"""
)


def renew(connection: Connection, *, lease: float, group: str, reader_id: str, token: int) -> int:
    """Renew a reader's lease by `lease` seconds."""
    result = connection.execute(
        RENEW, {"lease": lease, "group": group, "reader_id": reader_id, "token": token}
    )
    return result.rowcount


JOIN = text(
    """WITH counted AS (
    UPDATE reader_group SET next_token = next_token + 1 WHERE group_id = :group_id
)
INSERT INTO reader (group_id, reader_id, token, lease_until, joined_at, label)
SELECT :group_id, :reader_id, :token,
    clock_timestamp() + :lease * interval '1 second', clock_timestamp(), :label
WHERE NOT EXISTS (
    SELECT FROM reader r WHERE r.group_id = :group_id AND r.reader_id <> :reader_id
    AND (r.lease_until = 'infinity' OR :alone
         AND NOT reader_is_gone(r.lease_until, :lease)))
ON CONFLICT (group_id, reader_id) DO UPDATE SET token = excluded.token,
    lease_until = excluded.lease_until, label = excluded.label"""
)


def join(
    connection: Connection,
    *,
    group_id: int,
    reader_id: str,
    token: int,
    lease: float,
    label: str,
    alone: bool,
) -> int:
    """Add a reader to a group, or give it a new token, unless another one is in the way."""
    result = connection.execute(
        JOIN,
        {
            "group_id": group_id,
            "reader_id": reader_id,
            "token": token,
            "lease": lease,
            "label": label,
            "alone": alone,
        },
    )
    return result.rowcount


RENEW_ALONE = text(
    """UPDATE reader r SET lease_until = clock_timestamp() + :lease * interval '1 second'
FROM reader_group g WHERE g.name = :group AND r.group_id = g.group_id
  AND r.reader_id = :reader_id AND r.token = :token
  AND NOT EXISTS (SELECT FROM reader o WHERE o.group_id = r.group_id
                  AND o.reader_id <> r.reader_id
                  AND o.lease_until > clock_timestamp())"""
)


def renew_alone(
    connection: Connection, *, lease: float, group: str, reader_id: str, token: int
) -> None:
    """Renew the lease of a reader, if no other reader of its group is there to take over what it owns."""
    result = connection.execute(
        RENEW_ALONE, {"lease": lease, "group": group, "reader_id": reader_id, "token": token}
    )
    result.close()


LEAVE = text(
    """UPDATE reader SET lease_until = '-infinity'
WHERE group_id = :group_id AND reader_id = :reader_id AND token = :token"""
)


def leave(connection: Connection, *, group_id: int, reader_id: str, token: int) -> None:
    """End the lease of a reader."""
    result = connection.execute(
        LEAVE, {"group_id": group_id, "reader_id": reader_id, "token": token}
    )
    result.close()


READERS_OF = text(
    """SELECT reader_id FROM reader JOIN reader_group USING (group_id) WHERE name = :name"""
)


def readers_of(connection: Connection, *, name: str) -> list[str]:
    """Return the ids of the readers of a group."""
    result = connection.execute(READERS_OF, {"name": name})
    return [row[0] for row in result]


PUT = text(
    """WITH cuts AS (
    SELECT s AS stream_id, group_cut(:group_id, s) AS cut FROM unnest(CAST(:streams AS bigint[])) s
)
INSERT INTO placement AS p (group_id, stream_id, group_name, number, cause, left_at, cut)
SELECT :group_id, c.stream_id, (SELECT name FROM reader_group WHERE group_id = :group_id),
       CASE WHEN l.cause = 'reset' AND l.cause = 'moved' THEN l.number
       ELSE coalesce(l.number, 0) + 1 END, 'reset', group_cut(:group_id, c.stream_id), c.cut
FROM cuts c LEFT JOIN LATERAL (
    SELECT o.number, CASE WHEN NOT EXISTS (
        SELECT FROM delivered_range d WHERE d.group_id = :group_id
        AND d.stream_id = c.stream_id AND d.placement = o.number) AND NOT EXISTS (
            SELECT FROM (SELECT truncated_at FROM truncation
                         WHERE stream_id = c.stream_id ORDER BY number DESC LIMIT 1) t
            WHERE t.truncated_at >= o.placed_at) THEN o.cause END AS cause
    FROM placement o WHERE o.group_id = :group_id AND o.stream_id = c.stream_id
    ORDER BY o.number DESC LIMIT 1) l ON true
ON CONFLICT (group_id, stream_id, number) DO UPDATE SET
    cut = excluded.cut, placed_at = excluded.placed_at"""
)


def put(connection: Connection, *, group_id: int, streams: Sequence[int]) -> None:
    """Record that a group is put behind what a person says is read: no batch read it."""
    result = connection.execute(PUT, {"group_id": group_id, "streams": list(streams)})
    result.close()


PUT_AT = text(
    """UPDATE placement p SET cut = group_cut(:group_id, p.stream_id)
FROM (SELECT stream_id, max(number) AS number FROM placement
      WHERE group_id = :group_id AND stream_id = ANY(:streams) GROUP BY stream_id) l
WHERE p.group_id = :group_id AND p.stream_id = l.stream_id AND p.number = l.number"""
)


def put_at(connection: Connection, *, group_id: int, streams: Sequence[int]) -> None:
    """Record where a group is, in the newest row of what it was put to."""
    result = connection.execute(PUT_AT, {"group_id": group_id, "streams": list(streams)})
    result.close()


FENCE = text(
    """WITH counted AS (
    UPDATE reader_group SET next_token = next_token + 1 WHERE group_id = :group_id
), fenced AS (
    UPDATE reader_batch SET token = :token
    WHERE group_id = :group_id AND reader_id = :reader_id AND state = 'open'
)
UPDATE reader SET lease_until = '-infinity', token = :token
WHERE group_id = :group_id AND reader_id = :reader_id"""
)


def fence(connection: Connection, *, group_id: int, token: int, reader_id: str) -> int:
    """End the lease of a reader and fence its batch, with a new token."""
    result = connection.execute(
        FENCE, {"group_id": group_id, "token": token, "reader_id": reader_id}
    )
    return result.rowcount


ABANDON = text(
    """UPDATE reader_batch SET state = 'abandoned', error = :error,
    ended_at = clock_timestamp()
WHERE group_id = :group_id AND reader_id = :reader_id AND state = 'open'
RETURNING batch_id, bounds"""
)


class Abandoned(NamedTuple):
    """A row of `abandon`."""

    batch_id: int
    bounds: list[dict[str, int]]


def abandon(
    connection: Connection, *, error: str, group_id: int, reader_id: str
) -> Abandoned | None:
    """Abandon the open batch of a reader."""
    result = connection.execute(
        ABANDON, {"error": error, "group_id": group_id, "reader_id": reader_id}
    )
    row = result.one_or_none()
    return None if row is None else Abandoned._make(row)


FREE = text(
    """UPDATE reader_group_segment SET state = 'unassigned', reader_id = NULL
WHERE group_id = :group_id AND reader_id = :reader_id"""
)


def free(connection: Connection, *, group_id: int, reader_id: str) -> None:
    """Free the segments of a reader."""
    result = connection.execute(FREE, {"group_id": group_id, "reader_id": reader_id})
    result.close()


SEGMENTS_OF = text(
    """SELECT stream_id, s.stream_name AS stream, g.segment_id, key_low, key_high
FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]))
    AS b (stream_id, segment_id)
JOIN segment g USING (stream_id, segment_id) JOIN stream s USING (stream_id)"""
)


class SegmentOf(NamedTuple):
    """A row of `segments_of`."""

    stream_id: int
    stream: str
    segment_id: int
    key_low: float
    key_high: float


def segments_of(
    connection: Connection, *, streams: Sequence[int], segments: Sequence[int]
) -> list[SegmentOf]:
    """Return segments with the names of their streams."""
    result = connection.execute(SEGMENTS_OF, {"streams": list(streams), "segments": list(segments)})
    return [SegmentOf._make(row) for row in result]


GROUPS_EXPIRED = text(
    """SELECT DISTINCT g.name FROM readers_to_free(:lease) r JOIN reader_group g USING (group_id)"""
)


def groups_expired(connection: Connection, *, lease: float) -> list[str]:
    """Return the groups that have readers to free."""
    result = connection.execute(GROUPS_EXPIRED, {"lease": lease})
    return [row[0] for row in result]


RELEASE_EXPIRED = text(
    """WITH gone AS (
    SELECT reader_id FROM reader r WHERE group_id = :group_id
    AND reader_is_gone(r.lease_until, :lease)
    AND reader_id IS DISTINCT FROM CAST(:alive AS text)
    AND reader_id = coalesce(CAST(:only AS text), reader_id)
), freed AS (
    UPDATE reader_group_segment p SET state = 'unassigned', reader_id = NULL
    WHERE group_id = :group_id AND reader_id IN (SELECT reader_id FROM gone)
      AND (stream_id, segment_id) NOT IN (
          SELECT stream_id, segment_id FROM held_segments(:group_id))
)
DELETE FROM reader r WHERE group_id = :group_id
  AND reader_id IN (SELECT reader_id FROM gone)
  AND NOT EXISTS (SELECT FROM reader_batch b WHERE b.group_id = :group_id
                  AND b.state = 'open' AND b.reader_id = r.reader_id)
RETURNING reader_id"""
)


def release_expired(
    connection: Connection, *, group_id: int, lease: float, alive: str | None, only: str | None
) -> list[str]:
    """Free the segments of readers whose lease has expired, and return the readers that are removed: those without an open batch, which another one takes over."""
    result = connection.execute(
        RELEASE_EXPIRED, {"group_id": group_id, "lease": lease, "alive": alive, "only": only}
    )
    return [row[0] for row in result]
