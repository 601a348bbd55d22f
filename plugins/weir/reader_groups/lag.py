"""Read the lag of reader groups: the events that they have not read yet."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

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
