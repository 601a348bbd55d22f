"""What a cut names, to load and check it. Made by `make queries` from sql/queries/controller/cuts.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.model.segment import Segment

SEGMENTS = text(
    """SELECT g.* FROM unnest(CAST(:ids AS bigint[])) AS i (segment_id)
CROSS JOIN LATERAL (
    SELECT o.segment_id, o.key_low, o.key_high FROM segment o
    WHERE o.stream_id = :stream_id AND o.segment_id = i.segment_id OFFSET 0) g"""
)


def segments(connection: Connection, *, ids: Sequence[int], stream_id: int) -> list[Segment]:
    """Return those of some segments that there are. One index probe per segment: given a long list, Postgres may read all segments of a long history."""
    result = connection.execute(SEGMENTS, {"ids": list(ids), "stream_id": stream_id})
    return [Segment._make(row) for row in result]


HISTORY_LEFT = text(
    """SELECT stream_name AS stream, head, next_segment_number,
    (SELECT min(epoch) FROM epoch e WHERE e.stream_id = s.stream_id) AS first_epoch,
    (SELECT format(' (the last truncation was at %s UTC: %s)',
        to_char(t.truncated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), t.reason)
    FROM truncations t WHERE t.stream = s.stream_name
    ORDER BY t.truncated_at DESC LIMIT 1) AS last
FROM stream s WHERE stream_id = :stream_id"""
)


class HistoryLeft(NamedTuple):
    """A row of `history_left`."""

    stream: str
    head: dict[str, int | str]
    next_segment_number: int
    first_epoch: int | None
    last: str | None


def history_left(connection: Connection, *, stream_id: int) -> HistoryLeft:
    """Return what is left of a stream's metadata, and the last truncation of it, if any, as words."""
    result = connection.execute(HISTORY_LEFT, {"stream_id": stream_id})
    row = result.one()
    return HistoryLeft._make(row)


AROUND = text(
    """WITH listed AS MATERIALIZED (
    SELECT g.*, coalesce(t.tail_offset, g.events) AS end_offset
    FROM unnest(CAST(:ids AS bigint[])) AS u (segment_id)
    CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
        SELECT * FROM segment o
        WHERE o.stream_id = :stream_id AND o.segment_id = u.segment_id OFFSET 0) g
    LEFT JOIN segment_tail t ON t.stream_id = g.stream_id AND t.segment_id = g.segment_id
)
SELECT segment_id, key_low, key_high, end_offset FROM listed
UNION ALL
SELECT g.segment_id, g.key_low, g.key_high, NULL
FROM (SELECT min(sealed_epoch) AS oldest, max(creation_epoch) AS newest FROM listed) e
CROSS JOIN LATERAL (
    SELECT * FROM segment o
    WHERE o.stream_id = :stream_id AND o.segment_id >= first_segment_id(e.oldest)
    AND o.segment_id < first_segment_id(e.newest + 1) OFFSET 0) g"""
)


class Around(NamedTuple):
    """A row of `around`."""

    segment_id: int
    key_low: float
    key_high: float
    end_offset: int | None


def around(connection: Connection, *, ids: Sequence[int], stream_id: int) -> list[Around]:
    """Return the segments of a cut with their ends, and the segments that it might leave out. A segment between two segments of the cut comes after the older one, so it was created when that one was sealed, or later. For a cut of active segments there are none, however long ago one of them was created."""
    result = connection.execute(AROUND, {"ids": list(ids), "stream_id": stream_id})
    return [Around._make(row) for row in result]
