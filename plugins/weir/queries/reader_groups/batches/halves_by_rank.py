"""Batches that are halved by rank. Made by `make queries` from sql/queries/reader_groups/batches/halves_by_rank.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

SEGMENTS_OF = text(
    """SELECT g.stream_id, g.segment_id, g.key_low, g.key_high
FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]))
    AS b (stream_id, segment_id)
JOIN segment g USING (stream_id, segment_id)"""
)


class SegmentOf(NamedTuple):
    """A row of `segments_of`."""

    stream_id: int
    segment_id: int
    key_low: float
    key_high: float


def segments_of(
    connection: Connection, *, streams: Sequence[int], segments: Sequence[int]
) -> list[SegmentOf]:
    """Return segments with their keys."""
    result = connection.execute(SEGMENTS_OF, {"streams": list(streams), "segments": list(segments)})
    return [SegmentOf._make(row) for row in result]
