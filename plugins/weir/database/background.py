"""Work that is repeated in a thread while other work goes on: renewed leases, shown progress."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from weir.errors import Fenced

if TYPE_CHECKING:
    from weir.database.connection import Database

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

    def run() -> None:
        pause: float | None = first
        while pause is not None and not ended.wait(pause):
            pause = step()

    thread = threading.Thread(target=run, name=f"weir-{name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=patience)


class KeepAlive:
    """Renews a lease from a thread while work goes on. `lost`: the Fenced that `renew` raised, if
    any.
    """

    def __init__(
        self, database: "Database", renew: Callable[[Connection], object], every: float
    ) -> None:
        self._database, self._renew, self._every = database, renew, every
        self._thread = repeating("lease", self._step, first=every)
        self.lost: Exception | None = None

    def _step(self) -> float | None:
        try:
            self._database.transaction(self._renew)
        except Fenced as error:  # kept for the caller, because nobody would catch it here
            self.lost = error
            log.warning("the lease is lost: %s", error)
            return None
        except Exception as error:  # whatever it was, the next renewal may succeed
            log.warning("the lease could not be renewed: %s", error)
        return self._every

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
