"""Several appends, also to several streams, that become visible together or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from pyspark.sql import DataFrame

from weir.controller.commit import commit_begun
from weir.controller.staged import check_written
from weir.controller.transactions import Committed
from weir.errors import counted
from weir.kernel.attempt import Attempt, Staged
from weir.model.names import StreamName
from weir.spark.appends.appender import Appender


@dataclass
class Transaction:
    """What has been staged so far. After the block, `committed` has the results."""

    appender: Appender
    writer_id: str
    batch_id: str
    committed: list[Committed] = field(default_factory=list)
    _staged: list[Staged] = field(default_factory=list)
    _opened: list[Attempt] = field(default_factory=list)
    _appends: int = 0

    def append(
        self, name: StreamName, frame: DataFrame, complete_until: datetime | str | None = None
    ) -> None:
        """Write the rows of a DataFrame, in the order of its partitions. They are not visible yet.
        `complete_until`: the event time before which the writer has appended everything with it.

        A retry of a committed transaction writes nothing; the results are in `committed`.
        """
        self._appends += 1
        begun = self.appender.begin_frame(
            name, self.writer_id, f"{self.batch_id}, append {self._appends}",
            complete_until=complete_until,
        )  # fmt: skip
        if isinstance(begun, Committed):
            self.committed.append(begun)
            return
        opened = [begun]
        with self.appender.writing(opened):
            self._staged += self.appender.stage_frame(opened, frame)
        self._opened += opened


@contextmanager
def transaction(appender: Appender, *, writer_id: str, batch_id: str) -> Iterator[Transaction]:
    """Commit the appends of a block together when the block ends, or abort them if it raises.

    `writer_id` and `batch_id` identify the transaction: a retry, which must make the same appends
    in the same order, appends nothing twice.
    """
    app = appender.installation
    whole = Transaction(appender, writer_id, batch_id)
    with appender.writing(whole._opened):
        yield whole
        if whole._staged:
            check_written(app.settings.warehouse, whole._staged)
            whole.committed += commit_begun(app.database, *whole._staged)
    app.say(
        f"committed {counted(sum(one.events for one in whole.committed), 'event')} to "
        + ", ".join(sorted({one.stream for one in whole.committed}))
    )
