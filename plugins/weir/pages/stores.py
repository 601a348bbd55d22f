"""The adjunct stores: the list, one in full, and what a version has of a key."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.adjunct.lookup import look_up
from weir.errors import NotFound
from weir.pages.answering import Asked, Tagged
from weir.pages.events import one_of_few, text_of
from weir.queries.pages import stores as sql
from weir.settings import Settings

router = APIRouter(route_class=Tagged, tags=["adjunct stores"])
values = APIRouter(route_class=Tagged, tags=["adjunct stores"])  # data, as events are

MOST_TEXT = 4000  # characters of a value that are shown
MOST_VALUES = 200


class Stores(BaseModel):
    """A page of stores. `next`: what to give as `after` for the page that follows."""

    stores: list[sql.Store]
    total: int
    next: str | None


class StoreInFull(BaseModel):
    """A store, its newest versions, and the open batches that have pinned one."""

    store: sql.Store
    versions: list[sql.Version]
    pins: list[sql.Pin]


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
        found = sql.found(connection, search=search, after=after, limit=limit)
        return Stores(
            stores=sql.stores(connection, names=found.names[:limit]),
            total=found.total,
            next=found.names[limit - 1] if len(found.names) > limit else None,
        )

    return asked.snapshot(read)


@router.get("/stores/{scope}/{name}")
def show_store(asked: Asked, scope: str, name: str) -> StoreInFull:
    """Return a store in full. Three statements."""
    store = f"{scope}/{name}"

    def read(connection: Connection) -> StoreInFull:
        found = sql.stores(connection, names=[store])
        if not found:
            raise NotFound("adjunct_store_not_found", f"there is no adjunct store {store}.")
        return StoreInFull(
            store=found[0],
            versions=sql.versions(connection, name=store),
            pins=sql.pins(connection, name=store),
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


def _shown(name: str, value: object) -> Value:
    text = text_of(value)
    return Value(name=name, value=text and text[:MOST_TEXT], cut=len(text or "") > MOST_TEXT)
