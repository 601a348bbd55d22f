"""The screen of `weir top`: it asks, reads keys, and draws, until the person has seen enough.

A thread asks, so keys are answered while the database is slow or away.
"""

import contextlib
import logging
import os
import queue
import select
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from rich import live as live_screen
from rich.console import Console

from weir.database.connection import Database
from weir.errors import WeirError
from weir.terminal.top_rows import MOST, ORDERS, Answer, View, ask
from weir.terminal.top_screen import AROUND, Screen

_SHARE = 4  # of the time, at most one part in so many is spent asking
_TICK = 0.2  # seconds between two looks at keys, size and answers
_KEYS = {b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[5~": "page up", b"\x1b[6~": "page down",
         b"\x1b[H": "home", b"\x1b": "escape", b"\x7f": "delete", b"\x08": "delete",
         b"\r": "enter", b"\n": "enter", b"\t": "tab"}  # fmt: skip


class Live:
    """The screen of a person: it asks, reads keys, and draws."""

    def __init__(self, database: Database, view: View, pause: float) -> None:
        self._database = database
        self._screen = Screen(view, pause=pause)
        self._questions: queue.Queue[tuple[View, int]] = queue.Queue()
        self._answers: queue.Queue[Answer] = queue.Queue()
        self._asking_since: float | None = None
        self._next = 0.0
        self._answered = time.monotonic()
        self._failing_since: float | None = None
        self._before: tuple[datetime | None, dict[Any, int]] = (None, {})

    def run(self) -> int:
        """Show it until the person has seen enough."""
        threading.Thread(target=self._ask_on, daemon=True).start()
        console = Console(highlight=False)
        with (
            _keys() as keys,
            live_screen.Live(console=console, screen=True, auto_refresh=False) as live,
        ):
            while True:
                self._take()
                rows = max(console.height - AROUND, 1)
                self._ask(rows)
                self._tell()
                age = time.monotonic() - self._answered
                live.update(self._screen.drawn(console.width, console.height, age), refresh=True)
                for key in keys(_TICK):
                    if self._screen.typing is not None:
                        self._typed(key)
                    elif key == "q":
                        return 0
                    else:
                        self._pressed(key, rows)

    def _ask_on(self) -> None:
        while True:
            view, most = self._questions.get()
            try:
                self._answers.put(ask(self._database, view, most))
            except WeirError as error:
                self._answers.put(Answer(view, failed=error.sentence))
            except Exception as error:  # the person is told, and it asks again
                self._answers.put(Answer(view, failed=str(error).partition("\n")[0]))

    def _ask(self, rows: int) -> None:
        """Ask for the next screen when it is time, unless the last one has not come yet."""
        now = time.monotonic()
        if self._asking_since is None and now >= self._next and not self._screen.stopped:
            self._asking_since = now
            self._questions.put((self._screen.view, min(rows, MOST)))

    def _take(self) -> None:
        """Take the answer that has come."""
        with contextlib.suppress(queue.Empty):
            answer = self._answers.get_nowait()
            now = time.monotonic()
            self._asking_since = None
            if answer.view != self._screen.view:
                self._next = now
                return
            self._next = now + max(self._screen.pause, (_SHARE - 1) * answer.took)
            if answer.failed:
                self._failing_since = self._failing_since or now
                self._screen.away = answer.failed
                return
            self._failing_since, self._screen.away, self._answered = None, "", now
            self._screen.rows = self._with_rates(answer)
            self._screen.total, self._screen.at = answer.total, answer.at
            if self._screen.view.skip >= answer.total > 0:
                self._look(skip=max(answer.total - 1, 0))

    def _with_rates(self, answer: Answer) -> list[dict[str, Any]]:
        """Return rows with how many events a second came, or were read, since the screen before."""
        counted = "appended" if answer.view.what == "streams" else "unread_events"
        sign = 1 if answer.view.what == "streams" else -1
        at, before = self._before
        now = {(row.get("reader_group") if sign < 0 else "", row["stream"]): row[counted]
               for row in answer.rows}  # fmt: skip
        self._before = (answer.at, now)
        passed = (answer.at - at).total_seconds() if at and answer.at else 0.0
        return [
            row | {"rate": max(sign * (now[key] - before[key]), 0) / passed
                   if key in before and passed > 0 else None}
            for key, row in zip(now, answer.rows, strict=True)
        ]  # fmt: skip

    def _tell(self) -> None:
        """Say so if the database does not answer."""
        asking = self._asking_since
        if self._failing_since is None and asking is not None:
            waited = time.monotonic() - asking
            slow = waited > max(3.0, 2 * self._screen.pause)
            self._screen.away = f"the database has not answered for {waited:.0f} s" if slow else ""

    def _look(self, **changed: Any) -> None:
        """Look at something else, at once."""
        self._screen.view = replace(self._screen.view, **changed)
        self._next = 0.0

    def _pressed(self, key: str, rows: int) -> None:
        view, last = self._screen.view, max(self._screen.total - rows, 0)
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -rows, "page down": rows}
        if key in steps:
            self._look(skip=min(max(view.skip + steps[key], 0), last))
        elif key == "home":
            self._look(skip=0)
        elif key == "tab":
            what = "groups" if view.what == "streams" else "streams"
            self._screen.rows, self._screen.at, self._before = (), None, (None, {})
            self._look(what=what, order=next(iter(ORDERS[what])), skip=0)
        elif key == "o":
            orders = list(ORDERS[view.what])
            order = orders[(orders.index(view.order) + 1) % len(orders)]
            self._look(order=order, skip=0)
        elif key == "/":
            self._screen.typing = view.search
        elif key == " ":
            self._screen.stopped = not self._screen.stopped
            self._next = 0.0

    def _typed(self, key: str) -> None:
        """Take a key of the filter, which works while it is typed."""
        typed = self._screen.typing or ""
        if key in ("enter", "escape"):
            typed = typed if key == "enter" else ""
            self._screen.typing = None
        else:
            typed = typed[:-1] if key == "delete" else typed + (key if len(key) == 1 else "")
            self._screen.typing = typed
        self._look(search=typed, skip=0)


@contextlib.contextmanager
def _keys() -> Iterator[Any]:
    """Give a function that waits so many seconds for keys, and returns those that were pressed. The
    terminal is afterwards what it was before."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    stopping = signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # it would leave the screen as it is
    logging.disable(logging.WARNING)  # the screen says it
    tty.setcbreak(terminal)

    def pressed(seconds: float) -> list[str]:
        if not select.select([terminal], [], [], seconds)[0]:
            return []
        given = os.read(terminal, 1024)
        if not given:  # nobody is there any more
            raise KeyboardInterrupt
        if given in _KEYS or given.startswith(b"\x1b"):
            return [_KEYS.get(given, "")]
        one_by_one = given.decode(errors="ignore")
        return [_KEYS.get(c.encode(), c if c.isprintable() else "") for c in one_by_one]

    try:
        yield pressed
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        signal.signal(signal.SIGTSTP, stopping)
        logging.disable(logging.NOTSET)
