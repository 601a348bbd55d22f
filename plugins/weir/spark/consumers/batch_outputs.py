"""Write the outputs of a batch to streams, Parquet folders and tables, before its commit."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from sqlalchemy import Connection

from weir.controller.attempts import abort_all
from weir.controller.staged import Staged
from weir.controller.transactions import Attempt
from weir.errors import Conflict
from weir.installation.opened import Installation
from weir.model.names import StreamName, stream_name
from weir.reader_groups.batch import Batch, check_held
from weir.reader_groups.outputs.records import record_output
from weir.reader_groups.outputs.tables import (
    ORDER,
    Column,
    StagedTable,
    drop_staging,
    make_staging,
    read_table,
)
from weir.spark.appends.appender import Appender
from weir.spark.base.progress import watched
from weir.spark.base.session import check_classic, moved, writing_session
from weir.spark.consumers.outputs import Output
from weir.spark.consumers.parquet_output import named_folders, partitions_of
from weir.spark.consumers.places import (
    check_key_kept,
    check_last_row_known,
    with_order,
    without_places,
)
from weir.spark.consumers.table_output import copy_rows, longest, matched
from weir.warehouse.paths import spark_path


@dataclass
class BatchOutputs:
    """What one attempt of a batch has written so far. `frames`: the events that are delivered, by
    the names of their streams. `opened`: its appends, whose leases the reader renews."""

    app: Installation
    batch: Batch
    order: str  # in which the reader reads
    frames: Mapping[str, DataFrame]
    opened: list[Attempt] = field(default_factory=list)
    staged: list[Staged] = field(default_factory=list)
    tables: list[StagedTable] = field(default_factory=list)
    parquet: list[tuple[Output, dict[str, Any]]] = field(default_factory=list)
    _written: set[tuple[str, str, str]] = field(default_factory=set)

    def write(self, output: Output, frame: DataFrame) -> None:
        """Compute a result and write it for its output. Raises as `OpenBatch.write` does."""
        check_classic(frame)
        if output.identity in self._written:
            raise Conflict(
                "output_written_twice",
                f"{output} is already written in batch {self.batch.batch_id} of group "
                f"{self.batch.group}; write each output once, with all its rows.",
            )
        if output.kind == "stream":
            self.append(stream_name(output.name), without_places(frame))
        elif output.kind == "parquet":
            self._write_parquet(output, frame if output.places else without_places(frame))
        else:
            self._copy(output, frame)
        self._written.add(output.identity)

    def append(self, name: StreamName, frame: DataFrame) -> None:
        """Write a result for a stream."""
        appender = Appender(self.app)
        attempt = appender.begin_frame(
            name, f"group {self.batch.group}", self.batch.identity,
            guard=partial(check_held, batch=self.batch),
        )  # fmt: skip
        assert isinstance(attempt, Attempt), name  # it is committed together with the batch
        opened = [attempt]
        with appender.writing(opened):
            self.staged += appender.stage_frame(opened, frame)
        self.opened += opened

    def _write_parquet(self, output: Output, frame: DataFrame) -> None:
        batch = self.batch
        folder = (
            f"{output.path}/group={batch.group}/batch={batch.identity}/attempt={batch.attempt}/"
        )
        one = {"kind": "parquet", "output": output.name, "root": output.root, "path": folder}
        if output.partition_by:
            one["partitions"] = partitions_of(output, frame)
            frame = named_folders(output, frame)
        record_output(self.app.database, batch, one)
        what, where = f"writing {output.name}", (output.root, folder)
        writing, frame = writing_session(frame, self.app.say, {})  # no key is computed here
        with watched(self.app.spark, what, self.app.say, where):
            rows = moved(frame, writing).write.mode("overwrite")
            if output.partition_by:
                rows = rows.partitionBy(*output.partition_by)
            if output.compression:
                rows = rows.option("compression", output.compression)
            if output.rows_per_file:
                rows = rows.option("maxRecordsPerFile", output.rows_per_file)
            rows.parquet(spark_path(output.root, folder))
        self.parquet.append((output, one))

    def _copy(self, output: Output, frame: DataFrame) -> None:
        database, table, how = self.app.database, output.name, output.publication
        known, kept = database.transaction(lambda c: self._table(c, output))
        check_key_kept(output, kept, frame, self.frames)
        ordered = with_order(frame) if how.ordered else frame
        frame = without_places(ordered, {column.name for column in known})
        result = frame.drop(*ORDER)
        columns = matched(table, known, result.schema, (*how.key, *how.newest))
        staging, copy = make_staging(database, self.batch, len(self.tables), columns, how.ordered)
        # Recorded first, so that it is dropped in any case.
        self.tables.append(StagedTable(table, staging, (), 0, how))
        with watched(self.app.spark, f"writing {table}", self.app.say):
            pieces, rows = copy_rows(frame, table, copy, self.app.settings, longest(columns))
        self.tables[-1] = StagedTable(table, staging, pieces, rows, how)

    def _table(self, connection: Connection, output: Output) -> tuple[list[Column], list[str]]:
        kept: list[str] = []
        if output.publication.ordered:
            kept = check_last_row_known(connection, self.frames, self.order, output)
        return read_table(connection, output.name, output.publication), kept

    def discard(self) -> None:
        """Discard what was written as far as possible now; the rest becomes garbage."""
        abort_all(self.app.database, self.opened)
        for table in self.tables:
            with contextlib.suppress(Exception):
                drop_staging(self.app.database, table.staging)
        self.opened.clear()
        for written in (self.staged, self.tables, self.parquet, self._written):
            written.clear()
