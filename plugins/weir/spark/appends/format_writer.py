"""`df.write.format("weir")` and `df.writeStream.format("weir")`: appends with Spark's own verbs.

Spark asks for the writer in a Python process beside its driver. There the append is planned, and
there it is committed or aborted. In between, Spark's tasks write the files. What they are given is
how to write them, never a connection.

No process renews the lease of the attempt meanwhile. So it lasts as long as an append may.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from weir.arrow.rejected import staged_rejected
from weir.controller.attempts import abort_all, writing
from weir.controller.commit import commit_begun
from weir.controller.micro_batches import (
    abort_micro_batch,
    begin_micro_batch,
    check_micro_batch_options,
    commit_micro_batch,
)
from weir.controller.ownership import check_warehouse_ownership
from weir.controller.staged import check_written
from weir.controller.transactions import Committed, abort, begin
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.installation.opened import Installation, shared_database
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.stage import Layout, Written
from weir.model.names import StreamName, check_user_columns
from weir.settings import Settings, load
from weir.spark.appends.tasks import write_task
from weir.spark.base.left_over import delete_left_over
from weir.spark.failures.workers import says_why

_QUERY = "sql.streaming.queryId"  # the property of a task that names its query


@dataclass
class _Message(WriterCommitMessage):
    """What a task has written. Of a micro-batch also how, and for which query: Spark asks for a
    further writer to commit it, which knows nothing of the one that planned."""

    written: Written
    layout: Layout | None = None
    query: str | None = None


@dataclass(frozen=True)
class _Place:
    """Where a write appends. Tasks get it, too, so it has no settings, but the file of them."""

    stream: StreamName
    writer_id: str
    config: str | None

    def installation(self) -> Installation:
        settings = load({**os.environ, "WEIR_CONFIG": self.config} if self.config else None)
        return Installation(*shared_database(settings), source=_source(self.writer_id))


class _BatchWriter(DataSourceArrowWriter):
    def __init__(self, place: _Place, layout: Layout | None) -> None:
        """`layout`: None if the append was committed before."""
        self._place, self._layout = place, layout

    @says_why
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if self._layout is None:
            return _Message(Written())
        return _Message(write_task(self._layout, iterator))

    @says_why
    def commit(self, messages: Sequence[_Message | None]) -> None:  # type: ignore[override]
        if self._layout is None:
            return
        app, attempts = self._place.installation(), [self._layout.attempt]
        with writing(app.database, app.settings, attempts):
            staged = _ready(app, self._layout, messages, attempts)
            commit_begun(app.database, *staged)

    @says_why
    def abort(self, messages: Sequence[object]) -> None:
        if self._layout is not None:
            abort(self._place.installation().database, self._layout.attempt)


class _StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, place: _Place, layout: Layout | None) -> None:
        """`layout`: None where Spark asks for a writer that only commits or aborts."""
        self._place, self._layout = place, layout

    @says_why
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        assert self._layout is not None
        query = TaskContext.get().getLocalProperty(_QUERY)  # type: ignore[union-attr]
        assert query, f"Spark tells its tasks the query ({_QUERY})"
        return _Message(write_task(self._layout, iterator), self._layout, query)

    @says_why
    def commit(self, messages: Sequence[_Message | None], batchId: int) -> None:  # type: ignore[override]
        app, place = self._place.installation(), self._place
        first = next(one for one in messages if one is not None)  # Spark runs a task at least
        assert first.layout is not None
        assert first.query is not None
        attempts = [first.layout.attempt]
        with writing(app.database, app.settings, attempts):
            staged = _ready(app, first.layout, messages, attempts)
            done = commit_micro_batch(
                app.database, staged, writer_id=place.writer_id, query=first.query, batch=batchId
            )
        if done is None:
            abort_all(app.database, attempts)

    @says_why
    def abort(self, messages: Sequence[object], batchId: int) -> None:
        place = self._place
        abort_micro_batch(place.installation().database, place.stream, place.writer_id)


def batch_writer(
    stream: StreamName,
    settings: Settings,
    options: Mapping[str, str],
    schema: StructType,
    *,
    overwrite: bool,
) -> DataSourceArrowWriter:
    """Begin the append of a DataFrame, and return what writes and commits it. Raises InvalidInput
    for options and columns that do not fit; otherwise like `begin`."""
    _check_mode(stream, overwrite=overwrite)
    writer_id, batch_id = options.get("writerId"), options.get("batchId")
    if not writer_id or not batch_id:
        missing = "writerId" if not writer_id else "batchId"
        raise InvalidInput(
            "argument_missing",
            f"the write has no {missing}; give .option('writerId', ...), a name of the job, and "
            ".option('batchId', ...), a name of these rows such as their day: a write of both "
            "again appends nothing twice.",
        )
    with Database.of(settings) as database:
        check_warehouse_ownership(database, settings.warehouse)
        begun = begin(
            database, stream, writer_id=writer_id, batch_id=batch_id, fingerprint="frame",
            lease=settings.transaction_max, source=_source(writer_id),
        )  # fmt: skip
        layout = None
        if not isinstance(begun, Committed):
            layout = _layout(database, settings, begun, schema)
    return _BatchWriter(_Place(stream, writer_id, options.get("config")), layout)


def stream_writer(
    stream: StreamName,
    settings: Settings,
    options: Mapping[str, str],
    schema: StructType,
    *,
    overwrite: bool,
    begins: bool,
) -> DataSourceStreamArrowWriter:
    """Return what writes and commits a micro-batch; begin its append if it `begins` with this.
    Raises like `batch_writer`."""
    _check_mode(stream, overwrite=overwrite)
    writer_id = check_micro_batch_options(options.get("writerId"), options.get("batchId"))
    place = _Place(stream, writer_id, options.get("config"))
    if not begins:
        return _StreamWriter(place, None)
    with Database.of(settings) as database:
        check_warehouse_ownership(database, settings.warehouse)
        begun = begin_micro_batch(
            database, stream, writer_id=writer_id, lease=settings.transaction_max,
            source=_source(writer_id),
        )  # fmt: skip
        return _StreamWriter(place, _layout(database, settings, begun, schema))


def _layout(database: Database, settings: Settings, attempt: Attempt, schema: StructType) -> Layout:
    try:
        check_user_columns(schema.names)
        columns = schema.jsonValue()["fields"]
        layout = Layout.of(settings.warehouse, attempt, columns)
    except BaseException:
        abort(database, attempt)
        raise
    layout.fit.announce()
    return layout


def _ready(
    app: Installation,
    layout: Layout,
    messages: Sequence[_Message | None],
    attempts: list[Attempt],
) -> list[Staged]:
    """Return what is to be committed, with the rejected rows, once its files are seen to be
    there."""
    staged = layout.staged(one.written for one in messages if one is not None)
    delete_left_over(app.settings.warehouse, staged.attempt.folder, staged.paths)
    every = staged_rejected(app, staged, attempts)
    check_written(app.settings.warehouse, every)
    return every


def _check_mode(stream: StreamName, *, overwrite: bool) -> None:
    if overwrite:
        raise InvalidInput(
            "argument_invalid",
            f"stream {stream} would be overwritten, but a stream is only appended to; write with "
            "mode append, and let retention or weir_truncate delete what is old.",
        )


def _source(writer_id: str) -> str:
    return f"format weir, {writer_id}"
