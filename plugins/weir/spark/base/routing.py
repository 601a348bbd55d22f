"""Route rows to segments without a shuffle, with native Spark expressions only (semantics 1.6).

The routing position of an event is `(xxhash64(key) >>> 11) / 2^53`: XXH64 of the key in UTF-8 with
seed 42, so that every language computes the same.
"""

import math
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weir.model.key_space import STEPS
from weir.model.segment import Segment
from weir.spark.base.bisection import bisected, constant_array


def routing_steps(key: Column) -> Column:
    """Return the routing position of a key (semantics 1.6) times 2^53, as an exact integer."""
    return F.shiftrightunsigned(F.xxhash64(key), 11)


def with_ordinals(
    frame: DataFrame, name: str, steps: str, segments: Sequence[Segment]
) -> DataFrame:
    """Return rows with a column `name`: the index among `segments` (sorted by range, tiling [0, 1))
    into whose range the column `steps` falls."""
    size = 1 << (len(segments) - 1).bit_length()
    # This is exactly position >= key_low, although the bound may lie between two steps.
    bounds = [math.ceil(segment.key_low * STEPS) for segment in segments]
    array = constant_array([*bounds, *[STEPS] * (size - len(bounds))])
    return bisected(frame, name, size, lambda place: f"{steps} >= {array}[{place}]")
