"""Several appends, also to several streams, that become visible at once or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from weir.controller.commit import commit
from weir.controller.staged import Staged
from weir.controller.transactions import Attempt, Committed, ping_all
from weir.model.names import StreamName
from weir.spark.append import Appender


@dataclass
class Transaction:
    """What has been staged so far; `committed` is there after the end of the block."""

    appender: Appender
    writer_id: str
    batch_id: str
    committed: list[Committed] = field(default_factory=list)
    _staged: list[Staged] = field(default_factory=list)
    _opened: list[Attempt] = field(default_factory=list)
    _appends: int = 0

    def append(self, name: StreamName, frame: DataFrame) -> None:
        """Write the rows of a DataFrame, in the order of its partitions; not visible yet.

        In a retry of what was committed nothing is written: the results are in `committed`.
        """
        self._appends += 1
        begun = self.appender.begin_frame(
            name, self.writer_id, f"{self.batch_id}, append {self._appends}"
        )
        if isinstance(begun, Committed):
            self.committed.append(begun)
            return
        self._opened.append(begun)
        for staged in self.appender.stage_frame(begun, frame):
            self._staged.append(staged)
            if staged.attempt is not begun:  # the rejected rows have a transaction of their own
                self._opened.append(staged.attempt)


@contextmanager
def transaction(appender: Appender, *, writer_id: str, batch_id: str) -> Iterator[Transaction]:
    """A block whose appends are committed together when it ends, and aborted when it raises.

    `writer_id` and `batch_id` are its identity: a retry, which must make the same appends in the
    same order, appends nothing twice.
    """
    whole = Transaction(appender, writer_id, batch_id)
    lease, longest = appender.settings.transaction_lease, appender.settings.transaction_max
    with appender.aborting(whole._opened, committing=True):
        with appender.database.keep_alive(
            lambda c: ping_all(c, whole._opened, lease, longest), every=lease / 3
        ):
            yield whole
        if whole._staged:
            whole.committed += commit(appender.database, *whole._staged)
    appender.say(
        f"committed {sum(one.events for one in whole.committed):,} events to "
        + ", ".join(sorted({one.stream for one in whole.committed}))
    )
