"""A batch that a reader is reading: its events, its outputs, and its commit."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Generic, TypedDict

from weir.consumers.adjuncts import AdjunctStoreManager
from weir.consumers.batch_outputs import BatchOutputs, Stagings
from weir.consumers.engine import Adjuncts, Engine, Frame
from weir.consumers.outputs import Output
from weir.consumers.ranks import rows_in_first_half
from weir.controller.rejected import make_rejected_stream
from weir.controller.staged import check_written
from weir.controller.transactions import CommittedReport
from weir.errors import Conflict, InvalidInput
from weir.installation.opened import Installation
from weir.kernel.attempt import Attempt
from weir.model.event_time import as_datetime
from weir.model.names import stream_name
from weir.model.schema import Field
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.lifecycle import Function, commit_batch
from weir.reader_groups.batches.read_plan import BatchPlan
from weir.reader_groups.batches.splits import split_batch
from weir.reader_groups.outputs.records import write_manifest

log = logging.getLogger("weir.reader")


def list_folders(
    app: Installation, group: str, output: Output, sentence: Callable[[Exception], str]
) -> str:
    """Write the `_manifest.json` of a Parquet output. Return why that failed, as `sentence` says
    it, or nothing.

    What was committed stays committed without it. The next commit or run writes the whole file
    again.
    """
    try:
        write_manifest(app.database, group, output.name, output.root, output.path)
    except Exception as error:  # the commit is done, so no error may make it fail
        why = sentence(error)
        app.say(
            f"_manifest.json of {output} and group {group} could not be written ({why}): until it "
            "is, it lacks what was committed since; the view weir.parquet_outputs has it"
        )
        return why
    return ""


class Done(TypedDict):
    """What a commit has done. `adjuncts`: by store the version that the batch was read with."""

    batch: int
    attempt: int
    events: int
    rejected: int
    adjuncts: dict[str, int | None]
    streams: list[CommittedReport]
    parquet: list[str]  # the folders
    unlisted: list[str]  # outputs whose _manifest.json lacks the folders
    tables: list[dict[str, object]]


class OpenBatch(Generic[Frame]):
    """A batch that this reader is reading. What is written for it becomes visible when it is
    committed, all at once."""

    def __init__(
        self,
        app: Installation,
        engine: Engine[Frame],
        batch: Batch,
        plan: BatchPlan,
        adjuncts: Adjuncts[Frame],
        manager: AdjunctStoreManager,
        *,
        order: str,
        on_end: Callable[[], None],
        stagings: Stagings,
        function: Function | None = None,
    ) -> None:
        """`plan`: what is to be read for it; `on_end`: what it calls when it is over; `stagings`:
        the staging tables of its reader; `function`: what makes its results."""
        self._app, self._engine, self._batch, self.adjuncts = app, engine, batch, adjuncts
        self._plan, self._order, self._on_end, self._function = plan, order, on_end, function
        self._manager = manager
        self.ended = False  # committed, split, or discarded for another try
        self._outputs = BatchOutputs(app, engine, batch, order, lambda: self._all_events, stagings)

    def __str__(self) -> str:
        """Return which batch it is and what it reads, for sentences."""
        return (
            f"batch {self.batch_id} of group {self._batch.group} "
            f"({self._plan.shown(self._batch.bounds)}; attempt {self.attempt})"
        )

    @cached_property
    def _all_events(self) -> dict[str, Frame]:
        with self._engine.explaining():
            return {one.name: self._engine.read(one, self._order) for one in self._plan.streams}

    @cached_property
    def frames(self) -> dict[str, Frame]:
        """The events of each stream, by its name."""
        return {
            name: self._manager.delivered(name, frame) for name, frame in self._all_events.items()
        }

    @property
    def opened(self) -> list[Attempt]:
        """Its appends, whose leases are to be renewed until it is over."""
        return [] if self.ended else list(self._outputs.opened)

    @property
    def without_columns(self) -> list[str]:
        """Streams that never had an event and have no declared columns."""
        return self._plan.without_columns

    @property
    def batch_id(self) -> int:
        """The number of the batch in its group."""
        return self._batch.batch_id

    @property
    def identity(self) -> str:
        """A name for the batch's results, unique everywhere.

        It always stands for the same events, however often they are read, and never for others,
        even if the group is deleted and created again.
        """
        return self._batch.identity

    @property
    def attempt(self) -> int:
        """The number of times that the batch was begun, including this one."""
        return self._batch.attempt

    @property
    def size(self) -> int:
        """The number of events between its bounds."""
        return self._batch.events

    @property
    def up_to(self) -> datetime | None:
        """Of an aligned group, the moment up to which every event of its streams is in this batch
        or in an earlier one, and after which none is. None for other groups. The parts of a batch
        that was split have the moment of the whole."""
        return as_datetime(self._batch.up_to)

    @property
    def complete_until(self) -> datetime | None:
        """The event time before which the group has read everything once this batch is committed,
        but for late events: the smallest that the writers of its streams state. None if they state
        nothing, and if events of the batch were truncated. Events that the group has passed without
        reading them hold it back for ever. The same for every attempt."""
        return None if self._plan.lost else as_datetime(self._batch.complete_until)

    @property
    def events(self) -> Frame:
        """The events with `_segment`, `_offset` and `_clock`. Raises InvalidInput if the group
        reads several streams."""
        return self.events_of(next(iter(self.frames)) if len(self.frames) == 1 else "")

    def events_of(self, stream: str) -> Frame:
        """Return the events of one stream of the group, as `events`. Raises InvalidInput if the
        group does not read it."""
        if stream not in self.frames:
            raise InvalidInput(
                "group_unsuitable",
                f"reader group {self._batch.group} reads {', '.join(self.frames)}; name one of "
                "them: batch.events_of(...).",
            )
        return self.frames[stream]

    def merged(self, columns: Sequence[str] | None = None) -> Frame:
        """Return the events of all streams of the group in write order: by clock, then by the
        streams' names. `_stream` has the name; the other columns are as in `weir.spark.read`.

        Raises InvalidInput for a column that no stream has, or that has several types.
        """
        with self._engine.explaining():
            return self._engine.merged(self._plan.streams, columns)

    def adjunct(self, name: str) -> Frame:
        """Return the table of an adjunct store, in the version that all attempts at this batch
        read: `_weir_key`, the columns of the value, and `_clock`. Raises InvalidInput if the store
        is not joined."""
        return self.adjuncts[name]

    def enrich(
        self,
        events: Frame,
        name: str,
        on: Any,
        how: str = "left",
        *,
        as_of: bool | str = False,
        valid_from: str = "",
        prefix: str = "",
    ) -> Frame:
        """Return events with the value columns of an adjunct store. See `Adjuncts.enrich`."""
        return self.adjuncts.enrich(
            events, name, on, how, as_of=as_of, valid_from=valid_from, prefix=prefix
        )

    def write(self, output: str | Output, rows: object) -> None:
        """Write a result for `stream:scope/stream`, `parquet:folder` or `table:schema.table`, with
        the options of `Output.parse`. It becomes visible with the commit. Write each output once; a
        DataFrame is computed at once, and written without its places unless they are asked for.
        `rows`: what the reader reads, DataFrames of Spark or tables of pyarrow; with pyarrow, also
        what `store.append` takes.

        Raises NotFound, InvalidInput for columns that do not fit, BadRows for rows that do not fit,
        Conflict if the batch is over or the output was written, Fenced if the batch was taken over,
        what `why_unread` returns for a file that can't be read, and Unavailable for a full disk.
        """
        self._check_open()
        app = self._app
        if not isinstance(output, Output):
            output = Output.parse(output, app.settings.output_roots)
        with self._engine.explaining():
            self._outputs.write(output, rows)

    def _check_open(self) -> None:
        if self.ended:
            raise Conflict(
                "reader_misused",
                f"{self} is over, because it was committed or its Reader's with block ended; "
                "write and commit each batch once, inside the block.",
            )

    def commit(self, results: Mapping[str, object] | None = None) -> Done:
        """Publish what was written and move the positions, in one transaction. Return what was
        done.

        `results`: by output what to write first, as `write` does; if one of them can't be written,
        none of them is. Raises what `write` raises; InvalidInput for results that are no
        dictionary; Fenced if the batch was taken over, Conflict if it is over, BadRows if rows
        violate a constraint of their table, and InvalidInput if a right is missing there.
        """
        self._check_open()
        results = {} if results is None else results
        if not isinstance(results, Mapping):
            raise InvalidInput(
                "argument_invalid",
                f"the results are a {type(results).__module__}.{type(results).__name__}; say where "
                'they go, as in batch.commit({"stream:shop/totals": rows}).',
            )
        with self._outputs.all_or_none():
            for output, rows in results.items():
                self.write(output, rows)
        return self._commit()

    def _commit(
        self, rejected: int = 0, rejected_as: Mapping[int, Sequence[Field]] | None = None
    ) -> Done:
        """Commit like `commit`; for the others see `commit_batch`."""
        app, written, lost = self._app, self._outputs, self._plan.lost
        check_written(app.settings.warehouse, written.staged)
        committed = commit_batch(
            app.database, self._batch, lease=app.settings.reader_lease, staged=written.staged,
            tables=written.tables, outputs=[one for _, one in written.parquet], lost=lost,
            rejected=rejected, rejected_as=rejected_as, function=self._function,
        )  # fmt: skip
        self._end()
        app.say(f"batch {self.batch_id} of {self._batch.group} committed")
        for told in (told for table in written.tables for told in table.told):
            app.say(told)
        unlisted = [
            o.name
            for o, _ in written.parquet
            if list_folders(app, self._batch.group, o, self._engine.sentence)
        ]
        return {
            "batch": self.batch_id,
            "attempt": self.attempt,
            "events": self.size,
            "rejected": rejected,
            "adjuncts": self.adjuncts.versions,
            "streams": [one.report() for one in committed],
            "parquet": [f"{one['root']}/{one['path']}" for _, one in written.parquet],
            "unlisted": unlisted,
            "tables": [one.report() for one in written.tables],
        }

    def _end(self) -> None:
        self.ended = True
        self._on_end()

    def close(self, *, discard: bool) -> None:
        """End it for this reader: a commit from now on would publish nothing of it. `discard`: also
        discard what was written."""
        if discard:
            self.discard()
        self.ended = True

    def discard(self) -> None:
        """Discard what was written as far as possible now; the rest becomes garbage."""
        self._outputs.discard()

    def again(self) -> None:
        """Discard this attempt. The reader's next batch is the same one."""
        self.discard()
        self._end()

    def split(self, error: Exception) -> None:
        """Discard this attempt because of an error, and replace the batch by two with half of its
        events each, which are the reader's next batches. The batch must have at least two events.
        Raises Conflict if it is over, Fenced if it was taken over.
        """
        self._check_open()
        self.discard()
        warehouse = self._app.settings.warehouse
        ranks = partial(rows_in_first_half, warehouse) if self._order == "stream" else None
        why = self._engine.sentence(error)
        split_batch(self._app.database, self._batch, why, ranks)
        self._app.say(f"{self} failed and is read in halves: {why}")
        self._end()

    def reject(self, error: Exception) -> Done:
        """Write the batch's events, which failed with this error, to `<stream>.rejected` of their
        streams instead of to the outputs, and commit it. Return what was done. Raises Conflict if
        it is over."""
        self._check_open()
        self.discard()
        rejected, as_text = 0, dict[int, Sequence[Field]]()
        planned = {one.name: one for one in self._plan.streams}
        for name, frame in self._all_events.items():
            read = planned[name]
            if events := sum(one.rows for one in read.slices):
                stream = make_rejected_stream(self._app.database, stream_name(name))
                why = self._engine.sentence(error)
                failed = self._engine.failed_events(frame, self._batch.group, why, read.fields)
                as_text[read.stream_id] = read.fields
                self._outputs.append(stream, failed)
                rejected += events
        return self._commit(rejected, as_text)
