"""The adjunct stores: the list, one in full, and what a version has of a key."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.adjunct.lookup import look_up
from weir.errors import NotFound
from weir.pages.answering import Asked, Tagged, rows
from weir.pages.events import one_of_few, text_of
from weir.settings import Settings

router = APIRouter(route_class=Tagged, tags=["adjunct stores"])
values = APIRouter(route_class=Tagged, tags=["adjunct stores"])  # data, as events are

MOST_TEXT = 4000  # characters of a value that are shown
MOST_VALUES = 200
_FOUND = """
SELECT (SELECT count(*) FROM weir_internal.adjunct_store a
        WHERE :search = '' OR strpos(a.name, lower(:search)) > 0) AS total,
    array(SELECT a.name FROM weir_internal.adjunct_store a
          WHERE (:search = '' OR strpos(a.name, lower(:search)) > 0) AND a.name > :after
          ORDER BY a.name LIMIT :limit + 1) AS names"""
_STORES = """
SELECT s.adjunct_store AS store, s.stream, s.stream_deleted, s.version, s.complete_to, s.row_count,
    s.bytes, s.events_behind, s.time_behind, s.versions, s.building, s.error, s.failed_at, s.layout,
    s.created_at, s.history, s.keep_versions, s.time_out, s.definition, s.key, s.value,
    s.delete_when, s.missing, s.bootstrap, s.on_error, s.on_gap
FROM weir.adjunct_stores s WHERE s.adjunct_store = ANY(:names) ORDER BY s.adjunct_store"""
_VERSIONS = """
SELECT version, state, kind, base, definition, complete_to, layout, row_count, bytes, events,
    upserts, deletes, failed_rows, lost_events, builder, attempt, started_at, published_at,
    superseded_at, ended_at,
    coalesce(published_at, ended_at) - started_at AS took
FROM weir.adjunct_versions WHERE adjunct_store = :name ORDER BY version DESC LIMIT 50"""
_PINS = """
SELECT reader_group, batch_id, version, state, batch_state, complete_to, pinned_at
FROM weir.adjunct_pins WHERE adjunct_store = :name AND batch_state = 'open'
ORDER BY pinned_at DESC NULLS FIRST, reader_group, batch_id LIMIT 100"""


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
    bootstrap: str | bool
    on_error: str
    on_gap: str


class Stores(BaseModel):
    """A page of stores. `next`: what to give as `after` for the page that follows."""

    stores: list[Store]
    total: int
    next: str | None


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


class Pin(BaseModel):
    """An open batch that is read with a version, which it protects."""

    reader_group: str
    batch_id: int
    version: int | None
    state: str
    batch_state: str
    complete_to: datetime | None
    pinned_at: datetime | None


class StoreInFull(BaseModel):
    """A store, its newest versions, and the open batches that have pinned one."""

    store: Store
    versions: list[Version]
    pins: list[Pin]


class Value(BaseModel):
    """A column of what a key has, as a text; null is null. `cut`: it is longer."""

    name: str
    value: str | None
    cut: bool


class LookedUp(BaseModel):
    """What a version has of a key; null: it has no such key."""

    values: list[Value] | None


@router.get("/stores")
def list_stores(
    asked: Asked,
    search: Annotated[str, Query(description="a part of the name")] = "",
    after: Annotated[str, Query(description="`next` of the page before")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> Stores:
    """Return the adjunct stores, a page of them. Two statements."""

    def read(connection: Connection) -> Stores:
        [(total, names)] = rows(connection, _FOUND, search=search, after=after, limit=limit)
        found = rows(connection, _STORES, names=names[:limit])
        return Stores(
            stores=[Store(**row._mapping) for row in found],
            total=total,
            next=names[limit - 1] if len(names) > limit else None,
        )

    return asked.snapshot(read)


@router.get("/stores/{scope}/{name}")
def show_store(asked: Asked, scope: str, name: str) -> StoreInFull:
    """Return a store in full. Three statements."""
    store = f"{scope}/{name}"

    def read(connection: Connection) -> StoreInFull:
        found = rows(connection, _STORES, names=[store])
        if not found:
            raise NotFound("adjunct_store_not_found", f"there is no adjunct store {store}.")
        return StoreInFull(
            store=Store(**found[0]._mapping),
            versions=[Version(**row._mapping) for row in rows(connection, _VERSIONS, name=store)],
            pins=[Pin(**row._mapping) for row in rows(connection, _PINS, name=store)],
        )

    return asked.snapshot(read)


@values.get("/stores/{scope}/{name}/look-up")
def look_up_key(
    asked: Asked,
    request: Request,
    scope: str,
    name: str,
    key: Annotated[str, Query(description="as a text, as Spark casts it")],
    version: Annotated[int | None, Query(ge=1, lt=2**62, description="none: the newest")] = None,
    conn_id: str = "",
) -> LookedUp:
    """Return what a version of a store has of a key. It reads a row group of each file that may
    have the key."""
    settings_of: Callable[[str], Settings] = request.app.state.settings_of
    warehouse = settings_of(conn_id).warehouse
    with one_of_few():
        found = look_up(asked, warehouse, f"{scope}/{name}", key, version)
    if found is None:
        return LookedUp(values=None)
    return LookedUp(values=[_shown(*one) for one in list(found.items())[:MOST_VALUES]])


def _shown(name: str, value: Any) -> Value:
    text = text_of(value)
    return Value(name=name, value=text and text[:MOST_TEXT], cut=len(text or "") > MOST_TEXT)
