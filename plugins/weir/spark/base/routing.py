"""Route rows to segments without a shuffle, with native Spark expressions only (semantics 1.6).

The routing position of an event is `(xxhash64(key) >>> 11) / 2^53`: XXH64 of the key in UTF-8 with
seed 42, so that every language computes the same.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from weir.model.key_space import STEPS
from weir.model.segment import Segment

_BISECTED = 128  # with at most so many segments, a bisection is as fast as a look-up
_MOST_CELL_BITS = 17


def routing_steps(key: Column) -> Column:
    """Return the routing position of a key (semantics 1.6) times 2^53, as an exact integer."""
    return F.shiftrightunsigned(F.xxhash64(key), 11)


def segment_ordinal(steps: str, segments: Sequence[Segment]) -> Column:
    """Return the index among `segments` (sorted by range, tiling [0, 1)) into whose range `steps`
    falls.

    It is a bisection, given to Spark as one text because a call per node would take longer than it
    saves. If there are many segments, the key space is first divided into equal cells; a look-up by
    cell leaves two segments to decide between.
    """
    # This is exactly position < key_low, although the right side may lie between two steps.
    bounds = [math.ceil(segment.key_low * STEPS) for segment in segments]
    if len(segments) > _BISECTED and (cells := _cells(bounds)) is not None:
        shift, first, bound = cells
        cell = F.shiftright(steps, shift).cast("int")
        return constant_array(first)[cell].cast("int") + (
            F.col(steps) >= constant_array(bound)[cell]
        ).cast("int")

    def bisect(low: int, high: int) -> str:
        if high - low == 1:
            return str(low)
        middle = (low + high) // 2
        return f"if({steps} < {bounds[middle]}L, {bisect(low, middle)}, {bisect(middle, high)})"

    return F.expr(bisect(0, len(segments)))


def _cells(bounds: Sequence[int]) -> tuple[int, list[int], list[int]] | None:
    """Divide the key space into equal cells with at most one bound in each.

    Returns the number of bits by which steps are shifted to get their cell, and for each cell the
    index of the segment at its first step and the next bound. Returns None if segments are so
    narrow that there would be too many cells.
    """
    for bits in range((2 * len(bounds)).bit_length(), _MOST_CELL_BITS + 1):
        shift = 53 - bits
        first, bound = [], []
        for cell in range(1 << bits):
            ordinal = bisect_right(bounds, cell << shift) - 1
            first.append(ordinal)
            bound.append(bounds[ordinal + 1] if ordinal + 1 < len(bounds) else STEPS)
            if ordinal + 2 < len(bounds) and bounds[ordinal + 2] < (cell + 1) << shift:
                break
        else:
            return shift, first, bound
    return None


def constant_array(values: Iterable[int]) -> Column:
    """Return a constant array of longs as one literal, whatever its length. Spark folds it."""
    return F.split(F.lit(",".join(map(str, values))), ",").cast("array<bigint>")
