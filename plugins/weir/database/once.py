"""Commit once what has no identity by which a repetition could find it, such as a periodic run."""

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection, text

from weir.database.connection import Database

T = TypeVar("T")
_PATIENCE = 10.0  # seconds that the server may take to end a transaction whose client is gone
_MINE = text("SELECT pg_current_xact_id_if_assigned()::text, pg_postmaster_start_time()")
# Only the server that gave the number knows what it means: a standby that was promoted does not.
_STATUS = text(
    """SELECT CASE WHEN pg_postmaster_start_time() = :started
        THEN pg_xact_status(CAST(:number AS xid8)) END"""
)


class _Tried(NamedTuple):
    number: str | None
    started: object


def commit_once(database: Database, work: Callable[[Connection], T]) -> T:
    """Run `work` like `Database.transaction`. If the answer to its COMMIT is lost, the server is
    asked whether that was done, and what `work` has returned is returned: what is done already
    would otherwise not be done again, and so not be reported."""
    before: list[tuple[_Tried, T]] = []

    def asking(connection: Connection) -> T:
        for tried, result in before:
            if _is_committed(connection, tried):
                return result
        result = work(connection)
        before[:] = [(_Tried(*connection.execute(_MINE).one()), result)]
        return result

    return database.transaction(asking)


def _is_committed(connection: Connection, tried: _Tried) -> bool:
    """Return whether a transaction was committed, once it has ended."""
    until = time.monotonic() + _PATIENCE
    while tried.number is not None:
        status = connection.execute(_STATUS, tried._asdict()).scalar_one()
        if status != "in progress" or time.monotonic() > until:
            return bool(status == "committed")
        time.sleep(0.05)
    return False
