"""The schema of streams. Made by `make queries` from sql/queries/controller/streams.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.model.schema import Field

NEXT_VERSION = text(
    """WITH made AS (
    INSERT INTO stream_schema (stream_id, version, fields, dropped)
    VALUES (:stream_id, :version, CAST(:fields AS jsonb), CAST(:dropped AS text[]))
)
UPDATE stream SET schema_version = :version WHERE stream_id = :stream_id"""
)


def next_version(
    connection: Connection, *, stream_id: int, version: int, fields: str, dropped: Sequence[str]
) -> None:
    """Make `fields` a version of the schema, and the newest one."""
    result = connection.execute(
        NEXT_VERSION,
        {"stream_id": stream_id, "version": version, "fields": fields, "dropped": dropped},
    )
    result.close()


DROPPED = text(
    """SELECT dropped FROM stream_schema WHERE stream_id = :stream_id AND version = :version"""
)


def dropped(connection: Connection, *, stream_id: int, version: int) -> list[str] | None:
    """Return the names in files of the columns that a version of the schema has no more."""
    result = connection.execute(DROPPED, {"stream_id": stream_id, "version": version})
    value: list[str] | None = result.scalar_one_or_none()
    return value


NEWEST_FIELDS = text(
    """SELECT fields FROM stream_schema WHERE stream_id = :stream_id ORDER BY version DESC LIMIT 1"""
)


def newest_fields(connection: Connection, *, stream_id: int) -> list[Field] | None:
    """Return the columns of the newest version."""
    result = connection.execute(NEWEST_FIELDS, {"stream_id": stream_id})
    value: list[Field] | None = result.scalar_one_or_none()
    return value


VERSIONS = text(
    """SELECT time_clock(created_at) AS since, fields FROM stream_schema
WHERE stream_id = :stream_id ORDER BY version"""
)


class Versions(NamedTuple):
    """A row of `versions`."""

    since: int
    fields: list[Field]


def versions(connection: Connection, *, stream_id: int) -> list[Versions]:
    """Return all versions, oldest first, each with the clock from which on it was the newest."""
    result = connection.execute(VERSIONS, {"stream_id": stream_id})
    return [Versions._make(row) for row in result]
