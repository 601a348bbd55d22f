"""The adjunct stores. Made by `make queries` from sql/queries/pages/stores.sql."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from pydantic import BaseModel
from sqlalchemy import Connection, text

FOUND = text(
    """SELECT (SELECT count(*) FROM weir_internal.adjunct_store a
        WHERE :search = '' OR strpos(a.name, lower(:search)) > 0) AS total,
    array(SELECT a.name FROM weir_internal.adjunct_store a
          WHERE (:search = '' OR strpos(a.name, lower(:search)) > 0) AND a.name > :after
          ORDER BY a.name LIMIT CAST(:limit AS bigint) + 1) AS names"""
)


class Found(BaseModel):
    """A row of `found`."""

    total: int
    names: list[str]


def found(connection: Connection, *, search: str, after: str, limit: int) -> Found:
    """Return a page of the names of stores, one more than `limit`, and how many there are in all."""
    result = connection.execute(FOUND, {"search": search, "after": after, "limit": limit})
    row = result.one()
    return Found(**row._mapping)


STORES = text(
    """SELECT s.adjunct_store AS store, s.stream, s.stream_deleted, s.version, s.complete_to, s.row_count,
    s.bytes, s.events_behind, s.time_behind, s.versions, s.building, s.error, s.failed_at, s.layout,
    s.created_at, s.history, s.keep_versions, s.time_out, s.definition, s.key, s.value,
    s.delete_when, s.missing, s.bootstrap, s.on_error, s.on_gap
FROM weir.adjunct_stores s WHERE s.adjunct_store = ANY(:names) ORDER BY s.adjunct_store"""
)


class Store(BaseModel):
    """An adjunct store: its definition, its newest version, how far it is behind its stream."""

    store: str
    stream: str
    stream_deleted: bool
    version: int | None
    complete_to: datetime | None
    row_count: int | None
    bytes: int | None
    events_behind: int | None
    time_behind: timedelta | None
    versions: int
    building: str | None
    error: str | None
    failed_at: datetime | None
    layout: str
    created_at: datetime
    history: timedelta | None
    keep_versions: timedelta
    time_out: timedelta | None
    definition: int
    key: str
    value: str
    delete_when: str
    missing: str
    bootstrap: str
    on_error: str
    on_gap: str


def stores(connection: Connection, *, names: Sequence[str]) -> list[Store]:
    """Return stores by their names."""
    result = connection.execute(STORES, {"names": list(names)})
    return [Store(**row._mapping) for row in result]


VERSIONS = text(
    """SELECT version, state, kind, base, definition, complete_to, layout, row_count, bytes, events,
    upserts, deletes, failed_rows, lost_events, builder, attempt, started_at, published_at,
    superseded_at, ended_at,
    coalesce(published_at, ended_at) - started_at AS took
FROM weir.adjunct_versions WHERE adjunct_store = :name ORDER BY version DESC LIMIT 50"""
)


class Version(BaseModel):
    """A version: what it was made of, when, by whom, and what became of it."""

    version: int
    state: str
    kind: str
    base: int | None
    definition: int
    complete_to: datetime | None
    layout: str | None
    row_count: int | None
    bytes: int | None
    events: int | None
    upserts: int | None
    deletes: int | None
    failed_rows: int | None
    lost_events: int
    builder: str
    attempt: int
    started_at: datetime
    published_at: datetime | None
    superseded_at: datetime | None
    ended_at: datetime | None
    took: timedelta | None


def versions(connection: Connection, *, name: str) -> list[Version]:
    """Return the newest versions of a store."""
    result = connection.execute(VERSIONS, {"name": name})
    return [Version(**row._mapping) for row in result]


PINS = text(
    """SELECT reader_group, batch_id, version, state, batch_state, complete_to, pinned_at
FROM weir.adjunct_pins WHERE adjunct_store = :name AND batch_state = 'open'
ORDER BY pinned_at DESC NULLS FIRST, reader_group, batch_id LIMIT 100"""
)


class Pin(BaseModel):
    """An open batch that is read with a version, which it protects."""

    reader_group: str
    batch_id: int
    version: int | None
    state: str
    batch_state: str
    complete_to: datetime | None
    pinned_at: datetime | None


def pins(connection: Connection, *, name: str) -> list[Pin]:
    """Return the open batches that are read with a version of a store."""
    result = connection.execute(PINS, {"name": name})
    return [Pin(**row._mapping) for row in result]
