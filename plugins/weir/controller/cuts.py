"""Stream cuts as the database has them: loaded with their key ranges, and checked."""

import json
from collections.abc import Iterable, Mapping, Set
from typing import Any

from sqlalchemy import Connection, text

from weir.errors import Truncated
from weir.model.segment import Segment, parse_segment_name, segment_name
from weir.model.stream_cut import StreamCut, check_valid, read_entries


def load_cuts(connection: Connection, stream_id: int, *cuts: Mapping[str, Any]) -> list[StreamCut]:
    """Return cuts in their JSON form as values, with one statement for all.

    Raises InvalidInput for what is no cut, and for a segment that does not exist, and Truncated for
    one whose metadata was pruned.
    """
    wanted = {segment_id for cut in cuts for segment_id in read_entries(cut)}
    segments = segments_named(connection, stream_id, map(segment_name, wanted))
    if unknown := wanted - segments.keys():
        check_not_pruned(connection, stream_id, unknown)
    return [StreamCut.from_json(cut, segments) for cut in cuts]


# One index probe per segment: given a long list, Postgres may read all segments of a long history.
_BY_ID = """SELECT g.* FROM unnest(CAST(:ids AS bigint[])) AS i (segment_id)
    CROSS JOIN LATERAL (
        SELECT o.segment_id, o.key_low, o.key_high FROM segment o
        WHERE o.stream_id = :s AND o.segment_id = i.segment_id OFFSET 0) g"""


def segments_named(
    connection: Connection, stream_id: int, names: Iterable[str]
) -> dict[int, Segment]:
    """Return the segments with these names, as far as they exist. Raises InvalidInput for a bad
    name.
    """
    ids = sorted({parse_segment_name(name) for name in names})
    rows = connection.execute(text(_BY_ID), {"s": stream_id, "ids": ids})
    return {row.segment_id: Segment(*row) for row in rows}


def check_not_pruned(connection: Connection, stream_id: int, unknown: Set[int]) -> None:
    """Raise Truncated if one of the unknown segments existed and its metadata was pruned.

    A segment is pruned with the epoch that created it. Its name alone shows that it existed: its
    number was given out, and its epoch is older than those that are left.
    """
    row = connection.execute(
        text(
            """SELECT stream_name AS stream, head, next_segment_number,
                (SELECT min(epoch) FROM epoch e WHERE e.stream_id = s.stream_id) AS first_epoch,
                (SELECT format(' (the last truncation was at %s UTC: %s)',
                    to_char(t.truncated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), t.reason)
                FROM truncations t WHERE t.stream = s.stream_name
                ORDER BY t.truncated_at DESC LIMIT 1) AS last
            FROM stream s WHERE stream_id = :s"""
        ),
        {"s": stream_id},
    ).one()
    for segment in sorted(Segment(segment_id, 0.0, 1.0) for segment_id in unknown):
        if segment.number < row.next_segment_number and segment.epoch < (row.first_epoch or 0):
            raise Truncated(
                "metadata_pruned",
                f"segment {segment.name} of stream {row.stream} was truncated and its metadata "
                f"was pruned, so the events lost after this cut can't be counted{row.last or ''}; "
                f"start at the head, {json.dumps(row.head)}, or later.",
            )


# The segments of a cut with their ends, and the segments that it might leave out. A segment between
# two segments of the cut comes after the older one, so it was created when that one was sealed, or
# later. For a cut of active segments there are none, however long ago one of them was created.
AROUND = """
    WITH listed AS MATERIALIZED (
        SELECT g.*, coalesce(t.tail_offset, g.events) AS end_offset
        FROM unnest(CAST(:ids AS bigint[])) AS u (segment_id)
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM segment o
            WHERE o.stream_id = :s AND o.segment_id = u.segment_id OFFSET 0) g
        LEFT JOIN segment_tail t ON t.stream_id = g.stream_id AND t.segment_id = g.segment_id
    )
    SELECT segment_id, key_low, key_high, end_offset FROM listed
    UNION ALL
    SELECT g.segment_id, g.key_low, g.key_high, NULL
    FROM (SELECT min(sealed_epoch) AS oldest, max(creation_epoch) AS newest FROM listed) e
    CROSS JOIN LATERAL (
        SELECT * FROM segment o
        WHERE o.stream_id = :s AND o.segment_id >= first_segment_id(e.oldest)
        AND o.segment_id < first_segment_id(e.newest + 1) OFFSET 0) g"""


def check_cut(connection: Connection, stream_id: int, cut: StreamCut) -> None:
    """Check that a cut is valid (semantics 9.3). Raises InvalidInput with the segment and the
    reason.
    """
    rows = connection.execute(
        text(AROUND), {"s": stream_id, "ids": [segment.segment_id for segment in cut.offsets]}
    ).all()
    ends = {row[0]: row[3] for row in rows if row[3] is not None}
    check_valid(cut, [Segment(*row[:3]) for row in rows], ends)
