"""Read the batches of a reader group as pyarrow tables, without a JVM."""

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from weir.adjunct.pins import Pin
from weir.adjunct.versions import AdjunctVersion
from weir.arrow.read import concatenated, read_rows
from weir.arrow.rejected import staged_rejected
from weir.arrow.stores import Stores
from weir.arrow.tables import as_table, canonical, in_types
from weir.consumers import failures
from weir.consumers.adjuncts import AdjunctStoreManager
from weir.consumers.copying import check, send, too_long, write_csv
from weir.consumers.engine import Copy
from weir.controller.merged_columns import merged_columns, own_columns
from weir.controller.queries import Cut
from weir.controller.read_plan import Slices
from weir.errors import InvalidInput, WeirError, is_mistake
from weir.front_ends import do
from weir.installation.extras import with_spark
from weir.installation.opened import Installation
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.folder_files import Folder, FolderFile
from weir.kernel.schema import from_arrow, to_read
from weir.kernel.texts import copied_texts, rows_as_json
from weir.kernel.writer import stage_table
from weir.model.schema import PLACES, SEQ, STREAM, Field, stored_name
from weir.model.segment import segment_name
from weir.reader_groups.outputs.tables import ORDER
from weir.warehouse.filesystem import not_writable

_IN_WRITE_ORDER = (("_clock", "ascending"), (SEQ, "ascending"))
# How pyarrow says that a table has no such column, or a function no such type.
_MISTAKES = ("does not exist in schema", "No match for FieldRef", "has no kernel matching input")


@dataclass(frozen=True)
class Pyarrow:
    """Tables in the memory of this process."""

    app: Installation

    def begin(self) -> None:
        """Make ready for a consumer."""

    def frame(self, rows: object) -> pa.Table | None:
        """Return rows as a table with types that streams have; None for what are no rows."""
        try:
            return canonical(as_table(rows))
        except InvalidInput as error:
            if error.code == "frame_unsupported":
                return None
            raise

    def columns(self, frame: pa.Table) -> list[Field]:
        """Return the columns of a table in Spark's JSON form."""
        return from_arrow(frame.schema)

    def is_nothing(self, frame: pa.Table) -> bool:
        """Return whether a result has neither rows nor columns."""
        return not frame.num_rows and not frame.num_columns

    def without(self, frame: pa.Table, names: Collection[str]) -> pa.Table:
        """Return a table without these columns."""
        return frame.drop_columns([name for name in names if name in frame.column_names])

    def kept(self, frame: pa.Table) -> pa.Table:
        """Return the table, which is computed already."""
        return frame

    def release(self, frames: Sequence[pa.Table]) -> None:
        """Do nothing: nobody keeps them."""

    def read(self, read: Slices, order: str) -> pa.Table:
        """Return the events of a stream with their places."""
        schema = to_read(read.fields)
        return self.rows(read, schema, order).drop_columns([SEQ])

    def rows(self, read: Slices, schema: pa.Schema, order: str) -> pa.Table:
        """Return the events of a stream with their places and ranks."""
        settings, wanted = self.app.settings, list(schema.names)
        parts = [read_rows(settings, one, schema, wanted) for one in read.slices]
        found = concatenated(parts, schema, wanted)
        return found.sort_by(list(_IN_WRITE_ORDER)) if order == "stream" else found

    def merged(self, streams: Sequence[Slices], columns: Sequence[str] | None) -> pa.Table:
        """Return the events of several streams in write order, with `_stream` and their places."""
        fields = merged_columns(streams, columns)
        parts = [_merged_part(self, one, fields) for one in sorted(streams, key=lambda s: s.name)]
        names = [field["name"] for field in fields]
        order = [("_clock", "ascending"), (STREAM, "ascending"), (SEQ, "ascending")]
        return pa.concat_tables(parts).sort_by(order).select([*names, STREAM, *PLACES])

    def adjuncts(self, pins: Mapping[str, Pin], manager: AdjunctStoreManager) -> Stores:
        """Return the tables of a batch's stores."""
        return Stores(self.app, pins, manager)

    def build_version(self, store: str, cut: Cut, clock: int) -> AdjunctVersion:
        """Refuse to build a version of a store. Raises InvalidInput."""
        raise InvalidInput(
            "needs_spark",
            f"adjunct store {store} has no version that is complete to {cut}, and only Spark can "
            f"build it; {do('adjunct', adjunct_stores=[store])}, or {with_spark()}.",
        )

    def stage(self, opened: list[Attempt], frame: pa.Table) -> list[Staged]:
        """Write a table for the one open attempt; add the attempt of rejected rows."""
        typed = in_types(frame, opened[-1].fields)
        staged = stage_table(self.app.settings.warehouse, opened[-1], typed)
        return staged_rejected(self.app, staged, opened)

    def write_folder(self, folder: Folder, frame: pa.Table) -> Sequence[FolderFile]:
        """Write the rows of a table below a folder, and return the files that are there."""
        return folder.write(frame.to_batches())

    def copy(self, frame: pa.Table, copy: Copy) -> tuple[tuple[str, ...], int]:
        """Send the rows of a table to a COPY, in one transaction."""
        texts = pa.table(
            [copied_texts(column) for column in frame.columns],
            names=[f"_{i}" for i in range(frame.num_columns)],
        )
        if answer := too_long(texts, copy.longest):
            check(copy.table, answer)
        if not texts.num_rows:
            return (), 0
        rows = io.BytesIO()
        write_csv(texts, rows)
        answer = send(self.app.database, copy.statement, rows, texts.num_rows)
        check(copy.table, answer)
        assert answer.piece is not None, answer
        return (answer.piece,), answer.rows

    def ordered(self, frame: pa.Table) -> pa.Table:
        """Return a table with two more columns that say the order of its rows (`ORDER`)."""
        clock, place = pa.array([0] * frame.num_rows), pa.array(range(frame.num_rows), pa.int64())
        if set(PLACES) <= set(frame.column_names):
            clock, place = frame["_clock"], frame["_offset"]
        for name, values in zip(ORDER, (clock, place), strict=True):
            frame = frame.append_column(name, values.cast(pa.int64()))
        return frame

    def failed_events(
        self, frame: pa.Table, group: str, reason: str, fields: Sequence[Field]
    ) -> pa.Table:
        """Return events on which a group failed as rows of `<stream>.rejected`."""
        stored = {field["name"]: stored_name(field) for field in fields}
        frame = frame.rename_columns([stored.get(name, name) for name in frame.column_names])
        sources = [
            f"group {group}, segment {segment_name(one)}" for one in frame["_segment"].to_pylist()
        ]
        return pa.table(
            {
                "row": pa.array(rows_as_json(frame.drop_columns(list(PLACES))), pa.string()),
                "source": pa.array(sources, pa.string()),
                "place": frame["_offset"],
                "reason": pa.array([reason] * frame.num_rows, pa.string()),
            }
        )

    def changed(self, names: Sequence[str], result: pa.Table, events: pa.Table) -> str:
        """Return the first of these columns of which the result has a value that none of the events
        has, or nothing. Nobody can look into what a program has computed, so values are compared:
        those of each key must be the key of an event of the batch."""
        there = {name.lower(): name for name in events.column_names}
        for name in names:
            if name.lower() not in there:
                return name
            known = events[there[name.lower()]]
            if not result.num_rows:
                continue
            mine = result[name]
            if mine.type != known.type:
                return name
            if not pc.all(pc.is_in(mine, value_set=pc.unique(known))).as_py():
                return name
        if len(names) > 1:
            pairs = events.select([there[name.lower()] for name in names])
            if not _distinct(result.select(list(names))) <= _distinct(pairs):
                return names[0]
        return ""

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Run a block in which files of the warehouse are written; raise Unavailable if its storage
        refuses."""
        try:
            yield
        except OSError as error:
            raise not_writable(self.app.settings.warehouse, error) from error

    def of_storage(self, error: Exception) -> WeirError | None:
        """Return None: a table is read before the function gets it."""
        return None

    def caused_by_events(self, error: Exception) -> bool:
        """Return whether a smaller batch may succeed."""
        return not self.is_programs(error) and failures.caused_by_events(error)

    def is_programs(self, error: Exception) -> bool:
        """Return whether an error is a mistake in the program's text, such as a column that is not
        there."""
        return is_mistake(error) or (
            isinstance(error, (KeyError, pa.ArrowException))
            and any(said in str(error) for said in _MISTAKES)
        )

    def sentence(self, error: Exception) -> str:
        """Return what went wrong, in one line."""
        return failures.sentence(error)


def _merged_part(engine: Pyarrow, read: Slices, fields: list[Field]) -> pa.Table:
    """Return the events of one stream with the columns of a merged read, and their ranks."""
    rows = engine.rows(read, to_read(own_columns(fields, read)), "segment")
    return rows.append_column(STREAM, pa.array([read.name] * rows.num_rows, pa.string()))


def _distinct(table: pa.Table) -> set[tuple[object, ...]]:
    found = table.group_by(table.column_names).aggregate([])
    return set(zip(*(column.to_pylist() for column in found.columns), strict=True))
