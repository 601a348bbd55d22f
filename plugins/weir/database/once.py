"""Commit once what has no identity by which a repetition could find it, such as a periodic run."""

import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.queries.database import once as sql

T = TypeVar("T")
_PATIENCE = 10.0  # seconds that the server may take to end a transaction whose client is gone


def commit_once(database: Database, work: Callable[[Connection], T]) -> T:
    """Run `work` like `Database.transaction`. If the answer to its COMMIT is lost, the server is
    asked whether that was done, and what `work` has returned is returned: what is done already
    would otherwise not be done again, and so not be reported."""
    before: list[tuple[sql.Mine, T]] = []

    def asking(connection: Connection) -> T:
        for tried, result in before:
            if _is_committed(connection, tried):
                return result
        result = work(connection)
        before[:] = [(sql.mine(connection), result)]
        return result

    return database.transaction(asking)


def _is_committed(connection: Connection, tried: sql.Mine) -> bool:
    """Return whether a transaction was committed, once it has ended."""
    until = time.monotonic() + _PATIENCE
    while tried.number is not None:
        status = sql.status(connection, started=tried.started, number=tried.number)
        if status != "in progress" or time.monotonic() > until:
            return status == "committed"
        time.sleep(0.05)
    return False
