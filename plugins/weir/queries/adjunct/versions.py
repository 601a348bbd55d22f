"""Versions of adjunct stores, and their files. Made by `make queries` from sql/queries/adjunct/versions.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.queries import Cut
from weir.model.schema import Field

NEWEST = text(
    """SELECT v.store_id, a.name AS store, a.stream_id, v.version, v.definition, v.cut, v.clock, v.fields,
    v.row_count AS rows, v.bytes, v.layout, v.code, d.value <> '' AS has_source
FROM adjunct_version v JOIN adjunct_store a USING (store_id)
JOIN adjunct_definition d ON d.store_id = v.store_id AND d.definition = v.definition
WHERE v.store_id = :store_id AND v.state = 'published' ORDER BY v.version DESC LIMIT 1"""
)


class Version(NamedTuple):
    """A row of `newest`."""

    store_id: int
    store: str
    stream_id: int
    version: int
    definition: int
    cut: Cut
    clock: int
    fields: list[Field]
    rows: int
    bytes: int
    layout: str
    code: str | None
    has_source: bool


def newest(connection: Connection, *, store_id: int) -> Version | None:
    """Return the newest published version of a store."""
    result = connection.execute(NEWEST, {"store_id": store_id})
    row = result.one_or_none()
    return None if row is None else Version._make(row)


ONE = text(
    """SELECT v.store_id, a.name AS store, a.stream_id, v.version, v.definition, v.cut, v.clock, v.fields,
    v.row_count AS rows, v.bytes, v.layout, v.code, d.value <> '' AS has_source
FROM adjunct_version v JOIN adjunct_store a USING (store_id)
JOIN adjunct_definition d ON d.store_id = v.store_id AND d.definition = v.definition
WHERE v.store_id = :store_id AND v.state = 'published' AND v.version = :version"""
)


def one(connection: Connection, *, store_id: int, version: int) -> Version | None:
    """Return a published version by its number."""
    result = connection.execute(ONE, {"store_id": store_id, "version": version})
    row = result.one_or_none()
    return None if row is None else Version._make(row)


FILES = text(
    """SELECT f.path, f.row_count AS rows, f.bytes, f.low, f.high
FROM adjunct_version_file v JOIN adjunct_file f USING (store_id, path)
WHERE v.store_id = :store_id AND v.version = :version ORDER BY f.low, f.path"""
)


class AdjunctFile(NamedTuple):
    """A row of `files`."""

    path: str
    rows: int
    bytes: int
    low: int
    high: int


def files(connection: Connection, *, store_id: int, version: int) -> list[AdjunctFile]:
    """Return the files of the table of a version, each with the range of the hashes of its keys."""
    result = connection.execute(FILES, {"store_id": store_id, "version": version})
    return [AdjunctFile._make(row) for row in result]


OLDER = text(
    """SELECT version, cut FROM adjunct_version
WHERE store_id = :store_id AND state = 'published' AND version < :version
  AND definition = :definition AND code IS NOT DISTINCT FROM :code ORDER BY version"""
)


class Older(NamedTuple):
    """A row of `older`."""

    version: int
    cut: Cut


def older(
    connection: Connection, *, store_id: int, version: int, definition: int, code: str | None
) -> list[Older]:
    """Return the older versions of a definition and code."""
    result = connection.execute(
        OLDER, {"store_id": store_id, "version": version, "definition": definition, "code": code}
    )
    return [Older._make(row) for row in result]


HISTORY = text(
    """SELECT version, clock, state, kind, history_from FROM adjunct_version
WHERE store_id = :store_id AND definition = :definition AND version <= :version
  AND code IS NOT DISTINCT FROM :code AND published_at IS NOT NULL
ORDER BY version DESC"""
)


class Changes(NamedTuple):
    """A row of `history`."""

    version: int
    clock: int
    state: str
    kind: str
    history_from: int | None


def history(
    connection: Connection, *, store_id: int, definition: int, version: int, code: str | None
) -> list[Changes]:
    """Return a version and the ones before it of a definition and code, whose changes may be kept."""
    result = connection.execute(
        HISTORY, {"store_id": store_id, "definition": definition, "version": version, "code": code}
    )
    return [Changes._make(row) for row in result]


HISTORY_FILES = text(
    """SELECT path, row_count AS rows, bytes, low, high FROM adjunct_file
WHERE store_id = :store_id AND version = ANY(:versions) AND kind = 'history' ORDER BY path"""
)


def history_files(
    connection: Connection, *, store_id: int, versions: Sequence[int]
) -> list[AdjunctFile]:
    """Return the files of the changes of versions."""
    result = connection.execute(HISTORY_FILES, {"store_id": store_id, "versions": list(versions)})
    return [AdjunctFile._make(row) for row in result]


FILE = text(
    """SELECT s.name, f.bytes FROM adjunct_file f JOIN adjunct_store s USING (store_id)
WHERE f.path = :path LIMIT 1"""
)


class File(NamedTuple):
    """A row of `file`."""

    name: str
    bytes: int


def file(connection: Connection, *, path: str) -> File | None:
    """Return what is recorded of a file of the versions of stores."""
    result = connection.execute(FILE, {"path": path})
    row = result.one_or_none()
    return None if row is None else File._make(row)
