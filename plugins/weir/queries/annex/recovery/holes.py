"""Holes of segments. Made by `make queries` from sql/annex/recovery/queries/holes.sql."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

ADD_HOLES = text(
    """SELECT add_holes(:stream_id, CAST(:segments AS bigint[]), CAST(:chunks AS bigint[]),
    CAST(:offsets AS int4multirange[]))"""
)


def add_holes(
    connection: Connection,
    *,
    stream_id: int,
    segments: Sequence[int],
    chunks: Sequence[int],
    offsets: Sequence[Any],
) -> int:
    """Record holes, as multiranges in chunks of segments. Return how many of them were none before."""
    result = connection.execute(
        ADD_HOLES,
        {
            "stream_id": stream_id,
            "segments": list(segments),
            "chunks": list(chunks),
            "offsets": list(offsets),
        },
    )
    value: int = result.scalar_one()
    return value
