"""Lag: what reader groups have not read yet."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

from weir.database.connection import Database


def read_lag(database: Database, groups: Sequence[str]) -> list[dict[str, Any]]:
    """Per group and stream what is unread: events, bytes, by how many seconds it lags behind the
    newest event, and for how many the oldest has been `waiting`; and what was lost."""
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
