"""What the database records of itself. Made by `make queries` from sql/queries/controller/ownership.sql."""

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

KNOWN = text(
    """SELECT installation_id, NOT EXISTS (
    SELECT FROM transaction WHERE state = 'committed') AS new, sweep_count,
    incarnation <> incarnation() AS moved, warehouse IS NULL
    AND has_column_privilege('installation', 'warehouse', 'UPDATE') AS unplaced, true AS durable
FROM installation"""
)


class Known(NamedTuple):
    """A row of `known`."""

    installation_id: UUID
    new: bool
    sweep_count: int
    moved: bool
    unplaced: bool
    durable: bool


def known(connection: Connection) -> Known:
    """Return what to compare with a marker. As one statement that stands alone, because each append asks."""
    result = connection.execute(KNOWN)
    row = result.one()
    return Known._make(row)


PLACE = text("""UPDATE installation SET warehouse = :place WHERE warehouse IS NULL""")


def place(connection: Connection, *, place: str) -> None:
    """Note where the warehouse is, unless that is known."""
    result = connection.execute(PLACE, {"place": place})
    result.close()
