"""What batches cost: opened, committed, read; and the Python data source."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import psycopg2
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from benchmarks.data_path import appended
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from tests.watching import count_statements
from weir.arrow.read import read_slice
from weir.controller.commit import commit
from weir.controller.read_plan import FileSlice, Slices, plan_of_bounds
from weir.controller.streams import create_stream
from weir.controller.transactions import begin
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.model.names import StreamName, stream_name
from weir.model.schema import Field, new_field
from weir.programs.opening import shared
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.budget import Budget
from weir.reader_groups.batches.lifecycle import commit_batch, open_in
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.reader_groups.groups.lifecycle import create_reader_group
from weir.reader_groups.groups.readers import join
from weir.settings import Settings
from weir.spark.reads.frames import frame_of
from weir.spark.reads.source import register
from weir.warehouse.paths import spark_path

FIELDS = [
    new_field("key", "string"),
    new_field("value", "long"),
]
MANY, FEW = 1000, 10  # segments
FILES, FEW_FILES = 10, 1  # per segment, where they are read; in a small run
ROWS = 100  # per file
LEASE = 600.0
ALL = Budget(10**9, 10**15, 10**6)


@dataclass
class Stream:
    """A stream of so many equal segments."""

    setting: Setting
    name: StreamName
    stream_id: int

    @classmethod
    def made(cls, setting: Setting, segments: int) -> "Stream":
        name = stream_name(f"bench/b{setting.number()}")
        made = create_stream(
            setting.database, name, routing_key="key", segments=segments, fields=FIELDS,
            request_id=str(name),
        )  # fmt: skip
        return cls(setting, name, made["stream_id"])

    def append(self, content: Path | None = None, *, each: int = 1) -> None:
        """Commit `each` files of `ROWS` events to every segment. The files are links to `content`;
        without it they are only names."""
        attempt = begin(
            self.setting.database, self.name, writer_id="bench",
            batch_id=str(self.setting.number()), fingerprint="", lease=LEASE, source="bench",
        )  # fmt: skip
        assert isinstance(attempt, Attempt)
        files = []
        for task, (segment, i) in enumerate(product(attempt.segments, range(each))):
            folder = f"{attempt.folder}_weir_segment={segment.segment_id}/_weir_task={task}"
            path = f"{folder}/part-0.c000.parquet"
            if content is not None:
                at = Path(self.setting.settings.warehouse) / path
                at.parent.mkdir(parents=True)
                os.link(content, at)
            first = i * ROWS
            files.append(
                StagedFile(segment.segment_id, path, ROWS, 10 * ROWS, first, first + ROWS - 1)
            )
        commit(self.setting.database, Staged(attempt, tuple(files), FIELDS))

    def made_group(self, start: str = "head") -> str:
        """Create a group that reads the stream, and return its name."""
        name = f"bench-{self.setting.number()}"
        create_reader_group(self.setting.database, name, [self.name], start=start, request_id=name)
        return name

    def group(self, start: str = "head") -> "Group":
        """Create a group that reads the stream, and return it with its only reader."""
        name = self.made_group(start)
        return Group(self, name, join(self.setting.database, name, "reader", LEASE))


@dataclass
class Group:
    stream: Stream
    name: str
    token: int

    def open(self) -> Batch:
        batch = self.stream.setting.database.transaction(
            lambda c: open_in(c, self.name, "reader", self.token, Reading(ALL), lease=LEASE)
        )
        assert batch is not None
        return batch

    def commit(self, batch: Batch) -> None:
        commit_batch(self.stream.setting.database, batch, lease=LEASE)

    def plan(self, batch: Batch) -> tuple[list[FileSlice], list[Field]]:
        """Return the files that a batch reads, and their schema."""
        bounds = [(bound.segment_id, bound.start, bound.end) for bound in batch.bounds]
        return self.stream.setting.database.transaction(
            lambda c: plan_of_bounds(c, self.stream.stream_id, bounds)
        )


def wide(what: str, setting: Setting) -> Figure:
    """Return the figure of opening or committing (`what`) a batch of many segments, beside a batch
    of as many files in few segments."""
    setting.durable(True)
    batches = 10
    statements = count_statements(setting.database)
    counts: dict[int, int] = {}

    def side(segments: int) -> Callable[[], float]:
        stream = Stream.made(setting, segments)
        group = stream.group()

        def run() -> float:
            seconds = 0.0
            for _ in range(batches):
                stream.append(each=MANY // segments)
                del statements[:]
                start = time.perf_counter()
                batch = group.open()
                opened, opening = time.perf_counter(), len(statements)
                group.commit(batch)
                committed, both = time.perf_counter(), len(statements)
                assert len(batch.bounds) == segments
                seconds += (opened - start) if what == "open" else (committed - opened)
                counts[segments] = opening if what == "open" else both - opening
            return seconds

        return run

    ours, reference = side(MANY), side(FEW)
    reference()
    ours()
    assert counts[FEW] == counts[MANY], f"it takes more statements: {counts}"
    return Figure(
        f"batch/{what}",
        f"{batches} times {what} a batch of {MANY:,} files in as many segments, beside in {FEW} "
        "segments; without reading it",
        ours,
        reference,
        limit=3,
        small_runs=4,  # short and noisy
        notes={"statements": counts},
    )


def content(setting: Setting) -> Path:
    """Return the path of a Parquet file of `ROWS` events, which the first call writes."""
    path = setting.folder / "events.parquet"
    if not path.exists():
        rows = range(ROWS)
        columns = {"key": [f"key-{i}" for i in rows], "value": list(rows), "_weir_seq": list(rows)}
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), path)
    return path


def scan(setting: Setting) -> Figure:
    """Return the figure of the time from opening a batch to its first row, beside Spark's first row
    of the same folder."""
    setting.durable(True)
    stream = Stream.made(setting, MANY)
    files = FILES if setting.full else FEW_FILES
    for _ in range(files):
        stream.append(content(setting))
    root = spark_path(setting.settings.warehouse, str(stream.stream_id))

    def first(frame: DataFrame) -> None:
        assert frame.first() is not None

    def ours() -> float:
        group = stream.group()
        start = time.perf_counter()
        slices, fields = group.plan(group.open())
        assert len(slices) == MANY * files
        whole = Slices(str(stream.name), stream.stream_id, slices, fields)
        first(frame_of(setting.spark, setting.settings, whole, order="segment"))
        return time.perf_counter() - start

    schema = "key string, value bigint, _weir_seq bigint"
    return Figure(
        "batch/scan",
        f"from opening a batch of {MANY:,} segments and {MANY * files:,} files to its first row, "
        "beside the first row of the same folder, by Spark",
        ours,
        lambda: first(setting.spark.read.schema(schema).parquet(root)),
        limit=1.5,
    )


def since_checkpoint(setting: Setting) -> Figure:
    """Return the figure of reading what is new in a stream of many commits, beside one of few."""
    setting.durable(True)
    many, few = 100_000 if setting.full else 20_000, 10
    reads = 20
    rows = pa.table({"key": [f"key-{i}" for i in range(ROWS)], "value": list(range(ROWS))})

    def side(commits: int) -> Callable[[], float]:
        stream = Stream.made(setting, FEW)
        _commit_in_bulk(setting, stream, commits)
        group = stream.group("tail")
        checkpoint(setting.database, group.name, name="here")

        def run() -> float:
            seconds = 0.0
            for _ in range(reads):
                shared(setting.settings).append(
                    str(stream.name), rows, writer_id="bench", batch_id=str(setting.number()),
                )  # fmt: skip
                start = time.perf_counter()
                batch = group.open()
                slices, fields = group.plan(batch)
                read = sum(rows_of(setting.settings, one, fields) for one in slices)
                group.commit(batch)
                seconds += time.perf_counter() - start
                assert read == ROWS
            return seconds

        return run

    return Figure(
        "batch/since_checkpoint",
        f"{reads} times reading (with pyarrow) and committing the {ROWS} events that are new, in a "
        f"stream of {FEW} segments that {many:,} commits were made to, beside {few}",
        side(many),
        side(few),
        limit=1.5,
    )


def rows_of(settings: Settings, one: FileSlice, fields: list[Field]) -> int:
    return int(read_slice(settings, one, fields, ["key", "value"]).num_rows)


def _commit_in_bulk(setting: Setting, stream: Stream, commits: int) -> None:
    """Insert `commits` commits, a second apart, each of one file that is only a name."""
    connection = psycopg2.connect(setting.server.dsn("weir", "postgres"))
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("SET search_path = weir_internal, weir")
        cursor.execute(_COMMITS, {"s": stream.stream_id, "n": commits, "m": FEW, "rows": ROWS})
        cursor.execute("VACUUM (ANALYZE) transaction, data_file, time_index, segment_tail, stream")
    connection.close()


# Commit i, of n, writes to segment i mod m.
_COMMITS = """
CREATE TEMP TABLE made AS
SELECT stream_id, stream_name, i, i %% %(m)s AS segment_id, (i / %(m)s) * %(rows)s AS start_offset,
       last_clock - (%(n)s - i) * 1000000::bigint AS clock
FROM stream, generate_series(0, %(n)s - 1) i WHERE stream_id = %(s)s;
INSERT INTO transaction (stream_id, stream_name, transaction_number, writer_id, batch_id,
    fingerprint, state, epoch, opened_at, lease_until, ended_at, clock, events, bytes, files,
    allow_repeated_files, source)
SELECT stream_id, stream_name, i + 1, 'bulk',
       i::text, '', 'committed', 0, clock_time(clock), clock_time(clock), clock_time(clock), clock,
       %(rows)s, 10 * %(rows)s, 1, false, 'bench' FROM made;
INSERT INTO data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
    transaction_number, first_seq, last_seq, schema_version, path)
SELECT stream_id, stream_name, segment_id, start_offset, %(rows)s, 10 * %(rows)s, i + 1, 0,
       %(rows)s - 1, 1, stream_id || '/' || i FROM made;
INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events, start_byte, bytes,
    clock, transaction_number)
SELECT stream_id, stream_name, segment_id, start_offset, %(rows)s, 10 * start_offset, 10 * %(rows)s,
       clock, i + 1 FROM made;
UPDATE segment_tail t SET tail_offset = m.events, tail_bytes = 10 * m.events
FROM (SELECT segment_id, count(*) * %(rows)s AS events FROM made GROUP BY segment_id) m
WHERE t.stream_id = %(s)s AND t.segment_id = m.segment_id;
UPDATE stream SET next_transaction_number = %(n)s + 1 WHERE stream_id = %(s)s;
DROP TABLE made;
"""


def facade(setting: Setting) -> Figure:
    """Return the figure of the Python data source, beside the native path."""
    name = appended(setting)
    config = setting.folder / "weir.toml"
    config.write_text(
        f'state = "{setting.folder}"\ndatabase = "{setting.dsn}"\n'
        f'warehouse = "{setting.settings.warehouse}"\n'
    )
    register(setting.spark)
    source = setting.spark.read.format("weir").option("config", str(config))

    def all_of(frame: DataFrame) -> None:
        frame.write.format("noop").mode("overwrite").save()

    return Figure(
        "batch/facade",
        '5 million events by spark.read.format("weir"), beside the native path in the same order',
        lambda: all_of(source.load(str(name))),
        lambda: all_of(setting.frame(name, "segment")),
        limit=None,
        runs=3,
        small_runs=1,
        warm_up=1 if setting.full else 0,
    )


FIGURES = {
    "batch/open": partial(wide, "open"),
    "batch/commit": partial(wide, "commit"),
    "batch/scan": scan,
    "batch/since_checkpoint": since_checkpoint,
    "batch/facade": facade,
}
