"""Read how far reader groups are: the events that they have not read yet, and up to which event
time they have read everything."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, text

from weir.database.connection import Database


def read_lag(database: Database, groups: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each of the groups and each stream that it reads, from the view lag.

    It has the unread events and bytes; by how many `seconds` the oldest unread event is older than
    the newest event; for how many seconds it has been `waiting`; and the lost events.
    """
    if not groups:
        return []
    rows = database.transaction(
        lambda c: (
            c.execute(
                text(
                    """SELECT reader_group, stream, unread_events, unread_bytes, lost_events,
                    extract(epoch FROM lag)::double precision AS seconds,
                    extract(epoch FROM waiting)::double precision AS waiting
                FROM lag WHERE reader_group = ANY(:groups) ORDER BY reader_group, stream"""
                ),
                {"groups": list(groups)},
            )
            .mappings()
            .all()
        )
    )
    return [dict(row) for row in rows]


def group_completeness(connection: Connection, group: str) -> Sequence[Row[Any]]:
    """Return up to which event time a reader group has read everything, for each of its streams
    with an event time. Columns: those of the view `weir.group_completeness`."""
    return connection.execute(
        text("SELECT * FROM group_completeness WHERE reader_group = :group ORDER BY stream"),
        {"group": group},
    ).all()
