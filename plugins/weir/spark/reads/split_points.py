"""Find split points from the data: the load of hot segments by routing position.

One Spark query serves all segments of all streams. It reads only files with recent events of the
segments, of these only the columns that the routing keys use, and of many events a sample. Spark
computes the positions as an append does, and counts them natively (docs/decisions/0033).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import groupby, pairwise
from typing import NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weir.controller.recent_files import Part, RecentFile, RecentFiles, recent_files
from weir.database.connection import Database
from weir.errors import WeirError
from weir.model.key_space import STEPS
from weir.model.schema import CLOCK, CLOCK_FIELD, SEQ
from weir.model.segment import Segment
from weir.model.split_points import Found, HotSegment, Load, first_step, split_points
from weir.settings import Settings
from weir.spark.base.routing import constant_array, routing_steps, segment_ordinal
from weir.spark.base.session import private_session
from weir.spark.failures.unreadable import file_of, first_cause
from weir.spark.reads.data_files import FileConstants, scan_files
from weir.spark.users.expressions import check_expression, with_expression

# How many events of a segment are counted at most. Of more, a sample of half as many to as many is.
SAMPLED = 16_000
SAMPLED_IN_ALL = 2_000_000  # with very many hot segments: of all of them together,
SAMPLED_AT_LEAST = 5_000  # but as many of each
BUCKETS = 1024  # a segment has half as many to as many parts in which light keys count together
BUCKETS_IN_ALL = 1 << 18  # with very many hot segments: of all of them together,
BUCKETS_AT_LEAST = 64  # but as many of each
KEY_SHOWN = 200  # characters of a hot key that are returned
_SEED = 16  # the same files give the same sample
_HOT, _KEY, _POSITION, _WEIGHT = "_weir_hot", "_weir_key", "_weir_steps", "_weir_weight"


class _Hot(NamedTuple):
    """A hot segment: its number among all, and how its keys are counted."""

    number: int
    segment: Segment
    bucket: int  # so many positions make a bucket: a power of 2
    heavy: int  # a key with at least this weight is counted by itself


class _Count(NamedTuple):
    """The weight of one key (by its position) or of a bucket's other keys (by its first one)."""

    hot: int
    steps: int
    key: str | None
    weight: int


def find_split_points(
    spark: SparkSession, database: Database, settings: Settings, hot: Sequence[HotSegment]
) -> Found:
    """Return where to split segments, so that the pieces carry equal loads.

    A load is what was committed after `HotSegment.since`: events, or for the unit `bytes` events
    times the mean size of the events in their file. A stream whose files cannot be read fails
    alone.
    """
    loads, failed = find_loads(spark, database, settings, hot)
    points = {
        (one.stream_id, one.segment.segment_id): split_points(
            one.segment.key_low,
            one.segment.key_high,
            loads.get(number, ()),
            one.pieces,
            min(1.0, one.target_rate / one.rate),
        )
        for number, one in enumerate(hot)
        if one.stream_id not in failed
    }
    return Found(points, failed)


def find_loads(
    spark: SparkSession, database: Database, settings: Settings, hot: Sequence[HotSegment]
) -> tuple[dict[int, list[Load]], dict[int, str]]:
    """Return the loads of disjoint ranges by their index in `hot`, and by stream id the sentence of
    each stream that cannot be read. A range without recent events has no loads.
    """
    failed: dict[int, str] = {}
    if not hot:
        return {}, failed
    parts = [
        Part(one.stream_id, one.segment.key_low, one.segment.key_high, one.since) for one in hot
    ]
    sources = database.snapshot(lambda c: recent_files(c, parts))
    session = _session(spark)
    limit = max(SAMPLED_AT_LEAST, min(SAMPLED, SAMPLED_IN_ALL // len(hot)))
    buckets = max(BUCKETS_AT_LEAST, min(BUCKETS, BUCKETS_IN_ALL // len(hot)))
    frames: dict[int, DataFrame] = {}
    counted: dict[int, _Hot] = {}
    of_stream: dict[int, list[tuple[int, HotSegment]]] = {}
    for number, one in enumerate(hot):
        of_stream.setdefault(one.stream_id, []).append((number, one))
    for source in sources:
        asked = of_stream[source.stream_id]
        ranges = [_how(number, one, source.files, buckets) for number, one in asked]
        unit = asked[0][1].unit
        weights, chances = _weights(source.files, ranges, limit, unit)
        try:
            frames[source.stream_id] = _positions(
                session, settings.warehouse, source, ranges, weights, chances, len(hot)
            )
        except (WeirError, PySparkException, Py4JJavaError) as error:
            failed[source.stream_id] = _sentence(source, error)
        counted.update((one.number, one) for one in ranges)

    def count(frames: Iterable[DataFrame]) -> list[_Count]:
        return _count(_together(list(frames)), counted, len(hot))

    counts = _each_alone(sources, frames, count, failed)
    counts.sort(key=lambda one: (one.hot, one.steps))
    loads = {
        number: _loads(list(some), counted[number])
        for number, some in groupby(counts, key=lambda one: one.hot)
    }
    return loads, failed


@lru_cache(maxsize=1)
def _session(spark: SparkSession) -> SparkSession:
    """Return a session with settings of Weir's own. Spark compiles a query anew in each session."""
    return private_session(
        spark,
        {
            # Beyond 32 paths Spark lists files in a job, which costs more than it saves here.
            "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
            # There is little to shuffle: a row for each key of the sample.
            "spark.sql.shuffle.partitions": str(2 * spark.sparkContext.defaultParallelism),
        },
    )


def _each_alone(
    sources: Sequence[RecentFiles],
    frames: dict[int, DataFrame],
    count: Callable[[Iterable[DataFrame]], list[_Count]],
    failed: dict[int, str],
) -> list[_Count]:
    """Count all frames in one query; if it fails, leave out the stream that is the cause.

    A stream is known by the file that Spark could not read. If the error names none, each of the
    streams is counted in a query of its own.
    """
    by_id = {source.stream_id: source for source in sources}
    together = [list(frames)] if frames else []
    counts: list[_Count] = []
    while together:
        ids = together.pop()
        try:
            counts += count(frames[one] for one in ids)
        except (PySparkException, Py4JJavaError) as error:
            file = file_of(error) or ""
            cause = next((one for one in ids for path in by_id[one].files
                          if file.endswith("/" + path.path)), None)  # fmt: skip
            if cause is None and len(ids) > 1:
                together += [[one] for one in ids]
                continue
            cause = ids[0] if cause is None else cause
            failed[cause] = _sentence(by_id[cause], error)
            if rest := [one for one in ids if one != cause]:
                together.append(rest)
    return counts


def _sentence(source: RecentFiles, error: BaseException) -> str:
    reason = error.sentence if isinstance(error, WeirError) else first_cause(error).rstrip(".")
    return (
        f"the recent events of stream {source.stream} can't be read to find where its load lies "
        f"({reason}); check the stream's files, or split its segments by hand."
    )


def _share(file: RecentFile, segment: Segment) -> float:
    """Return the share of the file's key range that lies within a segment's."""
    common = min(file.key_high, segment.key_high) - max(file.key_low, segment.key_low)
    return max(0.0, common / (file.key_high - file.key_low))


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames. Pair by pair: a plan of a thousand levels is too deep."""
    while len(frames) > 1:
        frames = [reduce(DataFrame.union, frames[i : i + 2]) for i in range(0, len(frames), 2)]
    return frames[0]


def _how(number: int, one: HotSegment, files: Sequence[RecentFile], buckets: int) -> _Hot:
    width = first_step(one.segment.key_high) - first_step(one.segment.key_low)
    total = sum((file.bytes if one.unit == "bytes" else file.events) * _share(file, one.segment)
                for file in files)  # fmt: skip
    bucket = 1 << (-(-width // buckets) - 1).bit_length()
    return _Hot(number, one.segment, bucket, max(1, int(total / buckets)))


def _weights(
    files: Sequence[RecentFile], ranges: Sequence[_Hot], limit: int, unit: str
) -> tuple[list[int], list[int]]:
    """Return for each file the weight of one of its rows, and how many rows there are for each one
    that is sampled: a power of 2, so that weights are whole numbers."""
    events: dict[int, int] = {}
    room: dict[int, int] = {}
    for file in files:
        events[file.segment_id] = events.get(file.segment_id, 0) + file.events
        room[file.segment_id] = limit * sum(_share(file, one.segment) > 0 for one in ranges)
    chances = [
        1 << (max(0, -(-events[file.segment_id] // room[file.segment_id]) - 1)).bit_length()
        for file in files
    ]
    each = [max(1, round(file.bytes / file.events)) if unit == "bytes" else 1 for file in files]
    return [one * chance for one, chance in zip(each, chances, strict=True)], chances


def _positions(
    session: SparkSession,
    warehouse: str,
    source: RecentFiles,
    ranges: Sequence[_Hot],
    weights: Sequence[int],
    chances: Sequence[int],
    outside: int,
) -> DataFrame:
    """Return the sampled events of a stream: hot segment (by number, or `outside`), position, key
    and weight."""
    what = f"routing key of stream {source.stream},"
    key = check_expression(source.routing_key, what, session)
    used = {name.lower() for name in key.columns}
    fields = [one for one in source.fields if one["name"].lower() in used]
    constants = FileConstants([(file.path, file.first_seq) for file in source.files])
    paths = [file.path for file in source.files]
    since = {file.since for file in source.files if file.since is not None}
    fields += [CLOCK_FIELD] if since else []
    frame = constants.numbered(scan_files(session, warehouse, source.stream_id, fields, paths))
    if since:  # of all parts of a stream the earliest; a file of one commit lacks the column
        frame = frame.where(f"{CLOCK} IS NULL OR {CLOCK} > {min(since)}")
    if max(chances) > 1:
        frame = frame.where(F.rand(_SEED) * constants.of(chances) < 1)
    frame = with_expression(frame, key, _KEY, what, session)
    steps = routing_steps(F.col(_KEY))
    if source.on_missing_key == "spread":  # the append has routed events without a key by rank
        steps = F.when(F.col(_KEY).isNull(), routing_steps(F.col(SEQ))).otherwise(steps)
    else:  # a stream that spread them until recently has some for a while, which do not count
        frame = frame.where(F.col(_KEY).isNotNull())
    weighed = frame.select(
        steps.alias(_POSITION),
        F.substring(_KEY, 1, KEY_SHOWN).alias(_KEY),
        constants.of(weights).alias(_WEIGHT),
    )
    tiles, numbers = _tiles(ranges, outside)
    hot = constant_array(numbers)[segment_ordinal(_POSITION, tiles)].cast("int")
    placed = weighed.withColumn(_HOT, hot)
    # Rows outside the hot segments become one row of the result. Spark would push a filter down to
    # the scan, and compute the position there again for each comparison of the bisection.
    inside = F.col(_HOT) != outside
    return placed.select(
        _HOT,
        F.when(inside, F.col(_POSITION)).alias(_POSITION),
        F.when(inside, F.col(_KEY)).alias(_KEY),
        _WEIGHT,
    )


def _tiles(ranges: Sequence[_Hot], outside: int) -> tuple[list[Segment], list[int]]:
    """Return ranges that tile the key space, and the number of the hot segment in each, or
    `outside`."""
    tiles: list[Segment] = []
    numbers: list[int] = []
    covered = 0.0
    for one in sorted(ranges, key=lambda one: one.segment.key_low):
        if covered < one.segment.key_low:
            tiles.append(Segment(0, covered, one.segment.key_low))
            numbers.append(outside)
        tiles.append(one.segment)
        numbers.append(one.number)
        covered = one.segment.key_high
    if covered < 1.0:
        tiles.append(Segment(0, covered, 1.0))
        numbers.append(outside)
    return tiles, numbers


def _count(events: DataFrame, hot: Mapping[int, _Hot], outside: int) -> list[_Count]:
    """Return the weights of heavy keys and of buckets. The query has at most two rows for each
    bucket."""
    numbers = range(outside + 1)
    sizes = constant_array(hot[i].bucket if i in hot else 1 for i in numbers)[F.col(_HOT)]
    least = constant_array(hot[i].heavy if i in hot else 1 for i in numbers)[F.col(_HOT)]
    position, weight = F.col(_POSITION), F.sum(_WEIGHT).alias(_WEIGHT)
    by_key = events.groupBy(_HOT, _POSITION, _KEY).agg(weight)
    heavy = F.col(_KEY).isNotNull() & (F.col(_WEIGHT) >= least)
    by_place = by_key.select(
        _HOT,
        F.when(heavy, position).otherwise(position - position % sizes).alias(_POSITION),
        F.when(heavy, F.col(_KEY)).alias(_KEY),
        _WEIGHT,
    )
    counted = by_place.groupBy(_HOT, _POSITION, _KEY).agg(weight)
    return [_Count(*row) for row in counted.collect() if row[0] != outside]


def _loads(counts: Sequence[_Count], hot: _Hot) -> list[Load]:
    """Return the loads of one segment by position.

    Keys are spread evenly, because their positions are hashes. So the light keys of a bucket are
    divided around its heavy keys in proportion to the positions.
    """
    first, past = first_step(hot.segment.key_low), first_step(hot.segment.key_high)
    found: list[Load] = []
    for begin, some in groupby(counts, key=lambda one: one.steps - one.steps % hot.bucket):
        bucket = list(some)
        heavy = [one for one in bucket if one.key is not None]
        found += [Load(one.steps / STEPS, one.weight, one.key) for one in heavy]
        rest = sum(one.weight for one in bucket) - sum(one.weight for one in heavy)
        bounds = [max(begin, first) - 1, *sorted({one.steps for one in heavy}),
                  min(begin + hot.bucket, past)]  # fmt: skip
        length = bounds[-1] - bounds[0] - (len(bounds) - 1)  # positions without a heavy key
        passed = given = 0
        for low, high in pairwise(bounds):
            passed += high - low - 1
            weight = rest * passed // length - given if length else 0
            given += weight
            if weight:
                found.append(Load((low + 1) / STEPS, weight))
        if rest > given:  # without a key, at the position of a heavy one
            found.append(Load(bounds[0] / STEPS, rest))
    return found
