"""Numbers for monitoring. Made by `make queries` from sql/queries/pages/metrics.sql."""

from pydantic import BaseModel
from sqlalchemy import Connection, text

MEASURED = text("""SELECT metric, labels, value FROM weir.metrics ORDER BY metric""")


class Measured(BaseModel):
    """A metric, of what its labels say."""

    metric: str
    labels: dict[str, str]
    value: float


def measured(connection: Connection) -> list[Measured]:
    """Return each metric now, of what it is measured."""
    result = connection.execute(MEASURED)
    return [Measured(**row._mapping) for row in result]
