"""Write the outputs of a batch to streams, Parquet folders and tables, before its commit."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, NamedTuple

from sqlalchemy import Connection

from weir.consumers.columns import check_in_files, columns_of_folders, matched
from weir.consumers.engine import Copy, Engine, Frame
from weir.consumers.outputs import Output
from weir.consumers.places import check_key_kept, check_last_row_known, without_places
from weir.controller.attempts import abort_all, writing
from weir.controller.transactions import begin
from weir.errors import Conflict, InvalidInput
from weir.installation.opened import Installation
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.folder_files import ANY, Folder
from weir.model.names import StreamName, stream_name
from weir.model.schema import Field
from weir.queries.reader_groups.outputs.tables import Column
from weir.reader_groups.batch import Batch, check_held
from weir.reader_groups.outputs.publication import Publication
from weir.reader_groups.outputs.records import record_output
from weir.reader_groups.outputs.tables import StagedTable, drop_staging, make_staging, read_table
from weir.warehouse.file_deletion import delete_here
from weir.warehouse.paths import output_folder


class Staging(NamedTuple):
    """A staging table of a reader, which its batches use one after the other: its number and name,
    the COPY that fills it, the columns of the table that it is for, as they were read, of the
    result, and its own. The commit of each batch checks that the table still has them."""

    number: int
    name: str
    copy: str
    known: list[Column]
    given: list[Field]
    columns: list[Column]


Stagings = dict[tuple[str, Publication], Staging]  # of a reader, by table and how rows get into it


def drop_stagings(app: Installation, stagings: Stagings) -> None:
    """Drop the staging tables of a reader as far as possible now; the upkeep drops the rest."""
    for one in stagings.values():
        with contextlib.suppress(Exception):
            drop_staging(app.database, one.name)
    stagings.clear()


@dataclass
class BatchOutputs(Generic[Frame]):
    """What one attempt of a batch has written so far. `frames`: returns the events that are
    delivered, by the names of their streams. `stagings`: of the reader. `opened`: its appends,
    whose leases the reader renews."""

    app: Installation
    engine: Engine[Frame]
    batch: Batch
    order: str  # in which the reader reads
    frames: Callable[[], Mapping[str, Frame]]
    stagings: Stagings = field(default_factory=dict)
    opened: list[Attempt] = field(default_factory=list)
    staged: list[Staged] = field(default_factory=list)
    tables: list[StagedTable] = field(default_factory=list)
    parquet: list[tuple[Output, dict[str, str]]] = field(default_factory=list)
    _written: set[tuple[str, str, str]] = field(default_factory=set)
    _folders: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def write(self, output: Output, rows: object) -> None:
        """Compute a result and write it for its output. Raises as `OpenBatch.write` does."""
        frame = self.engine.frame(rows)
        if frame is None:
            raise InvalidInput(
                "frame_unsupported",
                f"the rows for {output} are a {type(rows).__module__}.{type(rows).__name__}, which "
                "this reader does not write; give a DataFrame of Spark, or to a reader on pyarrow "
                "a table, a DataFrame of pandas or Polars, or a list of dictionaries.",
            )
        if output.identity in self._written:
            raise Conflict(
                "reader_misused",
                f"{output} is already written in batch {self.batch.batch_id} of group "
                f"{self.batch.group}; write each output once, with all its rows.",
            )
        nothing = self.engine.is_nothing(frame)
        if output.kind == "table":  # which no rows may replace
            self._copy(output, None if nothing else frame)
        elif output.kind == "stream" and not nothing:
            self.append(stream_name(output.name), without_places(self.engine, frame))
        elif output.kind == "parquet" and not nothing:
            kept = frame if output.places else without_places(self.engine, frame)
            self._write_parquet(output, kept)
        self._written.add(output.identity)

    def append(self, name: StreamName, frame: Frame) -> None:
        """Write a result for a stream."""
        database, settings = self.app.database, self.app.settings
        attempt = begin(
            database, name, writer_id=f"group {self.batch.group}", batch_id=self.batch.identity,
            fingerprint="frame", lease=settings.transaction_lease, source=self.app.source,
            guard=partial(check_held, batch=self.batch),
        )  # fmt: skip
        assert isinstance(attempt, Attempt), name  # it is committed together with the batch
        opened = [attempt]
        with self.engine.explaining(), writing(database, settings, opened):
            self.staged += self.engine.stage(opened, frame)
        self.opened += opened

    def _write_parquet(self, output: Output, frame: Frame) -> None:
        batch, columns = self.batch, self.engine.columns(frame)
        check_in_files(output, columns)
        one = {"kind": "parquet", "output": output.name, "root": output.root}
        if output.partition_by:
            one["partitions"] = columns_of_folders(output, columns)
        # Each time to another folder: what a result that failed has left, or tasks that nobody
        # waits for still write, does not count.
        again = self._folders[output.identity]
        path = output_folder(output.path, batch.group, batch.identity, batch.attempt, again)
        self._folders[output.identity] += 1
        folder = Folder(
            output.root, path, columns, output.partition_by, output.compression or "snappy",
            output.rows_per_file or ANY, is_output=True,
        )  # fmt: skip
        one["path"] = path
        record_output(self.app.database, batch, one)
        try:
            written = self.engine.write_folder(folder, frame)
            if not written and not output.partition_by:
                folder.write_columns()
        except BaseException:
            self._empty(one)
            raise
        if written or not output.partition_by:  # else there is no folder
            self.parquet.append((output, one))

    def _empty(self, one: Mapping[str, str]) -> None:
        """Delete a folder that does not count, as far as possible now; the rest is garbage."""
        delete_here([(one["root"], one["path"])])

    def _copy(self, output: Output, frame: Frame | None) -> None:
        """Stage a result for a table. None: it has neither rows nor columns."""
        database, table, how = self.app.database, output.name, output.publication
        engine, used = self.engine, self.stagings.get((table, how))
        kept: list[str] = []
        if (
            used is not None
            and not how.ordered
            and (frame is None or self._given(frame, used.known) == used.given)
        ):
            known = used.known
        else:
            known, kept = database.transaction(lambda c: self._table(c, output))
        if frame is None:
            columns = [column for column in known if not column.generated]
            staging = used or self._staging(table, how, known, [], columns)
            self.tables.append(StagedTable(table, staging.name, (), 0, how))
            return
        check_key_kept(engine, output, kept, frame, self.frames())
        given = self._given(frame, known)
        columns = matched(table, known, given, (*how.key, *how.newest))
        ordered = engine.ordered(frame) if how.ordered else frame
        rows = without_places(engine, ordered, {column.name for column in known})
        staging = self._staging(table, how, known, given, columns)
        pieces, count = engine.copy(rows, Copy(table, staging.copy, columns))
        self.tables.append(StagedTable(table, staging.name, pieces, count, how))

    def _table(self, connection: Connection, output: Output) -> tuple[list[Column], list[str]]:
        kept: list[str] = []
        if output.publication.ordered:
            kept = check_last_row_known(connection, self.frames(), self.order, output)
        return read_table(connection, output.name, output.publication), kept

    def _given(self, frame: Frame, known: Sequence[Column]) -> list[Field]:
        """Return the columns of a result for a table with the columns `known`."""
        there = {column.name for column in known}
        return self.engine.columns(without_places(self.engine, frame, there))

    def _staging(
        self,
        table: str,
        how: Publication,
        known: list[Column],
        given: list[Field],
        columns: list[Column],
    ) -> Staging:
        """Return the reader's staging table for rows with these columns; make it, if it has none
        yet, or one for other columns."""
        used = self.stagings.get((table, how))
        if used is None or (used.known, used.columns) != (known, columns):
            number = len(self.stagings) if used is None else used.number
            name, copy = make_staging(self.app.database, self.batch, number, columns, how.ordered)
            used = self.stagings[table, how] = Staging(number, name, copy, known, given, columns)
        return used

    @contextlib.contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Discard what the block has written if it fails. What was written before it stays."""
        lists: list[list[Any]] = [self.opened, self.staged, self.tables, self.parquet]
        before, written = [len(one) for one in lists], set(self._written)
        try:
            yield
        except BaseException as error:
            opened, _, _, parquet = (one[n:] for one, n in zip(lists, before, strict=True))
            for one, n in zip(lists, before, strict=True):
                del one[n:]
            self._written = written
            if getattr(error, "code", "") != "database_unavailable":  # else the leases expire
                abort_all(self.app.database, opened)
            for _, one in parquet:
                self._empty(one)
            raise

    def discard(self) -> None:
        """Discard what was written as far as possible now; the rest becomes garbage."""
        abort_all(self.app.database, self.opened)
        drop_stagings(self.app, self.stagings)
        self.opened.clear()
        for written in (self.staged, self.tables, self.parquet, self._written):
            written.clear()
