"""Versions of adjunct stores that expire. Made by `make queries` from sql/queries/adjunct/expiry.sql."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

DUE = text("""SELECT store_id, name FROM stores_with_expired(:before) ORDER BY 1""")


class Due(NamedTuple):
    """A row of `due`."""

    store_id: int
    name: str


def due(connection: Connection, *, before: datetime) -> list[Due]:
    """Return the stores of which a version was superseded, or has changes, long enough ago."""
    result = connection.execute(DUE, {"before": before})
    return [Due._make(row) for row in result]


FIRST_DUE = text(
    """SELECT n.before, EXISTS (SELECT FROM adjunct_version WHERE history_from IS NOT NULL)
    OR (SELECT min(superseded_at) FROM adjunct_version
        WHERE state = 'published' AND superseded_at IS NOT NULL) <= n.before AS due
FROM (SELECT clock_timestamp() - min(keep_versions) * interval '1 second' AS before
      FROM adjunct_store) n"""
)


class FirstDue(NamedTuple):
    """A row of `first_due`."""

    before: datetime | None
    due: bool | None


def first_due(connection: Connection) -> FirstDue:
    """Return whether a version may be due, and when it was superseded: few were before that."""
    result = connection.execute(FIRST_DUE)
    row = result.one()
    return FirstDue._make(row)


VERSIONS = text(
    """SELECT version, definition || '/' || coalesce(code, '') AS line, clock,
    time_clock(superseded_at) AS superseded, state = 'published' AS published, history_from
FROM adjunct_version
WHERE store_id = :store_id AND (state = 'published' OR state = 'expired' AND history_from IS NOT NULL)
ORDER BY version"""
)


class Kept(NamedTuple):
    """A row of `versions`."""

    version: int
    line: str
    clock: int
    superseded: int | None
    published: bool
    history_from: int | None


def versions(connection: Connection, *, store_id: int) -> list[Kept]:
    """Return the versions of a store that have a table or a history."""
    result = connection.execute(VERSIONS, {"store_id": store_id})
    return [Kept._make(row) for row in result]


PINS = text(
    """SELECT p.version, p.since, v.definition || '/' || coalesce(v.code, '') AS line
FROM adjunct_pin p JOIN reader_batch b USING (group_id, batch_id)
JOIN adjunct_version v ON v.store_id = p.store_id AND v.version = p.version
WHERE p.store_id = :store_id AND b.state = 'open'"""
)


class Pinned(NamedTuple):
    """A row of `pins`."""

    version: int
    since: int | None
    line: str


def pins(connection: Connection, *, store_id: int) -> list[Pinned]:
    """Return the versions that open batches are read with."""
    result = connection.execute(PINS, {"store_id": store_id})
    return [Pinned._make(row) for row in result]


EXPIRE = text(
    """WITH unlisted AS (
    DELETE FROM adjunct_version_file WHERE store_id = :store_id AND version = ANY(:tables)
    RETURNING path
), freed AS (
    DELETE FROM adjunct_file f WHERE f.store_id = :store_id
      AND (f.kind = 'history' AND f.version = ANY(:histories)
           OR f.kind = 'table' AND f.path IN (SELECT path FROM unlisted)
              AND NOT EXISTS (
                  SELECT FROM adjunct_version_file o
                  WHERE o.store_id = :store_id AND o.path = f.path AND o.version <> ALL(:tables)))
    RETURNING path, bytes
), garbage AS (
    INSERT INTO garbage (root, path, stream_id, reason, bytes)
    SELECT '', path, NULL, 'expired', bytes FROM freed ON CONFLICT (root, path) DO NOTHING
), without_history AS (
    UPDATE adjunct_version SET history_from = NULL
    WHERE store_id = :store_id AND version = ANY(:histories) AND version <> ALL(:tables)
)
UPDATE adjunct_version SET state = 'expired', ended_at = clock_timestamp(),
    history_from = CASE WHEN version <> ALL(:histories) THEN history_from END
WHERE store_id = :store_id AND version = ANY(:tables)"""
)


def expire(
    connection: Connection, *, store_id: int, tables: Sequence[int], histories: Sequence[int]
) -> None:
    """Let tables and histories of versions expire; their files become garbage."""
    result = connection.execute(
        EXPIRE, {"store_id": store_id, "tables": list(tables), "histories": list(histories)}
    )
    result.close()


SETTINGS = text(
    """SELECT keep_versions, history, time_clock(clock_timestamp()) AS now
FROM adjunct_store WHERE store_id = :store_id"""
)


class Settings(NamedTuple):
    """A row of `settings`."""

    keep_versions: int
    history: int | None
    now: int


def settings(connection: Connection, *, store_id: int) -> Settings:
    """Return for how long a store keeps versions and changes."""
    result = connection.execute(SETTINGS, {"store_id": store_id})
    row = result.one()
    return Settings._make(row)


PRUNE = text(
    """DELETE FROM adjunct_version v
WHERE v.state IN ('expired', 'abandoned') AND v.history_from IS NULL
  AND v.ended_at < clock_timestamp() - :age * interval '1 second'
  AND NOT EXISTS (SELECT FROM adjunct_pin p
                  WHERE p.store_id = v.store_id AND p.version = v.version)"""
)


def prune(connection: Connection, *, age: float) -> int:
    """Delete the rows of versions that ended long ago, and that no batch names."""
    result = connection.execute(PRUNE, {"age": age})
    return result.rowcount
