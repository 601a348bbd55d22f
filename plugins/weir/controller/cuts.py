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


def check_cut(connection: Connection, stream_id: int, cut: StreamCut) -> None:
    """Raises InvalidInput saying which segment and why, unless `cut` is a frontier."""
    epochs = [segment.epoch for segment in cut.offsets]
    rows = connection.execute(
        text(
            """SELECT s.segment_id, s.key_low, s.key_high, coalesce(t.tail_offset, s.events)
            FROM segment s LEFT JOIN segment_tail t USING (stream_id, segment_id)
            WHERE s.stream_id = :stream_id AND s.segment_id >= CAST(:oldest AS bigint) << 32
              AND s.segment_id < (CAST(:newest AS bigint) + 1) << 32"""
        ),
        {
            "stream_id": stream_id,
            "oldest": min(epochs, default=0),
            "newest": max(epochs, default=0),
        },
    ).all()
    check_valid(cut, [Segment(r[0], r[1], r[2]) for r in rows], {row[0]: row[3] for row in rows})
