"""Groups that move to other cuts. Made by `make queries` from sql/queries/reader_groups/groups/reset.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.queries import Cut

PLACES = text(
    """SELECT stream_id, start_cut, group_cut(group_id, stream_id) AS cut
FROM reader_group_stream WHERE group_id = :group_id"""
)


class Place(NamedTuple):
    """A row of `places`."""

    stream_id: int
    start_cut: Cut
    cut: Cut


def places(connection: Connection, *, group_id: int) -> list[Place]:
    """Return where a group began in its streams, and where it is."""
    result = connection.execute(PLACES, {"group_id": group_id})
    return [Place._make(row) for row in result]


OUTPUTS = text("""SELECT DISTINCT output FROM parquet_output WHERE group_name = :group""")


def outputs(connection: Connection, *, group: str) -> list[str]:
    """Return the Parquet outputs that batches of a group have written."""
    result = connection.execute(OUTPUTS, {"group": group})
    return [row[0] for row in result]


UNREAD = text("""SELECT stream, unread_events FROM lag WHERE reader_group = :group""")


class Unread(NamedTuple):
    """A row of `unread`."""

    stream: str
    unread_events: int


def unread(connection: Connection, *, group: str) -> list[Unread]:
    """Return how many events of each stream a group has not read."""
    result = connection.execute(UNREAD, {"group": group})
    return [Unread._make(row) for row in result]


LEAVE = text(
    """WITH cuts AS (
    SELECT * FROM jsonb_to_recordset(CAST(:cuts AS jsonb))
        AS c (stream_id bigint, cut jsonb)
), placed AS (
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
    cut = excluded.cut, placed_at = excluded.placed_at
), passed AS (  -- of the positions from before this statement
    UPDATE reader_group_stream gs SET passed_clock = passed_before(gs, c.cut)
    FROM cuts c WHERE gs.group_id = :group_id AND gs.stream_id = c.stream_id
), positions AS (
    DELETE FROM reader_group_segment WHERE group_id = :group_id AND stream_id = ANY(:ids)
), freed AS (
    UPDATE reader_group_segment SET state = 'unassigned', reader_id = NULL
    WHERE group_id = :group_id AND reader_id IS NOT NULL AND NOT stream_id = ANY(:ids)
), abandoned AS (
    UPDATE reader_batch SET state = 'abandoned', ended_at = clock_timestamp()
    WHERE group_id = :group_id AND state = 'open'
), cancelled AS (  -- they would release what is now read again
    UPDATE checkpoint SET state = 'cancelled', ended_at = clock_timestamp(),
        expires_at = NULL
    WHERE group_id = :group_id AND state = 'waiting'
)
UPDATE reader_group SET generation = generation + 1, moved_at = clock_timestamp()
WHERE group_id = :group_id"""
)


def leave(connection: Connection, *, cuts: str, group_id: int, ids: Sequence[int]) -> None:
    """Take the positions of a group away, free its segments and abandon its batches."""
    result = connection.execute(LEAVE, {"cuts": cuts, "group_id": group_id, "ids": list(ids)})
    result.close()


REMOVE_READERS = text("""DELETE FROM reader WHERE group_id = :group_id""")


def remove_readers(connection: Connection, *, group_id: int) -> None:
    """Remove all readers of a group."""
    result = connection.execute(REMOVE_READERS, {"group_id": group_id})
    result.close()


PLACE = text(
    """WITH cuts AS (
    SELECT * FROM jsonb_to_recordset(CAST(:cuts AS jsonb))
        AS c (stream_id bigint, cut jsonb, released jsonb)
), released AS (
    UPDATE reader_group_stream gs SET head_seen = NULL, newest_read = NULL, hole = NULL,
        released_cut = CASE WHEN gs.released_cut IS NOT NULL THEN c.released END,
        released_at = CASE WHEN gs.released_cut IS NOT NULL THEN clock_timestamp() END
    FROM cuts c WHERE gs.group_id = :group_id AND gs.stream_id = c.stream_id
)
INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state, next_offset)
SELECT :group_id, c.stream_id, e.segment_id,
       CASE WHEN e.event_offset IS NULL THEN 'future' ELSE 'unassigned' END, e.event_offset
FROM cuts c CROSS JOIN LATERAL cut_entries(c.cut) e"""
)


def place(connection: Connection, *, cuts: str, group_id: int) -> None:
    """Add the positions of a group at other cuts, and what it has released."""
    result = connection.execute(PLACE, {"cuts": cuts, "group_id": group_id})
    result.close()


RELEASED = text(
    """SELECT stream_id, released_cut FROM reader_group_stream
WHERE group_id = :group_id AND released_cut IS NOT NULL AND stream_id = ANY(:ids)"""
)


class Released(NamedTuple):
    """A row of `released`."""

    stream_id: int
    released_cut: Cut


def released(connection: Connection, *, group_id: int, ids: Sequence[int]) -> list[Released]:
    """Return what a group has released of streams."""
    result = connection.execute(RELEASED, {"group_id": group_id, "ids": list(ids)})
    return [Released._make(row) for row in result]
