"""Whether a transaction was committed. Made by `make queries` from sql/queries/database/once.sql."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

MINE = text(
    """SELECT pg_current_xact_id_if_assigned()::text AS number, pg_postmaster_start_time() AS started"""
)


class Mine(NamedTuple):
    """A row of `mine`."""

    number: str | None
    started: datetime


def mine(connection: Connection) -> Mine:
    """Return the number of this transaction, if it has written, and when the server was started."""
    result = connection.execute(MINE)
    row = result.one()
    return Mine._make(row)


STATUS = text(
    """SELECT CASE WHEN pg_postmaster_start_time() = :started
    THEN pg_xact_status(CAST(CAST(:number AS text) AS xid8)) END AS status"""
)


def status(connection: Connection, *, started: datetime, number: str) -> str | None:
    """Return what became of a transaction. Only the server that gave the number knows what it means: a standby that was promoted does not."""
    result = connection.execute(STATUS, {"started": started, "number": number})
    value: str | None = result.scalar_one()
    return value
