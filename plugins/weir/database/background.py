"""Work that is repeated in a thread while other work goes on: renewed leases, shown progress."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from sqlalchemy import Connection

from weir.database.progress import Progress, stacks
from weir.errors import Fenced

log = logging.getLogger("weir.database")


@contextmanager
def repeating(
    name: str, step: Callable[[], float | None], *, first: float = 0.0, patience: float = 1.0
) -> Iterator[None]:
    """Run `step` again and again in a thread while the block runs.

    `step` returns the seconds until its next run, or None to end. `first`: the seconds before its
    first run. `patience`: how many seconds the end of the block waits for a step that is running.
    """
    ended = threading.Event()
    stepping = threading.Lock()

    def run() -> None:
        pause: float | None = first
        while pause is not None and not ended.wait(pause):
            with stepping:
                pause = None if ended.is_set() else step()

    thread = threading.Thread(target=run, name=f"weir-{name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()  # and wait for a step, but not for the thread, which then has nothing to do
        if stepping.acquire(timeout=patience):
            stepping.release()


class KeepAlive:
    """Renews a lease from a thread while work goes on. `lost`: the Fenced that `renew` raised, if
    any.

    If `progress` says that the work does not go on, the lease is not renewed until it does, so that
    others may take over. The log then has the stacks of this process and the sessions of Postgres.
    `transaction`: runs `renew` in a transaction; `sessions`: says what the sessions do; `overdue`:
    what runs meanwhile instead of `renew`.
    """

    def __init__(
        self,
        transaction: Callable[[Callable[[Connection], object]], object],
        sessions: Callable[[], str],
        renew: Callable[[Connection], object],
        every: float,
        progress: Progress | None = None,
        overdue: Callable[[Connection], object] = lambda connection: None,
    ) -> None:
        self._transaction, self._sessions = transaction, sessions
        self._renew, self._every = renew, every
        self._progress, self._overdue = progress, overdue
        self._stalled = False
        self._thread = repeating("lease", self.step, first=every)
        self.lost: Exception | None = None

    def step(self) -> float | None:
        """Renew the lease once, as the thread does, and return the seconds until the next time;
        None if the lease is lost."""
        renew = self._renew if self._goes_on() else self._overdue
        try:
            self._transaction(renew)
        except Fenced as error:  # kept for the caller, because nobody would catch it here
            self.lost = error
            log.warning("the lease is lost: %s", error)
            return None
        except Exception as error:  # whatever it was, the next renewal may succeed
            log.warning("the lease could not be renewed: %s", error)
        return self._every

    def _goes_on(self) -> bool:
        """Return whether the work goes on. If it no longer does, log why, as far as one can see."""
        progress = self._progress
        if progress is None or progress.goes_on(self._every):
            self._stalled = False
            return True
        if not self._stalled:
            self._stalled = True
            log.error(
                "%s for more than %g s: the lease is not renewed, and others may take over.\n%s",
                progress.doing, progress.longest, stacks(),
            )  # fmt: skip
            log.error("the database meanwhile:\n%s", self._sessions())
        return False

    def __enter__(self) -> "KeepAlive":
        self._thread.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._thread.__exit__(None, None, None)
