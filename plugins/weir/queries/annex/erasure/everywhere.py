"""What an erasure asks of a whole installation. Made by `make queries` from sql/annex/erasure/queries/everywhere.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

EVENTS = text(
    """SELECT coalesce(sum(events - erased), 0)::bigint FROM data_file WHERE stream_id = :stream_id"""
)


def events(connection: Connection, *, stream_id: int) -> int:
    """Return how many events a stream has files of."""
    result = connection.execute(EVENTS, {"stream_id": stream_id})
    value: int = result.scalar_one()
    return value


MAY_SWEEP = text(
    """SELECT has_column_privilege('installation', 'sweep_count', 'UPDATE') AND sees_all(current_user)"""
)


def may_sweep(connection: Connection) -> bool:
    """Return whether this login may sweep."""
    result = connection.execute(MAY_SWEEP)
    value: bool = result.scalar_one()
    return value


PUBLISHED = text(
    """SELECT scope, name FROM stream
WHERE stream_id = ANY(:streams) AND publish <> 'none' AND state <> 'deleted'"""
)


class Published(NamedTuple):
    """A row of `published`."""

    scope: str
    name: str


def published(connection: Connection, *, streams: Sequence[int]) -> list[Published]:
    """Return those of some streams that are published."""
    result = connection.execute(PUBLISHED, {"streams": list(streams)})
    return [Published._make(row) for row in result]
