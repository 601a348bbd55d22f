"""From rows to segments without a shuffle: native expressions only.

An event's position in the key space is `(xxhash64(key) >>> 11) / 2^53`: XXH64 of the UTF-8 key with
seed 42, so that any language agrees.
"""

import math
from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from weir.segment import Segment

SEQ, SEGMENT, TASK = "_weir_seq", "_weir_segment", "_weir_task"
REJECTED_SEGMENT = -1  # the folder of rows that do not become events
_STEPS = 1 << 53


def routing_steps(key: Column) -> Column:
    """The position in the key space, times 2^53: an exact integer."""
    return F.shiftrightunsigned(F.xxhash64(key), 11)


def segment_ordinal(steps: Column, segments: Sequence[Segment]) -> Column:
    """Which of `segments` (sorted by range, tiling [0, 1)) a position falls into: a bisection."""

    def bisect(low: int, high: int) -> Column:
        if high - low == 1:
            return F.lit(low)
        middle = (low + high) // 2
        # position < key_low, exactly: the right side may fall between two steps.
        boundary = math.ceil(segments[middle].key_low * _STEPS)
        return F.when(steps < F.lit(boundary), bisect(low, middle)).otherwise(bisect(middle, high))

    return bisect(0, len(segments))


def pick(values: Sequence[int], index: Column) -> Column:
    """The value at a position of a constant array."""
    return F.array(*[F.lit(value) for value in values])[index]
