"""Each operation on an adjunct store is killed at every moment, and asked for again: done once."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.crash.fault_points import Scene, kill_everywhere
from tests.world.adjunct import LEASE, Store
from tests.world.streams import Lane, database_of_file, rows, run, unique
from weir.adjunct.builds import begin_build
from weir.adjunct.expiry import expire_versions
from weir.adjunct.publication import fail_build, publish_build
from weir.adjunct.stores import define_store, delete_store, update_store
from weir.database.connection import Database
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition

database = database_of_file


@dataclass(frozen=True)
class StoreScene(Scene):
    """An operation, and the store that it changes; `store_id` is null if it defines the store."""

    name: str = ""
    store_id: int | None = None

    def state(self, database: Database) -> tuple[str, ...]:
        """All that is known about the store, without times and numbers of its own."""
        questions = (
            """SELECT a.generation, a.definition, a.next_version, a.error, a.layout
            FROM adjunct_store a WHERE a.name = :name""",
            """SELECT v.version, v.definition, v.state, kind, base, attempt, from_cut, cut,
                row_count, superseded_at IS NULL, history_from IS NULL
            FROM adjunct_version v JOIN adjunct_store a USING (store_id)
            WHERE a.name = :name ORDER BY version""",
            """SELECT v.version, count(*) FROM adjunct_version_file v JOIN adjunct_store a
            USING (store_id) WHERE a.name = :name GROUP BY 1 ORDER BY 1""",
            """SELECT kind, count(*) FROM adjunct_file f JOIN adjunct_store a USING (store_id)
            WHERE a.name = :name GROUP BY 1 ORDER BY 1""",
            "SELECT group_cut(g.group_id, s.stream_id), s.released_cut FROM reader_group g "
            "JOIN reader_group_stream s USING (group_id) WHERE g.name = :name",
            """SELECT split_part(path, '/', 2), split_part(path, '/', 3), reason FROM garbage
            WHERE path LIKE '_weir_adjunct=' || :id || '/%' ORDER BY 1, 2""",
        )
        given = {"name": self.name, "id": str(self.store_id)}
        found = []
        for question in questions:
            used = {key: value for key, value in given.items() if f":{key}" in question}
            found.append(str([tuple(row) for row in rows(database, question, **used)]))
        return tuple(found)


def scene(store: Store, operation: Callable[[Database], Any]) -> Scene:
    return StoreScene(
        [], lambda db: operation(db) and None, name=store.name, store_id=store.row.store_id
    )


def made(database: Database, **options: Any) -> Store:
    lane = Lane.made(database, retention="consumed")
    lane.append({"0.0": 5, "1.0": 5})
    return Store.made(lane, history=3600, **options)


def define(database: Database) -> Scene:
    lane, name = Lane.made(database, retention="consumed"), f"test/{unique('store')}"
    given = (name, lane.name, AdjunctConfiguration(), AdjunctDefinition())
    return StoreScene(
        [], lambda db: define_store(db, *given, request_id=name) and None, name=name
    )  # fmt: skip


def redefine(database: Database) -> Scene:
    store = made(database)
    return scene(
        store,
        lambda db: update_store(
            db, store.name, {"layout": "broadcast"}, {"value": "n"}, time_out=9,
            change_time_out=True, request_id=store.name,
        ),
    )  # fmt: skip


def begin(database: Database) -> Scene:
    store = made(database)
    return scene(store, lambda db: begin_build(db, store.name, builder="b", lease=LEASE))


def begin_in_place_of_another(database: Database) -> Scene:
    store = made(database)
    store.begun("dead")
    store.lapse()
    return scene(store, lambda db: begin_build(db, store.name, builder="b", lease=LEASE))


def advance(database: Database) -> Scene:
    store = made(database)
    store.build()
    store.lane.scale("0.0")
    return scene(store, lambda db: begin_build(db, store.name, builder="b", lease=LEASE))


def publish(database: Database) -> Scene:
    store = made(database)
    store.build()
    store.lane.append({"0.0": 3})
    build = store.begun()
    built = store.built(build)
    return scene(store, lambda db: publish_build(db, build, built))


def fail(database: Database) -> Scene:
    store = made(database)
    build = store.begun()
    return scene(store, lambda db: fail_build(db, store.name, build, "it failed"))


def expire(database: Database) -> Scene:
    store = made(database)
    for _ in range(3):
        store.build()
        store.lane.append({"0.0": 3})
    store.update(history=None)
    run(database, "UPDATE adjunct_version SET superseded_at = '-infinity' WHERE store_id = :a "
        "AND superseded_at IS NOT NULL", a=store.row.store_id)  # fmt: skip
    return scene(store, expire_versions)


def delete(database: Database) -> Scene:
    store = made(database)
    store.build()
    return scene(store, lambda db: delete_store(db, store.name, request_id=store.name))


SCENES: list[Callable[[Database], Scene]] = [
    define, redefine, begin, begin_in_place_of_another, advance, publish, fail, expire, delete,
]  # fmt: skip
AGAIN_IS_MORE = (begin, begin_in_place_of_another)


@pytest.mark.random
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_killed_anywhere_and_asked_for_again_it_is_done_once(
    scene: Callable[[Database], Scene], database: Database, tmp_path: Path
) -> None:
    kill_everywhere(
        database, tmp_path, lambda: scene(database), again_is_more=scene in AGAIN_IS_MORE
    )
