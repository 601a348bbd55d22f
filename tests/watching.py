"""Statements, seen as they are sent: those that stand alone from the driver, as SQLAlchemy's events
are for the others.
"""

from collections.abc import Callable
from typing import Any

import psycopg2
from sqlalchemy import event

from weir.database.connection import Database


def nothing(_: Any) -> None:
    """Do nothing."""


def watch_alone(
    database: Database,
    before: Callable[[str], object] = nothing,
    after: Callable[[str], object] = nothing,
    failed: Callable[[psycopg2.Error], object] = nothing,
) -> None:
    """Call these with each statement from now on, and with each error."""

    class Watched(database.cursor_alone):  # type: ignore[misc, name-defined]
        def execute(self, query: str, given: Any = None) -> Any:
            before(query)
            try:
                super().execute(query, given)
            except psycopg2.Error as error:
                failed(error)
                raise
            after(query)

    database.cursor_alone = Watched


def count_statements(database: Database) -> list[str]:
    """Return a list to which every statement that is sent from now on is appended."""
    statements: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *sent: statements.append(sent[2]))
    watch_alone(database, before=statements.append)
    return statements
