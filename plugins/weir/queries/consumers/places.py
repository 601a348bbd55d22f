"""The keys of streams. Made by `make queries` from sql/queries/consumers/places.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

KEYS_OF = text(
    """SELECT s.stream_name, s.routing_key, s.on_missing_key FROM stream s
WHERE s.stream_name = ANY(:names) AND s.state <> 'deleted' ORDER BY s.stream_id"""
)


class KeysOf(NamedTuple):
    """A row of `keys_of`."""

    stream_name: str
    routing_key: str
    on_missing_key: str


def keys_of(connection: Connection, *, names: Sequence[str]) -> list[KeysOf]:
    """Return how streams make their keys."""
    result = connection.execute(KEYS_OF, {"names": list(names)})
    return [KeysOf._make(row) for row in result]
