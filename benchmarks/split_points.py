"""Split points by the data: what they cost beside exact quantiles, and what they are worth."""

from bisect import bisect_right
from collections import Counter
from itertools import accumulate
from random import Random

from pyspark.sql import functions as F
from xxhash import xxh64_intdigest

from benchmarks.data_path import appended
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.model.key_space import STEPS, even_split
from weir.model.names import StreamName
from weir.model.segment import Segment
from weir.model.split_points import HotSegment, Load, split_points
from weir.spark.base.routing import routing_steps
from weir.spark.reads.split_points import find_split_points
from weir.warehouse.paths import spark_path

PIECES = 4
ZIPF_EVENTS, ZIPF_KEYS, ZIPF_SEGMENTS = 200_000, 100_000, 8


def hot_segments(setting: Setting, name: StreamName, pieces: int) -> list[HotSegment]:
    """Return all active segments of a stream as hot ones, each to be split into so many pieces."""
    rows = setting.database.transaction(
        lambda c: c.exec_driver_sql(
            "SELECT stream_id, segment_id, key_low, key_high FROM segment "
            "JOIN stream s USING (stream_id) WHERE s.stream_name = %s AND sealed_epoch IS NULL",
            (str(name),),
        ).all()
    )
    return [
        HotSegment(stream, Segment(number, low, high), pieces, 100.0 * pieces, 100, "events", 0)
        for stream, number, low, high in rows
    ]


def sample(setting: Setting) -> Figure:
    """Return the figure of the split points of all hot segments in one query, beside Spark's own
    exact quantiles."""
    hot = hot_segments(setting, appended(setting), PIECES)
    root = spark_path(setting.settings.warehouse, str(hot[0].stream_id))
    quantiles = F.array(*[F.lit(i / PIECES) for i in range(1, PIECES)])

    def ours() -> None:
        found = find_split_points(setting.spark, setting.database, setting.settings, hot)
        assert all(len(one.points) == PIECES - 1 for one in found.points.values())
        assert len(found.points) == len(hot)

    def reference() -> None:
        files = setting.spark.read.schema("key string, _weir_segment long").parquet(root)
        positions = F.percentile(routing_steps(F.col("key")), quantiles)
        assert len(files.groupBy("_weir_segment").agg(positions).collect()) == len(hot)

    return Figure(
        "scale/sample",
        f"split points into {PIECES} of 16 hot segments with 5 million events beside Spark's exact "
        "quantiles of the routing positions in the same files",
        ours,
        reference,
        limit=0.7,
        goal=0.5,
    )


def balance(_setting: Setting) -> Figure:
    """Return the figure of how far the largest segment is above what the heaviest key forces, which
    is not a time.

    Points come from half of the events, and the rates are those of the other half.
    """
    random = Random(16)
    keys = range(ZIPF_KEYS)
    weights = list(accumulate((key + 1) ** -1.1 for key in keys))
    notes: dict[str, float] = {}
    drawn: list[tuple[float, float]] = []

    def draw() -> None:
        number = random.random()
        at = [(xxh64_intdigest(f"{number} {key}".encode(), 42) >> 11) / STEPS for key in keys]
        past = Counter(random.choices(keys, cum_weights=weights, k=ZIPF_EVENTS))
        now = Counter(random.choices(keys, cum_weights=weights, k=ZIPF_EVENTS))
        mean = ZIPF_EVENTS / ZIPF_SEGMENTS
        least = max(1.0, max(now.values()) / mean)
        loads = [Load(at[key], count, str(key)) for key, count in past.items()]
        ours = split_points(0.0, 1.0, loads, ZIPF_SEGMENTS).points
        equal = [one.low for one in even_split(ZIPF_SEGMENTS)[1:]]
        largest = []
        for points in (ours, equal):
            rates = [0] * ZIPF_SEGMENTS
            for key, count in now.items():
                rates[bisect_right(points, at[key])] += count
            largest.append(max(rates) / mean)
        notes.update(least=round(least, 3), by_data=round(largest[0], 3),
                     equal_ranges=round(largest[1], 3),
                     plain_ratio=round(largest[0] / largest[1], 3))  # fmt: skip
        drawn.append((largest[0] - least, largest[1] - least))

    def cost(which: int) -> float:
        # Both sides of a pair use the same draw, whichever side comes first.
        taken[which] += 1
        while len(drawn) < taken[which]:
            draw()
        return drawn[taken[which] - 1][which]

    taken = [0, 0]
    return Figure(
        "scale/balance",
        f"the largest over the mean rate of {ZIPF_SEGMENTS} segments under Zipf(1.1), above what "
        "the heaviest key forces: split by the data beside equal ranges",
        lambda: cost(0),
        lambda: cost(1),
        limit=0.5,
        goal=0.1,
        unit="times the mean",
        notes=notes,
    )


FIGURES = {"scale/sample": sample, "scale/balance": balance}
