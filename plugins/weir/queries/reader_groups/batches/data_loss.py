"""Events that were truncated before groups read them. Made by `make queries` from sql/queries/reader_groups/batches/data_loss.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.queries import Cut

MOVED_HEADS = text(
    """SELECT gs.stream_id, s.stream_name AS stream, s.head,
          group_cut(gs.group_id, gs.stream_id) AS cut, gs.end_cut, s.state
FROM reader_group_stream gs JOIN stream s USING (stream_id)
WHERE gs.group_id = :group_id AND gs.head_seen IS DISTINCT FROM s.head AND NOT EXISTS (
    SELECT FROM held_segments(:group_id) h WHERE h.stream_id = gs.stream_id)"""
)


class MovedHead(NamedTuple):
    """A row of `moved_heads`."""

    stream_id: int
    stream: str
    head: Cut
    cut: Cut
    end_cut: Cut | None
    state: str


def moved_heads(connection: Connection, *, group_id: int) -> list[MovedHead]:
    """Return the streams of a group whose head is not the one that its positions were compared with, and that no batch reads."""
    result = connection.execute(MOVED_HEADS, {"group_id": group_id})
    return [MovedHead._make(row) for row in result]


SKIP = text(
    """WITH noted AS (
    UPDATE reader_group SET moved_at = clock_timestamp() WHERE group_id = :group_id
), back AS (
    INSERT INTO retention_queue (stream_id, due_at)
    SELECT stream_id, clock_timestamp()
    FROM reader_group JOIN reader_group_stream USING (group_id) JOIN stream USING (stream_id)
    WHERE group_id = :group_id AND subscriber AND stream.state = 'active'
      AND moved_at + time_out * interval '1 second' < clock_timestamp()
), cuts AS (
    SELECT CAST(:stream_id AS bigint) AS stream_id, CAST(:cut AS jsonb) AS cut
), counted AS (
    UPDATE reader_group_stream SET lost_events = lost_events + :lost,
        passed_clock = least(passed_clock, clock_between(
            :stream_id, group_cut(:group_id, :stream_id), CAST(:cut AS jsonb)))
    WHERE group_id = :group_id AND stream_id = :stream_id
), placed AS (
    INSERT INTO placement AS p (group_id, stream_id, group_name, number, cause, left_at, cut)
SELECT :group_id, c.stream_id, (SELECT name FROM reader_group WHERE group_id = :group_id),
       CASE WHEN l.cause = 'skipped' AND l.cause = 'moved' THEN l.number
       ELSE coalesce(l.number, 0) + 1 END, 'skipped', group_cut(:group_id, c.stream_id), c.cut
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
    cut = excluded.cut, placed_at = excluded.placed_at
), passed AS (
    DELETE FROM reader_group_segment WHERE group_id = :group_id AND stream_id = :stream_id
    AND segment_id NOT IN (SELECT segment_id FROM cut_entries(CAST(:cut AS jsonb)))
)
INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state, next_offset)
SELECT :group_id, c.stream_id, e.segment_id,
       CASE WHEN e.event_offset IS NULL THEN 'future' ELSE 'unassigned' END, e.event_offset
FROM cuts c CROSS JOIN LATERAL cut_entries(c.cut) e
ON CONFLICT (group_id, stream_id, segment_id) DO UPDATE SET
    state = CASE WHEN excluded.state = 'unassigned'
                 AND reader_group_segment.state = 'assigned'
            THEN 'assigned' ELSE excluded.state END,
    next_offset = excluded.next_offset"""
)


def skip(connection: Connection, *, group_id: int, stream_id: int, cut: str, lost: int) -> None:
    """Move a group to a cut of a stream, and count the events that it loses by that."""
    result = connection.execute(
        SKIP, {"group_id": group_id, "stream_id": stream_id, "cut": cut, "lost": lost}
    )
    result.close()


SEEN = text(
    """UPDATE reader_group_stream gs SET head_seen = CAST(h.head AS jsonb)
FROM unnest(CAST(:streams AS bigint[]), CAST(:heads AS text[])) AS h (stream_id, head)
WHERE gs.group_id = :group_id AND gs.stream_id = h.stream_id"""
)


def seen(
    connection: Connection, *, streams: Sequence[int], heads: Sequence[str], group_id: int
) -> None:
    """Record the heads that the positions of a group were compared with."""
    result = connection.execute(
        SEEN, {"streams": list(streams), "heads": list(heads), "group_id": group_id}
    )
    result.close()


UNREAD_LOST = text("""SELECT unread_events_lost(:stream_id, CAST(:cut AS jsonb), :subscribers)""")


def unread_lost(
    connection: Connection, *, stream_id: int, cut: str, subscribers: bool
) -> dict[str, int]:
    """Return by group how many events before a cut it has not read."""
    result = connection.execute(
        UNREAD_LOST, {"stream_id": stream_id, "cut": cut, "subscribers": subscribers}
    )
    value: dict[str, int] = result.scalar_one()
    return value
