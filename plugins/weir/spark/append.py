"""Append rows to a stream: files first, pointer last (PDP-24 on Parquet and Postgres)."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import Connection

from weir.controller.commit import commit
from weir.controller.staged import Staged
from weir.controller.transactions import Attempt, Committed, abort, begin, ping_all
from weir.database.connection import Database
from weir.errors import Unavailable
from weir.model.names import StreamName, stream_name
from weir.settings import Settings, load
from weir.spark.inputs import ROW_MASK, Inputs, read_inputs, reading_session
from weir.spark.rejected import check_rejected, stage_rejected
from weir.spark.stage import Say, ranked, stage
from weir.spark.unreadable import naming_files
from weir.warehouse.ownership import check_warehouse_ownership

log = logging.getLogger("weir.append")


@dataclass(frozen=True)
class Appender:
    """What every append of an installation needs."""

    spark: SparkSession
    database: Database
    settings: Settings
    source: str  # who appends: DAG run and task, or a program's name
    say: Say = log.info

    @classmethod
    def of(cls, spark: SparkSession, source: str) -> "Appender":
        """For a program of one's own, with the settings that jobs have: those of the file that
        WEIR_CONFIG names, or of `weir.toml`."""
        settings = load()
        return cls(spark, Database.of(settings), settings, source)

    def append_files(self, name: StreamName, inputs: Inputs, *, again: str = "") -> Committed:
        """Append files as one transaction; the same files again append nothing.

        `again`: an id under which they are appended once more on purpose.

        Raises Conflict for a file that another transaction holds, or that changed since it was
        appended; BadRows with the count and an example.
        """
        opened = begin(
            self.database, name, writer_id="weir_ingest", batch_id=inputs.batch_id + again,
            fingerprint=inputs.fingerprint, lease=self.settings.transaction_lease,
            source=self.source, inputs=inputs.named, append_again=bool(again),
        )  # fmt: skip
        if isinstance(opened, Committed):
            self.say(
                f"nothing appended: transaction {opened.transaction_number} of {name} holds these "
                f"files already ({opened.events:,} events)"
            )
            return opened
        quarantine = opened.on_bad_rows == "quarantine"

        def rows() -> DataFrame:
            spark = reading_session(self.spark, inputs)
            return read_inputs(spark, inputs, opened.fields, quarantine=quarantine, say=self.say)

        with naming_files(inputs.root, [file.path for file in inputs.files], inputs.format):
            staged = self.stage(opened, rows, inputs.place)
        return self.commit(staged)

    def append_frame(
        self, name: StreamName | str, frame: DataFrame, *, writer_id: str, batch_id: str
    ) -> Committed:
        """Append a DataFrame to a stream (`scope/stream`) in the order of its partitions.

        `writer_id` and `batch_id` are its identity: a retry appends nothing twice.
        """
        opened = self.begin_frame(stream_name(str(name)), writer_id, batch_id)
        if isinstance(opened, Committed):
            return opened
        return self.commit(self.stage_frame(opened, frame))

    def begin_frame(
        self,
        name: StreamName,
        writer_id: str,
        batch_id: str,
        guard: Callable[[Connection], object] | None = None,
    ) -> Attempt | Committed:
        """Open a transaction for a DataFrame."""
        return begin(
            self.database, name, writer_id=writer_id, batch_id=batch_id, fingerprint="frame",
            lease=self.settings.transaction_lease, source=self.source, guard=guard,
        )  # fmt: skip

    def stage_frame(self, attempt: Attempt, frame: DataFrame) -> list[Staged]:
        """Write a DataFrame for an open transaction: the appends to commit together."""
        return self.stage(attempt, lambda: ranked(frame), lambda seq: ("", seq & ROW_MASK))

    def stage(
        self,
        attempt: Attempt,
        rows: Callable[[], DataFrame],
        place: Callable[[int], tuple[str, int]],
    ) -> list[Staged]:
        """Write an attempt, and its rejected rows if there are any; whatever fails aborts it."""
        opened = [attempt]
        lease, longest = self.settings.transaction_lease, self.settings.transaction_max
        with self.aborting(opened):
            check_warehouse_ownership(self.database, self.settings.warehouse)
            with self.database.keep_alive(
                lambda c: ping_all(c, opened, lease, longest), every=lease / 3
            ):
                staged = stage(self.spark, self.settings.warehouse, attempt, rows(), self.say)
                if not staged.rejected:
                    return [staged]
                check_rejected(self.spark, self.settings, staged, place)
                return [staged, stage_rejected(self, staged, place, opened)]

    @contextmanager
    def aborting(self, opened: list[Attempt], *, committing: bool = False) -> Iterator[None]:
        """A block after which the attempts are aborted if it raises, whatever it raises.

        `committing`: unless Postgres was away, because then nobody knows whether it committed.
        """
        try:
            yield
        except Exception as error:
            if not (committing and isinstance(error, Unavailable)):
                for one in opened:
                    # The block's error is the one to hear of; a lease runs out by itself.
                    with contextlib.suppress(Exception):
                        abort(self.database, one)
            raise

    def commit(self, staged: list[Staged]) -> Committed:
        """Commit staged appends as one change; returns the first. What is refused is aborted."""
        with self.aborting([one.attempt for one in staged], committing=True):
            committed = commit(self.database, *staged)[0]
        self.say(
            f"committed {committed.events:,} events in {committed.files} files "
            f"({committed.bytes:,} bytes) to {committed.stream}"
            + (f"; {committed.rejected:,} rows rejected" if committed.rejected else "")
        )
        return committed
