"""From rows to segments without a shuffle: native expressions only.

An event's position in the key space is `(xxhash64(key) >>> 11) / 2^53`: XXH64 of the UTF-8 key with
seed 42, so that any language agrees.
"""

import math
from collections.abc import Iterable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from weir.segment import Segment

SEQ, SEGMENT, TASK = "_weir_seq", "_weir_segment", "_weir_task"
REJECTED_SEGMENT = -1  # the folder of rows that do not become events
_STEPS = 1 << 53


def routing_steps(key: Column) -> Column:
    """The position in the key space, times 2^53: an exact integer."""
    return F.shiftrightunsigned(F.xxhash64(key), 11)


def segment_ordinal(steps: str, segments: Sequence[Segment]) -> Column:
    """Which of `segments` (sorted by range, tiling [0, 1)) the column `steps` falls into.

    A bisection, handed to Spark as one text: a call per node would take longer than it saves.
    """

    def bisect(low: int, high: int) -> str:
        if high - low == 1:
            return str(low)
        middle = (low + high) // 2
        # position < key_low, exactly: the right side may fall between two steps.
        boundary = math.ceil(segments[middle].key_low * _STEPS)
        return f"if({steps} < {boundary}L, {bisect(low, middle)}, {bisect(middle, high)})"

    return F.expr(bisect(0, len(segments)))


def constant_array(values: Iterable[int]) -> Column:
    """A constant array of longs, as one literal whatever its length (Spark folds it)."""
    return F.split(F.lit(",".join(map(str, values))), ",").cast("array<bigint>")
