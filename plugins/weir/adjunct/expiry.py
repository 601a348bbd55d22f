"""Let versions of adjunct stores expire: their files become garbage."""

from functools import partial
from typing import Required, TypedDict

from sqlalchemy import Connection

from weir.adjunct.stores import lock_store
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.model.adjunct_expiry import Kept, expire
from weir.model.clock import SECOND
from weir.queries.adjunct import expiry as sql


class Expired(TypedDict, total=False):
    """The versions of a store that expired, or the `error` with which that failed."""

    adjunct_store: Required[str]
    expired: list[int]
    error: str


def expire_versions(database: Database) -> list[Expired]:
    """Let the versions of all stores expire that are older than their stores keep them, except the
    newest, those that open batches are read with, and those that a history begins with. A store
    that fails does not stop the others.
    """
    due = database.transaction(_due)
    reports: list[Expired] = []
    for store_id, name in due:
        work = partial(commit_once, database, partial(_expire, store_id=store_id))
        done, error = database.one_of_many(f"adjunct store {name}", work)
        if error:
            reports.append({"adjunct_store": name, "error": error})
        elif done:
            reports.append({"adjunct_store": name, "expired": done})
    return reports


def _due(connection: Connection) -> list[sql.Due]:
    """Return the stores of which a version may have to expire."""
    first = sql.first_due(connection)
    # `before` is known before the next statement is planned: few of the versions that are kept were
    # superseded before it.
    return sql.due(connection, before=first.before) if first.due and first.before else []


def _expire(connection: Connection, store_id: int) -> list[int]:
    """Let versions of one store expire; return them."""
    lock_store(connection, store_id)
    settings = sql.settings(connection, store_id=store_id)
    pins = sql.pins(connection, store_id=store_id)
    found = expire(
        [Kept(*row) for row in sql.versions(connection, store_id=store_id)],
        now=settings.now,
        keep=settings.keep_versions * SECOND,
        history=None if settings.history is None else settings.history * SECOND,
        pinned=[pin.version for pin in pins],
        asked=[(pin.line, pin.since) for pin in pins if pin.since is not None],
    )
    if found.tables or found.histories:
        sql.expire(
            connection,
            store_id=store_id,
            tables=sorted(found.tables),
            histories=sorted(found.histories),
        )
    return sorted(found.tables)


def prune_versions(database: Database, older_than: float) -> int:
    """Delete the rows of versions that expired, or were abandoned, more than so many seconds ago,
    and that no batch names; return how many."""
    return commit_once(database, partial(sql.prune, age=older_than))
