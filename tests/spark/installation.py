"""What tests of the data path share: an installation, and a second way to know what it holds."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import text

from tests.committed_folders import committed_folders
from tests.spark.xxh64 import position
from weir.consumers.consumer import Consumer
from weir.consumers.outputs import Output
from weir.controller.scale import scale
from weir.controller.streams import create_stream
from weir.controller.transactions import Committed
from weir.database.connection import Database
from weir.inputs.append import FilesOf, append_files
from weir.inputs.files import find_inputs
from weir.installation.opened import Installation as Opened
from weir.kernel.text_options import TextOptions
from weir.model.names import StreamName, stream_name
from weir.programs.store import StreamStore
from weir.reader_groups.batches.reading import Options, Reading
from weir.reader_groups.groups.lifecycle import create_reader_group
from weir.retention.manual_truncation import truncate
from weir.settings import Settings
from weir.spark.appends.appender import Appender
from weir.spark.consumers.engine import Spark
from weir.spark.reads.streams import read as read_stream
from weir.warehouse.filesystem import filesystem

_ids = itertools.count()


@contextmanager
def setting(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set settings of a user's session during the block."""
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


PLACE = ["_segment", "_offset", "_clock"]


@dataclass
class Installation:
    """A database, a warehouse and a Spark session."""

    spark: SparkSession
    database: Database
    settings: Settings
    said: list[str] = field(default_factory=list)

    @property
    def appender(self) -> Appender:
        """Return an appender as a job has it."""
        return Appender(self.opened)

    @property
    def opened(self) -> Opened:
        """Return the installation as a job has it. What it says is kept in `said`."""
        return Opened(self.settings, self.database, "test", self.said.append, lambda: self.spark)

    @property
    def input(self) -> str:
        """Return the input root."""
        return self.settings.input_roots[0]

    def query(self, sql: str, **parameters: Any) -> list[Any]:
        """Return rows of the metadata."""
        return list(self.database.transaction(lambda c: c.execute(text(sql), parameters).all()))

    def value(self, sql: str, **parameters: Any) -> Any:
        """Return the one value of a query."""
        ((value,),) = self.query(sql, **parameters)
        return value

    def create(
        self, name: str = "s/events", key: str = "k", segments: int = 4, **options: Any
    ) -> StreamName:
        """Create a stream, and return its name."""
        stream = stream_name(name)
        create_stream(
            self.database, stream, routing_key=key, segments=segments,
            request_id=f"create {next(_ids)}", **options,
        )  # fmt: skip
        return stream

    def group(self, *streams: StreamName, name: str = "readers", **options: Any) -> str:
        """Create a reader group, and return its name."""
        create_reader_group(
            self.database, name, streams, request_id=f"group {next(_ids)}", **options
        )
        return name

    def ingest(
        self,
        stream: StreamName,
        paths: Sequence[str],
        format_: str = "parquet",
        again: str = "",
        infer: str = "types",
        **options: Any,
    ) -> Committed:
        """Append files, as the job does. `options` are those of text files."""
        how = TextOptions(**options)
        inputs = find_inputs(paths, self.settings.input_roots, format_, how, infer)
        files = FilesOf(stream, inputs, again)
        return append_files(self.opened, files, self.appender.stage_files)

    def append(
        self, stream: StreamName, frame: DataFrame | pd.DataFrame | list[Any], batch: str = ""
    ) -> Committed:
        """Append a DataFrame, or rows (k, n), under a new identity unless one is given."""
        if isinstance(frame, list):
            frame = self.spark.createDataFrame(frame, "k string, n long")
        elif isinstance(frame, pd.DataFrame):
            frame = self.spark.createDataFrame(frame)
        return self.appender.append_frame(
            stream, frame, writer_id="test", batch_id=batch or f"batch {next(_ids)}"
        )

    def put(self, stream: StreamName, rows: pa.Table | list[Any]) -> Committed:
        """Append a table, or rows (k, n), without Spark: events that a test only reads."""
        if isinstance(rows, list):
            keys, numbers = zip(*rows, strict=True)
            rows = pa.table({"k": pa.array(keys, pa.string()), "n": pa.array(numbers, pa.int64())})
        return StreamStore(self.settings, self.database, "test").append(str(stream), rows)

    def scale(self, stream: StreamName, seal: Sequence[str], **options: Any) -> Mapping[str, Any]:
        """Scale under a new request."""
        return scale(self.database, stream, seal=seal, request_id=f"scale {next(_ids)}", **options)

    def truncate(self, stream: StreamName, cut: str) -> Mapping[str, Any]:
        """Truncate under a new request."""
        return truncate(self.database, stream, cut, request_id=f"truncate {next(_ids)}")

    def frame(self, stream: StreamName, order: str = "segment") -> DataFrame:
        """Return the stream as a DataFrame."""
        return read_stream(str(stream), order=order, spark=self.spark, settings=self.settings)

    def read(
        self, stream: StreamName, order: str = "segment", columns: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Return all events, in the order in which the tasks give them."""
        frame = self.frame(stream, order)
        if columns:
            frame = frame.select(*columns, *PLACE)
        return to_pandas(frame)

    def consumer(
        self, group: str, function: Any, *outputs: str, **options: Any
    ) -> Consumer[DataFrame]:
        """Return a consumer, whose reader is `reader` unless it is named."""
        read = {name: options.pop(name) for name in Options.__annotations__ if name in options}
        options = {"reader_id": "reader", **options}
        parsed = tuple(Output.parse(o, self.settings.output_roots) for o in outputs)
        return Consumer(
            installation=self.opened, engine=Spark(self.opened), group=group, function=function,
            outputs=parsed, reading=Reading.of(self.settings, **read), **options,
        )  # fmt: skip

    def facts(self, stream: StreamName) -> pd.DataFrame:
        """Return what the metadata and the files say, by pyarrow alone: each event with its place.

        Ordered by segment and offset; `_range` is its segment's key range, `_weir_seq` its rank.
        """
        rows = self.query(
            """SELECT f.path, f.segment_id, f.start_offset, f.events, t.clock, s.key_low, s.key_high
            FROM data_file f JOIN segment s USING (stream_id, segment_id)
            JOIN transaction t USING (stream_id, transaction_number)
            JOIN stream USING (stream_id)
            WHERE stream.stream_name = :name ORDER BY f.segment_id, f.start_offset""",
            name=str(stream),
        )
        parts = []
        system, base = filesystem(self.settings.warehouse)
        for row in rows:
            table = pq.ParquetFile(system.open_input_file(f"{base}/{row.path}")).read()
            assert table.num_rows == row.events, row.path
            table = _plain(table)
            part = table.to_pandas()
            part["_file"] = row.path
            part["_segment"] = row.segment_id
            part["_offset"] = range(row.start_offset, row.start_offset + row.events)
            part["_clock"] = row.clock
            part["_range"] = [(row.key_low, row.key_high)] * row.events
            parts.append(part)
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def check(self, stream: StreamName, key: str | None = "k", read: bool = False) -> pd.DataFrame:
        """Check everything that must hold of a stream whatever was done to it, and return its
        facts.

        Each file's rows are in the order of their ranks, offsets have no gap, and each key lies in
        its segment. `read`: and Spark reads just these events in each of the orders.
        """
        facts = self.facts(stream)
        if facts.empty:
            assert not read or self.frame(stream).collect() == []
            return facts
        for _, one in facts.groupby("_segment"):
            steps = one["_offset"].diff().dropna()
            assert (steps == 1).all(), "offsets have a gap"
        # Ranks are compared by file, not by commit and segment: a commit that wrote to two segments
        # which were merged meanwhile has first the files of one, then of the other. The order of
        # each key is checked below.
        by_file = facts.groupby("_file")["_weir_seq"]
        assert (by_file.diff().dropna() > 0).all(), "a file is not in the order of its ranks"
        if key is not None:
            for value, (low, high) in zip(facts[key], facts["_range"], strict=True):
                assert value is None or low <= position(value) < high, (value, low, high)
            # Segments of a key follow one another in the order of their ids.
            for value, one in facts.groupby(key):
                places = list(zip(one["_clock"], one["_weir_seq"], strict=True))
                assert places == sorted(places), f"{value!r} is not in the order of its commits"
        if read:
            for order in ("segment", "stream", "none"):
                self.check_read(stream, facts, order)
        return facts

    def check_read(self, stream: StreamName, facts: pd.DataFrame, order: str) -> None:
        """Check that Spark reads these events, each with its place, in the order asked for."""
        read = self.read(stream, order)
        user = [c for c in read.columns if c not in PLACE]
        wanted = facts[[*[c for c in user if c in facts], *PLACE, "_weir_seq"]]
        found = read.sort_values(["_segment", "_offset"], ignore_index=True)
        same = wanted.reindex(columns=read.columns)
        pd.testing.assert_frame_equal(found, same, check_dtype=False)
        if order == "stream":
            by = facts.sort_values(["_clock", "_weir_seq"])
            assert list(zip(read["_segment"], read["_offset"], strict=True)) == list(
                zip(by["_segment"], by["_offset"], strict=True)
            ), "not in write order"
        if order == "segment":
            assert (read.groupby("_segment")["_offset"].diff().dropna() > 0).all()


def _plain(table: pa.Table) -> pa.Table:
    """Return a table with timestamps in microseconds, as Spark gives them."""
    for i, one in enumerate(table.schema):
        if pa.types.is_timestamp(one.type):
            table = table.set_column(i, one.name, table.column(i).cast(pa.timestamp("us")))
    return table


def to_pandas(frame: DataFrame) -> pd.DataFrame:
    """Return the rows in the order of the partitions, then of their rows, by Arrow."""
    with setting(frame.sparkSession, {"spark.sql.execution.arrow.pyspark.enabled": "true"}):
        return frame.toPandas()


def plain(events: DataFrame) -> DataFrame:
    """Return each event, without its place."""
    return events.select("k", "n")


def parquet_rows(weir: Installation, group: str, output: str) -> list[int]:
    """Return the `n` of every row that counts in a Parquet output, and check that the record and
    the manifest agree."""
    root = Path(weir.settings.output_roots[0])
    folders = committed_folders(weir.database, group, output)
    manifest = json.loads((root / output / f"group={group}/_manifest.json").read_text())
    assert manifest == {"group": group, "output": output, "folders": folders, "older": []}
    frame = weir.spark.read.parquet(*[str(root / folder) for folder in folders])
    return sorted(row.n for row in frame.collect())


def batches(weir: Installation) -> list[tuple[int, str, int]]:
    """Return the number, the state and the attempts of each batch."""
    rows = weir.query("SELECT batch_id, state, attempt FROM reader_batch ORDER BY batch_id")
    return [tuple(row) for row in rows]
