"""`weir top`: streams and reader groups as they are now, in a terminal, again and again.

One statement is one screen, and asks only for the rows that are shown.
"""

import argparse
import contextlib
import os
import sys

from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.settings import hasty
from weir.terminal.look import Terminal
from weir.terminal.printing import print_json
from weir.terminal.top_rows import MOST, ORDERS, View, ask


def top(terminal: Terminal, given: argparse.Namespace) -> int:
    """Show streams, or reader groups, as they are now, again and again: q ends it. With --once, or
    where there is no terminal: once."""
    what = "groups" if given.groups else "streams"
    order = given.sort or next(iter(ORDERS[what]))
    if order not in ORDERS[what]:
        raise InvalidInput(
            "argument_invalid",
            f"--sort is {order!r}; {what} are sorted by {' or '.join(ORDERS[what])}.",
        )
    pause = _seconds(given.every)
    view = View(what, order, given.search or "")
    if terminal.json or given.once or not _is_terminal():
        return _once(terminal, view)
    from weir.terminal.top_live import Live

    with Database.of(hasty(terminal.settings)) as database:
        return Live(database, view, pause).run()


def _seconds(given: str) -> float:
    """Return how many seconds lie between two screens. Raises InvalidInput."""
    with contextlib.suppress(ValueError):
        if 0.2 <= (seconds := float(given)) <= 3600:
            return seconds
    raise InvalidInput(
        "argument_invalid", f"--every is {given!r}; it must be from 0.2 to 3600 seconds."
    )


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _once(terminal: Terminal, view: View) -> int:
    from rich.console import Console

    from weir.terminal.top_screen import Screen

    answer = ask(terminal.database, view, MOST)
    if terminal.json:
        print_json(answer.rows)
        return 0
    screen = Screen(view, answer.rows, answer.total, answer.at)
    # Who reads it elsewhere gets all of it.
    console = Console(width=None if sys.stdout.isatty() else 300, highlight=False)
    console.print(screen.table(console.width, MOST))
    return 0
