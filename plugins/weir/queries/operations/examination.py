"""What an examination tells of what is in the database. Made by `make queries` from sql/queries/operations/examination.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

TROUBLES = text(
    """SELECT kind, severity, sentence, advice, action, given FROM weir.troubles ORDER BY severity DESC, since, subject LIMIT 100"""
)


class Troubles(NamedTuple):
    """A row of `troubles`."""

    kind: str
    severity: str
    sentence: str
    advice: str
    action: str | None
    given: dict[str, object]


def troubles(connection: Connection) -> list[Troubles]:
    """Return what is wrong now, the worst first."""
    result = connection.execute(TROUBLES)
    return [Troubles._make(row) for row in result]
