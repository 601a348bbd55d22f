"""Read a stream natively: Spark scans exactly the files that the metadata names.

`_segment`, `_offset` and `_clock` are computed from constants per file (`weir.spark.data_files`).
There is no join, no shuffle, and no sort except for the order that was asked for.
"""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from weir.controller.read_plan import FileSlice, plan_of_stream
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.model.names import StreamName
from weir.model.schema import Field, without_metadata
from weir.settings import Settings
from weir.spark.data_files import FileConstants, scan_files
from weir.spark.frames import one_after_another, quoted
from weir.spark.routing import SEQ
from weir.spark.session import moved, private_session

ORDERS = ("segment", "stream", "none")
PLACES = ("_segment", "_offset", "_clock")  # columns that a read adds
_TASKS_PER_CORE = 4  # reading tasks that an ordered read is divided into


def read_stream_frame(
    spark: SparkSession,
    database: Database,
    settings: Settings,
    name: StreamName,
    *,
    order: str = "segment",
) -> DataFrame:
    """Return all events of a stream from its head to its present tail, with `_segment`, `_offset`
    and `_clock`.

    `order` "segment": the rows of a segment are in one task, by offset, and so are segments that
    follow one another, so the events of each routing key are in order. "stream": the whole
    DataFrame is in write order (by clock and rank). "none": the order of the files, which is
    fastest.

    Raises NotFound for a stream that does not exist, InvalidInput for another order.
    """

    stream_id, slices, fields = database.snapshot(lambda c: plan_of_stream(c, name))
    return frame_of(spark, settings.warehouse, stream_id, slices, fields, order=order)


def frame_of(
    spark: SparkSession,
    warehouse: str,
    stream_id: int,
    slices: Sequence[FileSlice],
    fields: list[Field],
    *,
    order: str,
    rank: bool = False,
) -> DataFrame:
    """Return the rows of slices of files in an order of `read_stream_frame`.

    `rank`: with their ranks in their commits, in `_weir_seq`; only in the order "none".
    """
    if order not in ORDERS:
        raise InvalidInput(
            "argument_invalid", f"order is {order!r}; it must be one of {', '.join(ORDERS)}."
        )
    schema = StructType.fromJson({"type": "struct", "fields": without_metadata(fields)})
    if not slices:
        extra = [StructField(n, LongType()) for n in (*PLACES, *([SEQ] if rank else []))]
        return spark.createDataFrame([], StructType([*schema.fields, *extra]))

    # Beyond 32 paths Spark lists files in a job, which costs more than it saves here.
    resolving = private_session(
        spark, {"spark.sql.sources.parallelPartitionDiscovery.threshold": "100000"}
    )

    def scan(part: Sequence[FileSlice], sort_by: Callable[..., list[Column]] | None) -> DataFrame:
        rows = _scan(resolving, warehouse, stream_id, part, schema, sort_by, rank)
        return moved(rows, spark)

    if order == "none":
        return scan(slices, None)
    parts = _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    if order == "segment":
        groups = _pack(chains_of(slices), parts)
        frames = [scan(group, _by_segment) for group in groups]
    else:
        frames = [scan(group, _by_rank) for group in _runs(slices, parts)]
    return one_after_another(frames)


def _scan(
    resolving: SparkSession,
    warehouse: str,
    stream_id: int,
    slices: Sequence[FileSlice],
    schema: StructType,
    sort_by: Callable[..., list[Column]] | None,
    rank: bool,
) -> DataFrame:
    """Return the rows of one native scan. With `sort_by` it is one task, sorted."""
    frame = scan_files(resolving, warehouse, stream_id, schema, [s.path for s in slices])
    constants = FileConstants([s.path for s in slices])
    row = F.col("_metadata.row_index")
    offset = constants.of([s.start_offset for s in slices]) + row
    # If all files have the same segment or commit, the constant needs no array.
    segment = constants.of([s.segment_id for s in slices])
    clock = constants.of([s.clock for s in slices])
    if not all(s.whole for s in slices):
        frame = frame.where(
            (row >= constants.of([s.first_row for s in slices]))
            & (row < constants.of([s.end_row for s in slices]))
        )
    columns = [
        *quoted(schema.fieldNames()),
        segment.alias("_segment"),
        offset.alias("_offset"),
        clock.alias("_clock"),
    ]
    if sort_by is None:
        return frame.select(*columns, *([SEQ] if rank else []))
    keys = [
        key.alias(f"_weir_sort{i}")
        for i, key in enumerate(sort_by(slices, constants, offset, clock))
    ]
    ordered = frame.select(*columns, *keys).coalesce(1)
    ordered = ordered.sortWithinPartitions(*[f"_weir_sort{i}" for i in range(len(keys))])
    return ordered.select(*quoted(schema.fieldNames()), *PLACES)


def _by_segment(
    slices: Sequence[FileSlice], constants: FileConstants, offset: Column, _clock: Column
) -> list[Column]:
    # One long to sort by: Spark sorts a single long by radix. Segments in the order of their ids.
    rank = {segment: i for i, segment in enumerate(sorted({s.segment_id for s in slices}))}
    if len(rank) == 1:
        return [offset]
    first = {
        i: min(s.start_offset for s in slices if rank[s.segment_id] == i) for i in rank.values()
    }
    room = 1 + max(s.start_offset + s.events - first[rank[s.segment_id]] for s in slices)
    if room * len(rank) >= 1 << 63:
        return [constants.of([s.segment_id for s in slices]), offset]
    place = constants.of([rank[s.segment_id] * room - first[rank[s.segment_id]] for s in slices])
    return [place + offset]


def _by_rank(
    slices: Sequence[FileSlice], constants: FileConstants, _offset: Column, clock: Column
) -> list[Column]:
    if len({s.clock for s in slices}) == 1:
        return [F.col(SEQ)]
    return [clock, F.col(SEQ)]


def chains_of(slices: Sequence[FileSlice]) -> list[list[FileSlice]]:
    """Group slices by segment. Segments whose key ranges overlap follow one another and are in one
    group."""
    chains: list[list[FileSlice]] = []
    past = 0.0  # the end of the last group's keys
    for s in sorted(slices, key=lambda s: s.key_low):
        if not chains or s.key_low >= past:
            chains.append([])
        chains[-1].append(s)
        past = max(past, s.key_high)
    return chains


def _pack(units: list[list[FileSlice]], parts: int) -> list[list[FileSlice]]:
    """Divide whole units into at most `parts` groups with about equal numbers of events."""
    groups: list[list[FileSlice]] = [[] for _ in range(min(parts, len(units)))]
    events = [0] * len(groups)
    for size, unit in sorted(((sum(s.events for s in u), u) for u in units), key=lambda u: -u[0]):
        least = events.index(min(events))
        events[least] += size
        groups[least] += unit
    return groups


def _runs(slices: Sequence[FileSlice], parts: int) -> list[list[FileSlice]]:
    """Divide slices into about `parts` consecutive runs in write order, cut where no file spans the
    cut."""
    wanted = max(1, sum(s.events for s in slices) // parts)
    runs: list[list[FileSlice]] = []
    last = (-1, -1)
    events = wanted
    for s in sorted(slices, key=lambda s: (s.clock, s.first_seq)):
        if events >= wanted and (s.clock, s.first_seq) > last:
            runs.append([])
            events = 0
        runs[-1].append(s)
        events += s.events
        last = max(last, (s.clock, s.last_seq))
    return runs
