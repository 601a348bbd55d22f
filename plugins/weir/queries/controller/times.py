"""Times as addresses in streams. Made by `make queries` from sql/queries/controller/times.sql."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, text

CLOSE = text(
    """SELECT clock_time(close_streams(array(SELECT stream_id FROM stream
       WHERE stream_name = ANY(CAST(:names AS text[])) AND state <> 'deleted'),
       time_clock(CAST(:at AS timestamptz))))"""
)


def close(connection: Connection, *, names: Sequence[str], at: datetime | None) -> datetime:
    """Close a time in streams that exist, or this moment; return it."""
    result = connection.execute(CLOSE, {"names": list(names), "at": at})
    value: datetime = result.scalar_one()
    return value
