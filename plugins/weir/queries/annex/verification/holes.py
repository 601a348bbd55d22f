"""Holes that are declared. Made by `make queries` from sql/annex/verification/queries/holes.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

DECLARED = text(
    """SELECT f.i, greatest(h.chunk * 65536 + lower(m), f.first) AS first,
    least(h.chunk * 65536 + upper(m), f.past) AS past
FROM unnest(CAST(:segments AS bigint[]), CAST(:firsts AS bigint[]), CAST(:ends AS bigint[]))
    WITH ORDINALITY AS f (segment_id, first, past, i)
JOIN hole h ON h.stream_id = :stream_id AND h.segment_id = f.segment_id
    AND h.chunk BETWEEN f.first / 65536 AND (f.past - 1) / 65536
CROSS JOIN LATERAL unnest(h.offsets) m
WHERE h.chunk * 65536 + lower(m) < f.past AND h.chunk * 65536 + upper(m) > f.first
ORDER BY f.i, first"""
)


class Declared(NamedTuple):
    """A row of `declared`."""

    i: int
    first: int
    past: int


def declared(
    connection: Connection,
    *,
    segments: Sequence[int],
    firsts: Sequence[int],
    ends: Sequence[int],
    stream_id: int,
) -> list[Declared]:
    """Return the holes that are declared in some files, each with the number of the file, from 1 on."""
    result = connection.execute(
        DECLARED,
        {
            "segments": list(segments),
            "firsts": list(firsts),
            "ends": list(ends),
            "stream_id": stream_id,
        },
    )
    return [Declared._make(row) for row in result]
