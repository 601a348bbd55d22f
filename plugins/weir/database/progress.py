"""Whether a program gets on, and what it does if it does not: for leases and for its log."""

import sys
import threading
import traceback

from sqlalchemy import Engine

from weir.queries.database import progress as sql


class Progress:
    """What a program does, and how long it may do so without a word.

    The program's thread says what it `begins`. A thread that renews leases asks at regular times
    whether it `goes_on`, and counts only the time between such questions: neither a frozen process
    nor a database that was away makes a program overdue.
    """

    def __init__(self, doing: str, longest: float) -> None:
        """`longest`: seconds; 0: as long as it wants."""
        self.doing, self.longest = doing, longest
        self._steps = 0
        self._seen = 0
        self._without = 0.0

    def begins(self, doing: str, longest: float) -> None:
        """Record that the program got on, and what it does now, for at most `longest` seconds."""
        self.doing, self.longest = doing, longest
        self._steps += 1

    def goes_on(self, waited: float) -> bool:
        """Return whether the program may still be at work, `waited` seconds after the last time
        that somebody asked."""
        if self._steps != self._seen:
            self._seen, self._without = self._steps, 0.0
            return True
        self._without += waited
        return not self.longest or self._without <= self.longest


def stacks() -> str:
    """Return what every thread of this process does, the newest call last."""
    names = {one.ident: one.name for one in threading.enumerate()}
    return "\n".join(
        f"thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame)).rstrip()}"
        for ident, frame in sys._current_frames().items()
    )


def sessions(engine: Engine) -> str:
    """Return what the sessions of the database do, with their locks, as far as this login may see
    it; or why one can't tell. Waits for nothing."""
    try:
        with engine.begin() as connection:
            found = sql.sessions(connection)
    except Exception as error:  # whatever it is, the rest of the report must not fail by it
        return f"the sessions are not known: {error}"
    pools = f"connections of this process: {engine.pool.status()}"
    return "\n".join(
        [pools, *(", ".join(f"{k} {v}" for k, v in row._asdict().items()) for row in found)]
    )
