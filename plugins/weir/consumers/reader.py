"""A reader of a group, for jobs and for your own programs, whatever computes the results.

Exactly once: the rows that a batch appends to Weir streams, the rows that it writes to tables of
Weir's database, and the positions are one Postgres transaction. Parquet is written to a folder per
attempt, and the commit records which attempt counts.

A lease is renewed only while the reader says that it gets on, counted in turns of the thread and
not by the clock, so that a machine that slept is not overdue. Who gives up lets the lease expire:
others take over by the one rule that there is.
"""

import contextlib
import logging
from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import Generic

from sqlalchemy import Connection

from weir.adjunct.pins import pass_over
from weir.consumers.adjuncts import Binding, bind
from weir.consumers.batch_outputs import Stagings, drop_stagings
from weir.consumers.engine import Engine, Frame
from weir.consumers.open_batch import OpenBatch
from weir.consumers.reader_names import has_ended, reader_name
from weir.controller.ownership import check_warehouse_ownership
from weir.controller.queries import Cut
from weir.controller.transactions import ping_all
from weir.database.background import KeepAlive
from weir.database.progress import Progress
from weir.errors import Conflict, Fenced, InvalidInput, NotFound, counted
from weir.installation.opened import Installation
from weir.reader_groups.batches.alignment import end_of_run
from weir.reader_groups.batches.lifecycle import Function
from weir.reader_groups.batches.next import next_batch
from weir.reader_groups.batches.read_plan import plan_batch
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.groups.readers import (
    join,
    leave,
    reader_offline,
    readers_of,
    renew,
    renew_alone,
)

log = logging.getLogger("weir.reader")

# Seconds that a reader may take from a commit to the request for the next batch, and for each
# attempt to get one. Others wait for what it owns, and it reads nothing.
BETWEEN_BATCHES = 300.0


class Reader(Generic[Frame]):
    """Join a group, and return batch after batch up to the tail at the start.

        with store.reader("late") as reader:
            for batch in reader:
                late = batch.events.filter(pc.field("dep_delay") > 60)
                batch.commit({"stream:nyc/late": late})

    A `for` loop over a reader that is not in a `with` block joins and leaves by itself. The reader
    waits for batches of other readers, and takes them over if those readers die. A thread renews
    the lease. If the block ends without a commit, nothing is published, and the next reader gets
    the same batch: at once, or after a kill on another machine once the lease expires. A batch that
    takes longer than the setting `max_batch_time` counts as hung, and so does a reader that does
    not ask for its next batch within five minutes of a commit while the group has other readers:
    its lease is not renewed, so others may take over, and the log says what it was doing.

    Raises NotFound for a group that does not exist, Fenced if another reader has taken over,
    Truncated for events that are gone, Conflict if it is entered twice, Unavailable if Postgres is
    away. Before it joins, raises
    InvariantViolation if the warehouse belongs to another database, or if this database was
    restored from a backup, because it would use batch numbers and folders for a second time.
    """

    def __init__(
        self,
        installation: Installation,
        engine: Engine[Frame],
        group: str,
        reading: Reading,
        *,
        reader_id: str = "",
        function: Function | None = None,
    ) -> None:
        """`reader_id`: the same for all tries of a task, so that it gets its own batch back after a
        kill; different for each of several readers. `function`: what makes the results, for the
        record of each batch."""
        self.installation = installation
        self.group = group
        self.reader_id = reader_id or reader_name()
        self.reading = reading
        self._engine = engine
        self._function = function
        self._bind = partial(bind, group=group, names=reading.adjuncts, factory=reading.manager)
        self._binding: Binding | None = None
        self._token = 0
        self._until: dict[int, Cut] = {}
        self._closed: int | None = None
        self._alive: KeepAlive | None = None
        self._progress = Progress(f"reader {self.reader_id} joins", BETWEEN_BATCHES)
        self._batch: OpenBatch[Frame] | None = None
        self._stagings: Stagings = {}
        self._said = False  # what it waits for
        self._ended: set[str] = set()  # readers that it has taken offline

    def __enter__(self) -> "Reader[Frame]":
        if self._alive is not None:
            raise Conflict(
                "reader_misused",
                f"this reader of group {self.group} is in a with block already; make another one "
                "with store.reader(...), under its own reader_id.",
            )
        database, lease = self.installation.database, self.installation.settings.reader_lease
        check_warehouse_ownership(database, self.installation.settings.warehouse)
        self._binding = database.transaction(self._bind)
        self._token = join(database, self.group, self.reader_id, lease, label=self.reading.label)
        passed = pass_over(database, self.group, list(self._binding.not_delivered))
        self._until, self._closed = database.transaction(lambda c: end_of_run(c, self.group))
        self._until |= passed
        self._alive = database.keep_alive(
            self._renew, every=lease / 3, progress=self._progress, overdue=self._overdue
        ).__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        database, lease = self.installation.database, self.installation.settings.reader_lease
        if self._batch is not None and not self._batch.ended:
            away = getattr(error, "code", "") == "database_unavailable"  # it waits for its lease
            self._batch.close(discard=not away)
            if error is not None:
                error.add_note(f"{self._batch} stays open, and will be read again.")
        if self._alive is not None:
            self._alive.__exit__()
            self._alive = None
        with contextlib.suppress(Exception):  # the lease also expires by itself
            leave(database, self.group, self.reader_id, self._token, lease)
            drop_stagings(self.installation, self._stagings)

    def __iter__(self) -> Iterator[OpenBatch[Frame]]:
        return self if self._alive is not None else self._joined()

    def _joined(self) -> Iterator[OpenBatch[Frame]]:
        """Yield the batches of a loop outside of a block. The end of the loop, also by an error,
        ends the generator, and so the membership."""
        with self:
            yield from self

    def __next__(self) -> OpenBatch[Frame]:
        """Return the next batch. Raises Conflict if the previous one was not committed."""
        app = self.installation
        if self._alive is None:
            raise InvalidInput(
                "not_open",
                "a Reader returns batches only inside its with block or a for loop; write with "
                "store.reader(...) as reader.",
            )
        if isinstance(self._alive.lost, Fenced):
            raise self._alive.lost
        if self._batch is not None and not self._batch.ended:
            raise Conflict(
                "reader_misused",
                f"{self._batch} is not committed; call commit() before the next batch, or leave "
                "the Reader's with block so that the batch is read again.",
            )
        batch = next_batch(
            app.database, self.group, self.reader_id, self._token, self.reading,
            lease=app.settings.reader_lease, until=self._until, closed=self._closed,
            first=self._batch is None, looks=self._asks, waits=self._waits,
        )  # fmt: skip
        if batch is None:
            raise StopIteration
        assert self._binding is not None
        pins = self._binding.pins(app, batch, self._engine.build_version)
        manager = self._binding.manager
        left_out = self._binding.not_delivered
        plan = app.database.transaction(lambda c: plan_batch(c, batch, left_out))
        for gap in plan.gaps:
            app.say(gap)
        self._batch = OpenBatch(
            app, self._engine, batch, plan, self._engine.adjuncts(pins, manager), manager,
            order=self.reading.order, on_end=self._between_batches,
            stagings=self._stagings, function=self._function,
        )  # fmt: skip
        self._progress.begins(f"{self._batch} is being read", app.settings.max_batch_time)
        app.say(f"{self._batch}: {counted(batch.events, 'event')}")
        return self._batch

    def _between_batches(self) -> None:
        """Record that the batch is over, and that the program may ask for the next one."""
        self._progress.begins(
            f"reader {self.reader_id} of group {self.group} has no batch and asks for none",
            BETWEEN_BATCHES,
        )

    def _asks(self) -> None:
        self._progress.begins(
            f"reader {self.reader_id} of group {self.group} asks for a batch", BETWEEN_BATCHES
        )

    def _waits(self) -> bool:
        """Take readers offline whose process is gone; return whether there were any. If not, say
        for what the reader waits, once."""
        app = self.installation
        others = set(app.database.transaction(lambda c: readers_of(c, self.group)))
        # One that has an open batch remains until somebody takes that over.
        ended = sorted(filter(has_ended, others - self._ended))
        for other in ended:
            with contextlib.suppress(NotFound):  # somebody else has done so
                reader_offline(app.database, self.group, other, request_id=f"ended {other}")
                app.say(f"reader {other} of group {self.group} has ended, and is taken offline")
        self._ended.update(ended)
        if not ended and not self._said:
            app.say(
                f"other readers of group {self.group} hold the rest: waiting until they commit it, "
                "or until the lease of one that has died expires"
            )
            self._said = True
        return bool(ended)

    def _overdue(self, connection: Connection) -> None:
        if self._batch is None or self._batch.ended:
            lease = self.installation.settings.reader_lease
            renew_alone(connection, self.group, self.reader_id, self._token, lease)

    def _renew(self, connection: Connection) -> None:
        settings = self.installation.settings
        renew(connection, self.group, self.reader_id, self._token, settings.reader_lease)
        opened = self._batch.opened if self._batch else []
        ping_all(connection, opened, settings.transaction_lease, settings.transaction_max)
