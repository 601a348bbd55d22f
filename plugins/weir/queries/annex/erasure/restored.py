"""What a restored database knows of erasures. Made by `make queries` from sql/annex/erasure/queries/restored.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

KNOWN_UNTIL = text(
    """SELECT to_char(greatest(
    (SELECT max(opened_at) FROM transaction WHERE state = 'committed'),
    (SELECT max(greatest(asked_at, done_at)) FROM erasure_request),
    (SELECT swept_at FROM installation)) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS until"""
)


def known_until(connection: Connection) -> str | None:
    """Return the last moment of which the database knows, by what nobody does in a restored one before its recovery: streams may be made there, and appends open, but none commits."""
    result = connection.execute(KNOWN_UNTIL)
    value: str | None = result.scalar_one()
    return value


REQUESTS = text("""SELECT request_id FROM erasure_request WHERE request_id = ANY(:requests)""")


def requests(connection: Connection, *, requests: Sequence[str]) -> list[str]:
    """Return those of some requests that are known."""
    result = connection.execute(REQUESTS, {"requests": list(requests)})
    return [row[0] for row in result]


KEYS = text("""SELECT key_number, public_key FROM signing_key""")


class PublicKey(NamedTuple):
    """A row of `keys`."""

    key_number: int
    public_key: bytes


def keys(connection: Connection) -> list[PublicKey]:
    """Return the keys of the installation."""
    result = connection.execute(KEYS)
    return [PublicKey._make(row) for row in result]
