"""Adjunct stores: defined, updated and deleted. Made by `make queries` from sql/queries/adjunct/stores.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

STORES = text(
    """SELECT a.store_id, a.name, a.stream_id, s.stream_name, a.group_id, a.generation, a.layout,
    a.bootstrap, a.missing, a.patience, a.null_key, a.on_error, a.on_gap, a.keep_versions, a.history,
    a.definition AS definition_number, d.key, d.key_type, d.value, d.value_columns, d.delete_when,
    d.outdated, g.time_out
FROM adjunct_store a JOIN stream s USING (stream_id)
JOIN reader_group g ON g.group_id = a.group_id
JOIN adjunct_definition d ON d.store_id = a.store_id AND d.definition = a.definition
WHERE a.name = ANY(CAST(:names AS text[]))"""
)


class StoreRow(NamedTuple):
    """A row of `stores`."""

    store_id: int
    name: str
    stream_id: int
    stream_name: str
    group_id: int
    generation: int
    layout: str
    bootstrap: str
    missing: str
    patience: int
    null_key: str
    on_error: str
    on_gap: str
    keep_versions: int
    history: int | None
    definition_number: int
    key: str
    key_type: str
    value: str
    value_columns: str
    delete_when: str
    outdated: str | None
    time_out: int | None


def stores(connection: Connection, *, names: Sequence[str]) -> list[StoreRow]:
    """Return those of some stores that exist."""
    result = connection.execute(STORES, {"names": list(names)})
    return [StoreRow._make(row) for row in result]


ROUTING_KEY = text("""SELECT routing_key FROM stream WHERE stream_id = :stream_id""")


def routing_key(connection: Connection, *, stream_id: int) -> str:
    """Return the routing key of a stream, also of a deleted one."""
    result = connection.execute(ROUTING_KEY, {"stream_id": stream_id})
    value: str = result.scalar_one()
    return value


LOCK = text("""SELECT name FROM adjunct_store WHERE store_id = :store_id FOR NO KEY UPDATE""")


def lock(connection: Connection, *, store_id: int) -> str | None:
    """Lock a store; return its name."""
    result = connection.execute(LOCK, {"store_id": store_id})
    value: str | None = result.scalar_one_or_none()
    return value


EXISTS = text("""SELECT EXISTS (SELECT FROM adjunct_store WHERE name = :name)""")


def exists(connection: Connection, *, name: str) -> bool:
    """Return whether there is a store of this name."""
    result = connection.execute(EXISTS, {"name": name})
    value: bool = result.scalar_one()
    return value


SAY_TIME = text("""SELECT to_json(clock_time(:clock)) #>> '{}'""")


def say_time(connection: Connection, *, clock: int) -> str:
    """Return the time of a clock as JSON writes it."""
    result = connection.execute(SAY_TIME, {"clock": clock})
    value: str = result.scalar_one()
    return value


COMPLETE_SINCE = text(
    """SELECT CASE WHEN z.events > 0 THEN
    coalesce(clock_after(:stream_id, CAST(:head AS jsonb)), :last) END AS since
FROM size_till(CAST(:stream_id AS bigint), CAST(:head AS jsonb)) z"""
)


def complete_since(connection: Connection, *, stream_id: int, head: str, last: int) -> int | None:
    """Return the clock of the oldest event of a stream; None if no event was ever truncated."""
    result = connection.execute(
        COMPLETE_SINCE, {"stream_id": stream_id, "head": head, "last": last}
    )
    value: int | None = result.scalar_one()
    return value


DISCARD = text(
    """WITH files AS (
    INSERT INTO garbage (root, path, stream_id, reason, bytes)
    SELECT '', :folder, NULL, 'deleted', coalesce(sum(bytes), 0)
    FROM adjunct_file WHERE store_id = :store_id
    ON CONFLICT (root, path) DO NOTHING
)
DELETE FROM adjunct_pin WHERE store_id = :store_id"""
)


def discard(connection: Connection, *, folder: str, store_id: int) -> None:
    """Make garbage of the files of a store, and forget which batches read them."""
    result = connection.execute(DISCARD, {"folder": folder, "store_id": store_id})
    result.close()


DELETE = text("""DELETE FROM adjunct_store WHERE store_id = :store_id""")


def delete(connection: Connection, *, store_id: int) -> None:
    """Delete a store."""
    result = connection.execute(DELETE, {"store_id": store_id})
    result.close()


OWNED = text(
    """SELECT (SELECT count(*) FROM adjunct_version WHERE store_id = :store_id) AS versions,
(SELECT coalesce(sum(bytes), 0)::bigint FROM adjunct_file WHERE store_id = :store_id)
    AS bytes,
(SELECT s.stream_name FROM adjunct_store a JOIN stream s USING (stream_id)
    WHERE a.store_id = :store_id) AS stream"""
)


class Owned(NamedTuple):
    """A row of `owned`."""

    versions: int
    bytes: int
    stream: str


def owned(connection: Connection, *, store_id: int) -> Owned:
    """Return how many versions and bytes a store has, and the name of its stream."""
    result = connection.execute(OWNED, {"store_id": store_id})
    row = result.one()
    return Owned._make(row)


PINNED = text(
    """SELECT b.group_name, b.batch_id FROM adjunct_pin p
JOIN reader_batch b USING (group_id, batch_id)
WHERE p.store_id = :store_id AND b.state = 'open' ORDER BY 1, 2 LIMIT 1"""
)


class Pinned(NamedTuple):
    """A row of `pinned`."""

    group_name: str
    batch_id: int


def pinned(connection: Connection, *, store_id: int) -> Pinned | None:
    """Return an open batch that is read with a version of a store."""
    result = connection.execute(PINNED, {"store_id": store_id})
    row = result.one_or_none()
    return None if row is None else Pinned._make(row)


INSERT = text(
    """WITH made AS (
    INSERT INTO adjunct_store (name, stream_id, group_id,
        layout, bootstrap, missing, patience, null_key, on_error, on_gap, keep_versions, history)
    SELECT :name, :stream_id, g.group_id,
        :layout, :bootstrap, :missing, :patience, :null_key, :on_error, :on_gap, :keep_versions,
        :history
    FROM reader_group g WHERE g.name = :name
    RETURNING store_id
)
INSERT INTO adjunct_definition (store_id, definition, key, key_type, value, value_columns, delete_when)
SELECT store_id, 1, :key, :key_type, :value, :value_columns, :delete_when FROM made"""
)


def insert(
    connection: Connection,
    *,
    name: str,
    stream_id: int,
    layout: str,
    bootstrap: str,
    missing: str,
    patience: int,
    null_key: str,
    on_error: str,
    on_gap: str,
    keep_versions: int,
    history: int | None,
    key: str,
    key_type: str,
    value: str,
    value_columns: str,
    delete_when: str,
) -> None:
    """Record a store and its definition."""
    result = connection.execute(
        INSERT,
        {
            "name": name,
            "stream_id": stream_id,
            "layout": layout,
            "bootstrap": bootstrap,
            "missing": missing,
            "patience": patience,
            "null_key": null_key,
            "on_error": on_error,
            "on_gap": on_gap,
            "keep_versions": keep_versions,
            "history": history,
            "key": key,
            "key_type": key_type,
            "value": value,
            "value_columns": value_columns,
            "delete_when": delete_when,
        },
    )
    result.close()


UPDATE = text(
    """WITH redefined AS (
    INSERT INTO adjunct_definition (store_id, definition, key, key_type, value, value_columns, delete_when)
    VALUES (:store_id, :number, :key, :key_type, :value, :value_columns, :delete_when)
    ON CONFLICT (store_id, definition) DO NOTHING
), timed AS (
    UPDATE reader_group SET time_out = :time_out, generation = generation + 1
    WHERE group_id = :group_id AND time_out IS DISTINCT FROM :time_out
)
UPDATE adjunct_store SET definition = :number, generation = generation + 1,
    layout = :layout, bootstrap = :bootstrap, missing = :missing, patience = :patience, null_key =
    :null_key, on_error = :on_error, on_gap = :on_gap, keep_versions = :keep_versions, history =
    :history
WHERE store_id = :store_id"""
)


def update(
    connection: Connection,
    *,
    store_id: int,
    number: int,
    key: str,
    key_type: str,
    value: str,
    value_columns: str,
    delete_when: str,
    time_out: int | None,
    group_id: int,
    layout: str,
    bootstrap: str,
    missing: str,
    patience: int,
    null_key: str,
    on_error: str,
    on_gap: str,
    keep_versions: int,
    history: int | None,
) -> None:
    """Store the settings of a store, and its definition if that is another one."""
    result = connection.execute(
        UPDATE,
        {
            "store_id": store_id,
            "number": number,
            "key": key,
            "key_type": key_type,
            "value": value,
            "value_columns": value_columns,
            "delete_when": delete_when,
            "time_out": time_out,
            "group_id": group_id,
            "layout": layout,
            "bootstrap": bootstrap,
            "missing": missing,
            "patience": patience,
            "null_key": null_key,
            "on_error": on_error,
            "on_gap": on_gap,
            "keep_versions": keep_versions,
            "history": history,
        },
    )
    result.close()
