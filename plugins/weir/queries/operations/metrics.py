"""Numbers for monitoring. Made by `make queries` from sql/queries/operations/metrics.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

MEASURED = text("""SELECT metric, labels, value FROM weir.metrics ORDER BY metric""")


class Measured(NamedTuple):
    """A metric, of what its labels say."""

    metric: str
    labels: dict[str, str]
    value: float


def measured(connection: Connection) -> list[Measured]:
    """Return each metric now, of what it is measured."""
    result = connection.execute(MEASURED)
    return [Measured._make(row) for row in result]
