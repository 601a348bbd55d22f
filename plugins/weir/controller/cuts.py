"""Stream cuts as the database knows them: loaded with their key ranges, and checked."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, text

from weir.segment import Segment, parse_segment_name
from weir.stream_cut import StreamCut, check_valid


def load_cuts(connection: Connection, stream_id: int, *cuts: Mapping[str, Any]) -> list[StreamCut]:
    """Cuts in their JSON form as values, one statement for all. Raises InvalidInput."""
    ids = {parse_segment_name(name) for cut in cuts for name in cut}
    rows = connection.execute(
        text(
            """SELECT segment_id, key_low, key_high FROM segment
            WHERE stream_id = :stream_id AND segment_id = ANY(:ids)"""
        ),
        {"stream_id": stream_id, "ids": sorted(ids)},
    )
    segments = {row.segment_id: Segment(*row) for row in rows}
    return [StreamCut.from_json(cut, segments) for cut in cuts]


# The segments of a cut with their ends, and those that it might have left out: what lies between
# two segments of a cut comes after the older, so it was created when that was sealed, or later. Of
# a cut of active segments that is nothing, however long ago one of them was created.
AROUND = """
    WITH listed AS MATERIALIZED (
        SELECT g.*, coalesce(t.tail_offset, g.events) AS past
        FROM unnest(CAST(:ids AS bigint[])) AS u (segment_id)
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM segment o
            WHERE o.stream_id = :s AND o.segment_id = u.segment_id OFFSET 0) g
        LEFT JOIN segment_tail t ON t.stream_id = g.stream_id AND t.segment_id = g.segment_id
    )
    SELECT segment_id, key_low, key_high, past FROM listed
    UNION ALL
    SELECT g.segment_id, g.key_low, g.key_high, NULL
    FROM (SELECT min(sealed_epoch) AS oldest, max(creation_epoch) AS newest FROM listed) e
    CROSS JOIN LATERAL (
        SELECT * FROM segment o WHERE o.stream_id = :s AND o.segment_id >= e.oldest::bigint << 32
        AND o.segment_id < (e.newest + 1)::bigint << 32 OFFSET 0) g"""


def check_cut(connection: Connection, stream_id: int, cut: StreamCut) -> None:
    """Raises InvalidInput saying which segment and why, unless `cut` is a frontier."""
    rows = connection.execute(
        text(AROUND), {"s": stream_id, "ids": [segment.segment_id for segment in cut.offsets]}
    ).all()
    ends = {row[0]: row[3] for row in rows if row[3] is not None}
    check_valid(cut, [Segment(*row[:3]) for row in rows], ends)
