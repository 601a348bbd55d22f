"""An opened installation: its streams are created, written and read by its methods."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Unpack

import pyarrow as pa

from weir.adjunct.lookup import look_up
from weir.arrow.read import count_events, read_table
from weir.arrow.tail import tail_table
from weir.consumers.reader import Reader
from weir.controller.queries import Cut
from weir.controller.times import Moment
from weir.controller.transactions import Committed
from weir.errors import check_choice
from weir.history.lineage import lineage_of
from weir.operations.engines import CONNECT, engine_of
from weir.operations.form import ENGINES
from weir.programs.appending import append_rows
from weir.programs.methods import Actions
from weir.queries.history.lineage import Step
from weir.reader_groups.batches.lifecycle import Function
from weir.reader_groups.batches.reading import Options, Reading


@dataclass(frozen=True, repr=False)
class StreamStore(Actions):
    """An opened installation of Weir. `weir.open` returns it; a `with` block closes it.

    It keeps its connections to Postgres and may be shared by threads. A forked process must open
    one of its own. Every action that has a form and a command is a method with the same arguments,
    such as `create_stream` or `create_reader_group`.
    """

    engine: str = "pyarrow"  # of its readers

    def __enter__(self) -> "StreamStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<StreamStore of {self.settings.warehouse}, as {self.source}, by {self.engine}>"

    def named(self, source: str) -> "StreamStore":
        """Return the same installation under another source: who appends, in the view
        weir.transactions and in lineage."""
        return replace(self, source=source)

    def append(
        self,
        stream: str,
        rows: object,
        *,
        writer_id: str = "",
        batch_id: str = "",
        complete_until: datetime | str | None = None,
    ) -> Committed:
        """Append rows to a stream, in their order, in one transaction. Return what was committed.

        `rows`: a list of dictionaries (a column that one lacks is null in its row), a pyarrow
        Table, or a DataFrame of pandas, Polars or Spark.

        `writer_id` and `batch_id` identify the append, for programs that may try again. They alone
        decide: if rows were committed under them, nothing is appended (`repeated`), even if these
        are other rows, because Weir does not compare them (semantics 12). Without them each call
        appends once more. `complete_until`: the event time before which this writer has appended
        everything with this append (a datetime, a text, or `done`). Both it and a `batch_id` need a
        `writer_id`.

        Raises BadRows for rows without a routing key and values that would change, if the stream
        does not quarantine them; InvalidInput for columns that do not fit the stream, its routing
        key or its event time, and for a wrong `complete_until`; NotFound for a stream that does not
        exist; Conflict if the stream is sealed, or if the identity was used for rows of another
        kind; Fenced if another try took over, or if what was written is gone; Unavailable if the
        warehouse takes no files; InvariantViolation if the warehouse is not this database's.
        """
        return append_rows(
            self, stream, rows, writer_id=writer_id, batch_id=batch_id,
            complete_until=complete_until,
        )  # fmt: skip

    def read(
        self,
        stream: str,
        *,
        start: Cut | None = None,
        end: Cut | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        event_time_since: Moment | None = None,
        event_time_until: Moment | None = None,
        columns: Sequence[str] | None = None,
        order: str = "segment",
        schema_version: int | None = None,
    ) -> pa.Table:
        return read_table(
            self, stream, start=start, end=end, since=since, until=until,
            event_time_since=event_time_since, event_time_until=event_time_until, columns=columns,
            order=order, schema_version=schema_version,
        )  # fmt: skip

    def count(
        self, stream: str, *, since: Moment | None = None, until: Moment | None = None
    ) -> int:
        return count_events(self, stream, since=since, until=until)

    def tail(
        self, stream: str, count: int = 10, *, columns: Sequence[str] | None = None
    ) -> pa.Table:
        return tail_table(self, stream, count, columns=columns)

    def lineage(
        self,
        of: str,
        *,
        direction: str = "up",
        depth: int | None = None,
        segment: str | None = None,
        from_offset: int | None = None,
        to_offset: int | None = None,
    ) -> list[Step]:
        return self.database.snapshot(
            lambda c: lineage_of(c, of, direction, depth, segment, from_offset, to_offset)
        )

    def picture(self, of: str, *, since: Moment | None = None, until: Moment | None = None) -> str:
        """Return a picture of a stream, or of a reader group, as a page of HTML.

        `of`: a stream (`scope/stream`): the map of its page, with its segments over the key space
        and time, coloured by their rates, scales, rolls, recorded cuts, its head and the positions
        of its reader groups; and the bytes that it kept, and that were truncated. Or a reader
        group: its unread events over time, of each stream that it reads. `since` and `until`: the
        time that is shown, as of `read`; None: all that is known.

        The page has its data, styles and scripts in itself, and asks no network: it can be a file
        that a browser opens, or lie in a frame of a notebook. Raises NotFound for the stream or the
        group, and InvalidInput if there is nothing between the times.
        """
        from weir.pages.picture import picture_of

        return picture_of(self.database, of, since, until)

    def look_up(self, adjunct_store: str, key: object, version: int | None = None) -> Any:
        """Return what a key has in a version of an adjunct store (None: the newest): its value
        columns, and in `_clock` the clock of the event that they come from. None if the key is not
        there. See `weir.adjunct.lookup.look_up`. Raises NotFound for the store and the version."""
        return look_up(self.database, self.settings.warehouse, adjunct_store, key, version)

    def reader(
        self,
        reader_group: str,
        *,
        engine: str = "",
        reader_id: str = "",
        function: Function | None = None,
        **options: Unpack[Options],
    ) -> Reader[Any]:
        """Return a reader of a group: it gives batch after batch, up to the tail at the start.

            for batch in store.reader("totals"):
                batch.commit({"table:reports.totals": totals(batch.events)})

        `engine`: "pyarrow" gives tables of pyarrow, without a JVM; "spark" gives DataFrames. Empty:
        "spark" if the installation was opened with a session, otherwise "pyarrow". Readers of both
        kinds may share a group. `reader_id`: the same for all tries of a task, so that it gets its
        own batch back after a kill. `function`: what makes the results, for the record of each
        batch. `options`: how to read: `order`,
        `expected_readers`, `label`, `batch_events`, `batch_bytes`, `batch_files`, `adjuncts`,
        `manager`.

        Raises InvalidInput for a wrong option, and for Spark without pyspark; the reader raises
        what `weir.consumers.reader.Reader` says.
        """
        if engine:
            check_choice("engine", engine, ENGINES[1:])
        name = self.engine if engine in ("", "spark") and self.engine == CONNECT else engine
        chosen, in_memory = engine_of(self, name or self.engine)
        reading = Reading.of(self.settings, in_memory=in_memory, **options)
        return Reader(self, chosen, reader_group, reading, reader_id=reader_id, function=function)


# What a method does is said once, beside the function that does it.
for _method, _function in (
    (StreamStore.read, read_table), (StreamStore.count, count_events),
    (StreamStore.tail, tail_table), (StreamStore.lineage, lineage_of),
):  # fmt: skip
    _method.__doc__ = _function.__doc__
