"""Record holes: offsets of a segment whose events were erased (semantics 20)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection

from weir.queries.annex.recovery import holes as sql

CHUNK = 65_536  # offsets in a row of holes


class Chunk(NamedTuple):
    """Holes among 65,536 offsets of a segment, as a multirange."""

    segment_id: int
    number: int
    offsets: str


def chunks_of(segment_id: int, offsets: npt.NDArray[np.int64]) -> Iterator[Chunk]:
    """Yield offsets of a segment, ascending, by chunks."""
    bounds = np.flatnonzero(np.diff(offsets // CHUNK, prepend=-1))
    for first, past in zip(bounds, [*bounds[1:], len(offsets)], strict=True):
        number = int(offsets[first] // CHUNK)
        inside = offsets[first:past] - number * CHUNK
        begins = np.flatnonzero(np.diff(inside, prepend=-2) > 1)
        ends = [*(begins[1:] - 1), len(inside) - 1]
        runs = zip(inside[begins], inside[ends], strict=True)
        ranges = ",".join(f"[{low},{high + 1})" for low, high in runs)
        yield Chunk(segment_id, number, f"{{{ranges}}}")


def add_holes(connection: Connection, stream_id: int, chunks: Sequence[Chunk]) -> int:
    """Record holes of a locked stream. Returns how many of them were none before."""
    return sql.add_holes(
        connection,
        stream_id=stream_id,
        segments=[one.segment_id for one in chunks],
        chunks=[one.number for one in chunks],
        offsets=[one.offsets for one in chunks],
    )
