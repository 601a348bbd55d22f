"""Files that the database does not know. Made by `make queries` from sql/annex/verification/queries/strangers.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

WITH_STRANGERS = text(
    """SELECT DISTINCT stream_id FROM found_damage WHERE kind = ANY(CAST(:kinds AS text[]))"""
)


def with_strangers(connection: Connection, *, kinds: Sequence[str]) -> list[int | None]:
    """Return the streams in whose folders strangers were found before; null: elsewhere."""
    result = connection.execute(WITH_STRANGERS, {"kinds": list(kinds)})
    return [row[0] for row in result]


MISSING = text(
    """SELECT f.bytes, f.end_hash, f.path FROM found_damage d
JOIN data_file f USING (stream_id, segment_id, start_offset)
WHERE d.kind = 'missing' AND d.path = f.path AND f.end_hash IS NOT NULL"""
)


class MissingFile(NamedTuple):
    """A row of `missing`."""

    bytes: int
    end_hash: int
    path: str


def missing(connection: Connection) -> list[MissingFile]:
    """Return the files that are known to be missing."""
    result = connection.execute(MISSING)
    return [MissingFile._make(row) for row in result]


IS_THERE = text(
    """SELECT EXISTS (SELECT FROM stream WHERE stream_id = :stream_id AND state <> 'deleted')"""
)


def is_there(connection: Connection, *, stream_id: int) -> bool:
    """Return whether a stream is not deleted."""
    result = connection.execute(IS_THERE, {"stream_id": stream_id})
    value: bool = result.scalar_one()
    return value
