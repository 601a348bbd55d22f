"""Adjunct stores with rows of keys that are erased. Made by `make queries` from sql/annex/erasure/queries/stores.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.model.schema import Field

STORES = text(
    """SELECT s.name, s.store_id, s.stream_id,
    array(SELECT DISTINCT coalesce(d.key, '') FROM adjunct_definition d
        WHERE d.store_id = s.store_id AND (d.definition = s.definition OR EXISTS (
            SELECT FROM adjunct_version o WHERE o.store_id = s.store_id
                AND o.definition = d.definition
                AND (o.state = 'published' OR o.history_from IS NOT NULL)))) AS keys,
    (SELECT jsonb_agg(DISTINCT f) FROM adjunct_version o
        CROSS JOIN LATERAL jsonb_array_elements(o.fields) f
        WHERE o.store_id = s.store_id
            AND (o.state = 'published' OR o.history_from IS NOT NULL)) AS fields
FROM adjunct_store s
WHERE s.stream_id = ANY(:streams) ORDER BY s.name"""
)


class FoundStore(NamedTuple):
    """A row of `stores`."""

    name: str
    store_id: int
    stream_id: int
    keys: list[str]
    fields: list[Field] | None


def stores(connection: Connection, *, streams: Sequence[int]) -> list[FoundStore]:
    """Return the stores of some streams, with all keys and columns that their versions have."""
    result = connection.execute(STORES, {"streams": list(streams)})
    return [FoundStore._make(row) for row in result]


KEY_TYPES = text(
    """SELECT DISTINCT v.fields -> 0 ->> 'type' AS type FROM adjunct_file f
JOIN adjunct_version v USING (store_id, version)
WHERE f.store_id = :store_id AND v.fields IS NOT NULL ORDER BY 1"""
)


def key_types(connection: Connection, *, store_id: int) -> list[str]:
    """Return the types of the keys in the files of a store."""
    result = connection.execute(KEY_TYPES, {"store_id": store_id})
    return [row[0] for row in result]


FILES = text(
    """SELECT f.path FROM adjunct_file f
WHERE f.store_id = :store_id AND (CAST(:hashes AS bigint[]) IS NULL OR EXISTS (
    SELECT FROM unnest(CAST(:hashes AS bigint[])) h
    WHERE h BETWEEN f.low AND f.high)) ORDER BY f.path"""
)


def files(connection: Connection, *, store_id: int, hashes: Sequence[int] | None) -> list[str]:
    """Return the files of a store that may have keys of some hashes; without hashes, all."""
    result = connection.execute(
        FILES, {"store_id": store_id, "hashes": None if hashes is None else list(hashes)}
    )
    return [row[0] for row in result]


IS_BUILDING = text(
    """SELECT EXISTS (SELECT FROM adjunct_version WHERE store_id = :store_id AND state = 'building')"""
)


def is_building(connection: Connection, *, store_id: int) -> bool:
    """Return whether a version of a store is being built."""
    result = connection.execute(IS_BUILDING, {"store_id": store_id})
    value: bool = result.scalar_one()
    return value


MAKE_GARBAGE = text(
    """INSERT INTO garbage (root, path, reason) VALUES ('', :path, 'aborted')
ON CONFLICT (root, path) DO NOTHING"""
)


def make_garbage(connection: Connection, *, path: str) -> None:
    """Let a file count as garbage that is yet to be written."""
    result = connection.execute(MAKE_GARBAGE, {"path": path})
    result.close()


TAKE_FROM_GARBAGE = text(
    """DELETE FROM garbage WHERE root = '' AND path = ANY(CAST(:paths AS text[]))"""
)


def take_from_garbage(connection: Connection, *, paths: Sequence[str]) -> int:
    """Let files count that are written. Returns how many nobody has swept meanwhile."""
    result = connection.execute(TAKE_FROM_GARBAGE, {"paths": list(paths)})
    return result.rowcount


ADD_FILES = text(
    """INSERT INTO adjunct_file (store_id, path, kind, version, low, high, row_count, bytes)
SELECT f.store_id, n.path, f.kind, f.version, n.low, n.high, n.rows, n.bytes
FROM jsonb_to_recordset(CAST(:new AS jsonb)) AS n (old text, path text, rows bigint, bytes bigint,
        low bigint, high bigint, erased bigint) JOIN adjunct_file f ON f.store_id = :store_id AND f.path = n.old
WHERE n.path IS NOT NULL"""
)


def add_files(connection: Connection, *, new: str, store_id: int) -> None:
    """Record new files."""
    result = connection.execute(ADD_FILES, {"new": new, "store_id": store_id})
    result.close()


COUNT_LESS = text(
    """UPDATE adjunct_version v SET row_count = v.row_count - g.erased, bytes = v.bytes - g.freed
FROM (SELECT o.version, sum(n.erased) AS erased, sum(f.bytes - n.bytes) AS freed
      FROM jsonb_to_recordset(CAST(:new AS jsonb)) AS n (old text, path text, rows bigint, bytes bigint,
        low bigint, high bigint, erased bigint) JOIN adjunct_version_file o ON o.store_id = :store_id AND o.path = n.old
      JOIN adjunct_file f ON f.store_id = :store_id AND f.path = n.old
      GROUP BY o.version) g
WHERE v.store_id = :store_id AND v.version = g.version"""
)


def count_less(connection: Connection, *, new: str, store_id: int) -> None:
    """Record what versions have without the rows."""
    result = connection.execute(COUNT_LESS, {"new": new, "store_id": store_id})
    result.close()


ADD_TO_VERSIONS = text(
    """INSERT INTO adjunct_version_file (store_id, version, path)
SELECT o.store_id, o.version, n.path
FROM jsonb_to_recordset(CAST(:new AS jsonb)) AS n (old text, path text, rows bigint, bytes bigint,
        low bigint, high bigint, erased bigint) JOIN adjunct_version_file o ON o.store_id = :store_id AND o.path = n.old
WHERE n.path IS NOT NULL"""
)


def add_to_versions(connection: Connection, *, new: str, store_id: int) -> None:
    """Let versions have the new files."""
    result = connection.execute(ADD_TO_VERSIONS, {"new": new, "store_id": store_id})
    result.close()


DISCARD_FILES = text(
    """INSERT INTO garbage (root, path, stream_id, reason, bytes)
SELECT '', f.path, :stream_id, 'erased', f.bytes
FROM jsonb_to_recordset(CAST(:new AS jsonb)) AS n (old text, path text, rows bigint, bytes bigint,
        low bigint, high bigint, erased bigint) JOIN adjunct_file f ON f.store_id = :store_id AND f.path = n.old
ON CONFLICT (root, path) DO NOTHING"""
)


def discard_files(connection: Connection, *, stream_id: int, new: str, store_id: int) -> None:
    """Make garbage of the old files. One may be read by a batch that another stream's events are joined in: it is read again."""
    result = connection.execute(
        DISCARD_FILES, {"stream_id": stream_id, "new": new, "store_id": store_id}
    )
    result.close()


LET_GARBAGE_GO = text(
    """UPDATE garbage SET reason = 'erased', stream_id = :stream_id
WHERE root = '' AND starts_with(path, :folder) AND reason NOT IN ('swept', 'erased')"""
)


def let_garbage_go(connection: Connection, *, stream_id: int, folder: str) -> None:
    """Let what has expired of the store go without a grace period: it has the rows, too."""
    result = connection.execute(LET_GARBAGE_GO, {"stream_id": stream_id, "folder": folder})
    result.close()


REMOVE_FROM_VERSIONS = text(
    """DELETE FROM adjunct_version_file WHERE store_id = :store_id AND path = ANY(:old)"""
)


def remove_from_versions(connection: Connection, *, store_id: int, old: Sequence[str]) -> None:
    """Let no version have the old files."""
    result = connection.execute(REMOVE_FROM_VERSIONS, {"store_id": store_id, "old": list(old)})
    result.close()


REMOVE_FILES = text("""DELETE FROM adjunct_file WHERE store_id = :store_id AND path = ANY(:old)""")


def remove_files(connection: Connection, *, store_id: int, old: Sequence[str]) -> None:
    """Forget the old files."""
    result = connection.execute(REMOVE_FILES, {"store_id": store_id, "old": list(old)})
    result.close()


COUNT_ERASED = text("""SELECT count_erased(:request_id, :name, NULL, NULL, :rows)""")


def count_erased(connection: Connection, *, request_id: str, name: str, rows: int) -> None:
    """Record how many rows a request has erased of a store."""
    result = connection.execute(
        COUNT_ERASED, {"request_id": request_id, "name": name, "rows": rows}
    )
    result.close()
