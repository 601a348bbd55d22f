"""Append rows to a stream: write the files first, then commit their paths (semantics 12).

An append is a transaction, which may commit after a scale as in PDP-24.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from weir.controller.attempts import writing
from weir.controller.transactions import Committed, begin
from weir.inputs.append import commit
from weir.inputs.files import Inputs
from weir.installation.opened import Installation
from weir.kernel.attempt import Attempt, Staged
from weir.model.names import StreamName, stream_name
from weir.spark.appends.stage import stage
from weir.spark.base.session import cores, private_session
from weir.spark.base.shared import shared
from weir.spark.failures.lost_files import saying_why
from weir.spark.failures.unreadable import naming_files
from weir.spark.inputs.from_tasks import FromTasks, read_in_tasks


@dataclass(frozen=True)
class Appender:
    """Appends with Spark to the streams of an installation."""

    installation: Installation

    @classmethod
    def of(cls, spark: SparkSession, source: str) -> "Appender":
        """Return an appender for a program of your own, with the settings that jobs have: those of
        the file that WEIR_CONFIG names, or of `weir.toml`."""
        return cls(shared(spark, source))

    def stage_files(self, inputs: Inputs, attempts: list[Attempt]) -> list[Staged]:
        """Write the rows of files for the one open attempt. Return the appends to commit together.

        If there are rejected rows, the attempt that has them is added to the open ones.
        """
        app, [opened] = self.installation, attempts
        quarantine = opened.on_bad_rows == "quarantine"

        def rows() -> FromTasks:
            spark = private_session(app.spark)
            return read_in_tasks(
                spark, inputs, opened.fields, app.say, cores(spark), quarantine=quarantine
            )

        with (
            saying_why(app.database, app.settings),
            naming_files(inputs.root, [file.path for file in inputs.files], inputs.format),
        ):
            return stage(app, attempts, rows(), inputs.origin)

    def append_frame(
        self,
        name: StreamName | str,
        frame: DataFrame | Callable[[], DataFrame],
        *,
        writer_id: str,
        batch_id: str,
        complete_until: datetime | str | None = None,
    ) -> Committed:
        """Append a DataFrame to a stream (`scope/stream`) in the order of its partitions, in one
        transaction.

        `writer_id` and `batch_id` identify the append. They alone decide: if a DataFrame was
        committed under them, nothing is appended, even if this one has other rows, because Weir
        does not compare them (semantics 12), and does not call a function that makes the `frame`.
        `complete_until`: the event time before which the writer has appended everything with this
        append (a datetime, a text, or `done`).

        Returns what was committed, now or by an earlier try (`repeated`). Raises BadRows for rows
        that the stream does not quarantine; InvalidInput for columns that do not fit the stream,
        and for a wrong `complete_until`; NotFound for a stream that does not exist; Conflict if the
        stream is sealed, or if the identity was used for files or a table; Fenced if another try
        took over; InvariantViolation if the warehouse is not this database's.
        """
        opened = self.begin_frame(
            stream_name(str(name)), writer_id, batch_id, complete_until=complete_until
        )
        if isinstance(opened, Committed):
            return opened
        attempts = [opened]
        with self.writing(attempts):
            rows = frame() if callable(frame) else frame
            return self.commit(self.stage_frame(attempts, rows))

    def begin_frame(
        self,
        name: StreamName,
        writer_id: str,
        batch_id: str,
        complete_until: datetime | str | None = None,
    ) -> Attempt | Committed:
        """Open a transaction for a DataFrame. Return the attempt, or what an earlier try committed.
        Raises like `weir.controller.transactions.begin`."""
        app = self.installation
        return begin(
            app.database, name, writer_id=writer_id, batch_id=batch_id, fingerprint="frame",
            lease=app.settings.transaction_lease, source=app.source,
            complete_until=complete_until,
        )  # fmt: skip

    @contextmanager
    def writing(self, opened: list[Attempt]) -> Iterator[None]:
        """Run a block that writes and commits open attempts (`weir.controller.attempts`), and say
        why files of the warehouse can't be read or written."""
        app = self.installation
        with (
            saying_why(app.database, app.settings),
            writing(app.database, app.settings, opened),
        ):
            yield

    def stage_frame(self, opened: list[Attempt], frame: DataFrame) -> list[Staged]:
        """Write a DataFrame for the one open attempt. Return the appends to commit together.

        If there are rejected rows, the attempt that has them is added to the open ones.
        """
        return stage(self.installation, opened, frame)

    def commit(self, staged: list[Staged]) -> Committed:
        """Commit staged appends in one transaction and return the first. Raises like
        `weir.controller.commit.commit`."""
        return commit(self.installation, staged)
