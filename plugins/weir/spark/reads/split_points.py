"""Find split points from the data: the load of hot segments by routing position.

One Spark job serves all segments of all streams. Its tasks read only files with recent events of
the segments, of these only the columns that the routing keys use, and compute the positions of a
sample as an append does. Spark counts them, by position and not by key: quantiles keep every
distinct position, and a sketch does not say where one key ends and how much it has.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weir.arrow.read import by_schema
from weir.controller.recent_files import Part, RecentFile, RecentFiles, recent_files
from weir.database.connection import Database
from weir.errors import InvalidInput, WeirError
from weir.inputs.rows import grouped
from weir.kernel.matching import routing_keys
from weir.kernel.row_hash import hashes_of_longs, hashes_of_texts
from weir.kernel.schema import in_file, to_read
from weir.kernel.transforms import Computation
from weir.model.key_space import STEPS
from weir.model.names import StreamName
from weir.model.schema import CLOCK, SEQ
from weir.model.segment import Segment
from weir.model.split_points import Found, HotSegment, Load, first_step, split_points
from weir.settings import Settings
from weir.spark.base.bisection import constant_array
from weir.spark.base.calls import numbers, tasks_of
from weir.spark.base.python_workers import with_own_code
from weir.spark.base.session import cores, private_session
from weir.spark.failures.causes import raising_own
from weir.warehouse.filesystem import filesystem, only_by_jvm

# How many events of a segment are counted at most. Of more, a sample of half as many to as many is.
SAMPLED = 16_000
SAMPLED_IN_ALL = 2_000_000  # with very many hot segments: of all of them together,
SAMPLED_AT_LEAST = 5_000  # but as many of each
BUCKETS = 1024  # a segment has half as many to as many parts in which light keys count together
BUCKETS_IN_ALL = 1 << 18  # with very many hot segments: of all of them together,
BUCKETS_AT_LEAST = 64  # but as many of each
KEY_SHOWN = 200  # characters of a hot key that are returned
_SEED = 16  # the same files give the same sample
PIECE, OPENING = 1_000_000, 5_000  # rows that a task reads at once; what a file costs, in rows
_HOT, _KEY, _POSITION, _WEIGHT = "_weir_hot", "_weir_key", "_weir_steps", "_weir_weight"
_ROWS = pa.schema([
    (_HOT, pa.int32()), (_POSITION, pa.int64()), (_KEY, pa.string()), (_WEIGHT, pa.int64())
])  # fmt: skip
_TYPES = f"{_HOT} int, {_POSITION} long, {_KEY} string, {_WEIGHT} long"


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
    limit = max(SAMPLED_AT_LEAST, min(SAMPLED, SAMPLED_IN_ALL // len(hot)))
    buckets = max(BUCKETS_AT_LEAST, min(BUCKETS, BUCKETS_IN_ALL // len(hot)))
    counted: dict[int, _Hot] = {}
    of_stream: dict[int, list[tuple[int, HotSegment]]] = {}
    for number, one in enumerate(hot):
        of_stream.setdefault(one.stream_id, []).append((number, one))
    samples: list[_Sample] = []
    for source in sources:
        asked = of_stream[source.stream_id]
        ranges = [_how(number, one, source.files, buckets) for number, one in asked]
        try:
            samples.append(_sample(source, ranges, limit, asked[0][1].unit))
        except InvalidInput as error:
            failed[source.stream_id] = error.sentence
        counted.update((one.number, one) for one in ranges)
    counts = list[_Count]()
    if samples:
        events = _positions(_session(spark), settings.warehouse, samples, len(hot))
        counts = _count(events, counted, len(hot), len(samples))
    for count in counts:
        if count.hot >= len(hot):  # not of a segment, but of a stream that can't be read
            sample = samples[count.hot - len(hot)]
            failed[sample.stream_id] = (
                f"the recent events of stream {sample.stream} can't be read to find where its "
                f"load lies ({count.key}); check the stream's files, or split its segments by hand."
            )
    read = [c for c in counts if c.hot < len(hot) and hot[c.hot].stream_id not in failed]
    read.sort(key=lambda count: (count.hot, count.steps))
    loads = {
        number: _loads(list(some), counted[number])
        for number, some in groupby(read, key=lambda count: count.hot)
    }
    return loads, failed


@lru_cache(maxsize=1)
def _session(spark: SparkSession) -> SparkSession:
    """Return a session with settings of Weir's own. Spark compiles a query anew in each session."""
    return private_session(
        spark,
        # There is little to shuffle: a row for each key of the sample.
        {"spark.sql.shuffle.partitions": str(2 * cores(spark))},
    )


def _share(file: RecentFile, segment: Segment) -> float:
    """Return the share of the file's key range that lies within a segment's."""
    common = min(file.key_high, segment.key_high) - max(file.key_low, segment.key_low)
    return max(0.0, common / (file.key_high - file.key_low))


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


@dataclass(frozen=True)
class _Sample:
    """What is sampled of a stream. `weights`: of a row of each file; `chances`: of how many rows
    one is sampled. `bounds`: the first position of each part of the key space, and after them
    `numbers`, those of the hot segments that they are; -1 for none. `spread`: rows without a key
    count where their ranks have spread them."""

    stream_id: int
    stream: StreamName
    key: Computation
    spread: bool
    files: Sequence[RecentFile]
    weights: Sequence[int]
    chances: Sequence[int]
    bounds: Sequence[int]
    numbers: Sequence[int]


def _sample(source: RecentFiles, ranges: Sequence[_Hot], limit: int, unit: str) -> _Sample:
    """Return what is sampled of a stream. Raises InvalidInput if its keys can't be computed."""
    key = routing_keys(source.stream, source.routing_key, to_read(source.fields))
    parts = {0: -1}  # by the first position: what begins there
    for one in sorted(ranges, key=lambda one: one.segment.key_low):
        parts[first_step(one.segment.key_low)] = one.number
        parts[first_step(one.segment.key_high)] = -1
    # The append has routed events without a key by rank. A stream that spread them until recently
    # has some for a while, which do not count.
    return _Sample(
        source.stream_id, source.stream, key, source.on_missing_key == "spread", source.files,
        *_weights(source.files, ranges, limit, unit), list(parts), list(parts.values()),
    )  # fmt: skip


class _Piece(NamedTuple):
    """A part of what a task reads: of a file every `of`-th row group from the `first` on."""

    sample: int
    file: int
    first: int
    of: int


def _positions(
    session: SparkSession, warehouse: str, samples: Sequence[_Sample], hot: int
) -> DataFrame:
    """Return the sampled events of streams: hot segment (by number), position, key and weight. Of
    a stream that can't be read, `hot` plus its number, and why in place of the key."""
    pieces, sizes = list[_Piece](), list[int]()
    for number, sample in enumerate(samples):
        for place, file in enumerate(sample.files):
            of = -(-file.events // PIECE)
            pieces += [_Piece(number, place, first, of) for first in range(of)]
            sizes += [OPENING + file.events // of] * of
    least = sum(sizes) // (2 * cores(session))
    groups = grouped(pieces, sizes, min(PIECE, max(least, 20 * OPENING)))

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in numbers(batches):
            for piece in groups[task]:
                try:
                    yield from _rows_of(warehouse, samples[piece.sample], piece)
                except Exception as error:
                    said = error.sentence if isinstance(error, WeirError) else str(error).strip()
                    why = (said.splitlines() or [type(error).__name__])[0].rstrip(".")
                    yield pa.RecordBatch.from_arrays(
                        [[hot + piece.sample], [0], [why], [0]], schema=_ROWS
                    )

    if only_by_jvm(warehouse):  # which the executors' Python workers can't reach
        ids = [pa.record_batch({"id": [task]}) for task in range(len(groups))]
        return session.createDataFrame(pa.Table.from_batches(read(ids), _ROWS), _TYPES)
    with with_own_code(session):
        return tasks_of(session, len(groups)).mapInArrow(read, _TYPES)


def _rows_of(warehouse: str, sample: _Sample, piece: _Piece) -> Iterator[pa.RecordBatch]:
    """Yield the sampled rows of a piece that are in hot segments."""
    system, base = filesystem(warehouse)
    file = sample.files[piece.file]
    with system.open_input_file(f"{base}/{file.path}") as source:
        parquet = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        wanted = [in_file(sample.key.schema.field(name)) for name in sample.key.columns]
        wanted += [CLOCK] if file.since is not None else []
        columns = [name for name in wanted if name in parquet.schema_arrow.names]
        columns += [SEQ] if sample.spread or not columns else []
        for group in range(piece.first, parquet.num_row_groups, piece.of):
            rows = parquet.read_row_group(group, columns)
            if CLOCK in columns:
                rows = rows.filter(pc.greater(rows[CLOCK], file.since))
            if (chance := sample.chances[piece.file]) > 1:
                drawn = np.random.default_rng([_SEED, crc32(file.path.encode()), group])
                rows = rows.take(np.flatnonzero(drawn.random(rows.num_rows) * chance < 1))
            yield _placed(sample, rows.combine_chunks(), sample.weights[piece.file])


def _placed(sample: _Sample, rows: pa.Table, weight: int) -> pa.RecordBatch:
    """Return the rows that are in hot segments, each with its place."""
    names = sample.key.columns
    keyed = pa.table(by_schema(rows, sample.key.schema, names), names)
    keys = sample.key.texts(keyed).values.combine_chunks()
    there = keys.is_valid().to_numpy(zero_copy_only=False)
    hashes = hashes_of_texts(keys)
    if sample.spread:
        ranks = rows[SEQ].combine_chunks().cast(pa.int64())
        hashes = np.where(there, hashes, hashes_of_longs(ranks))
    steps = hashes >> np.uint64(11)
    part = np.searchsorted(np.array(sample.bounds, np.uint64), steps, side="right") - 1
    hot = np.array(sample.numbers, np.int32)[part]
    kept = np.flatnonzero((hot >= 0) & (there | sample.spread))
    shown = pc.utf8_slice_codeunits(keys.take(pa.array(kept)), 0, KEY_SHOWN)
    weights = pa.repeat(pa.scalar(weight, pa.int64()), len(kept))
    return pa.RecordBatch.from_arrays(
        [pa.array(hot[kept]), pa.array(steps[kept].astype(np.int64)), shown, weights], schema=_ROWS
    )


def _count(events: DataFrame, hot: Mapping[int, _Hot], outside: int, streams: int) -> list[_Count]:
    """Return the weights of heavy keys and of buckets, and what is said of streams. The query has
    at most two rows for each bucket."""
    known = range(outside + streams)
    sizes = F.expr(f"{constant_array(hot[i].bucket if i in hot else 1 for i in known)}[{_HOT}]")
    least = F.expr(f"{constant_array(hot[i].heavy if i in hot else 0 for i in known)}[{_HOT}]")
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
    with raising_own():
        return [_Count(*row) for row in counted.collect()]


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
