"""Stores are defined once, hold their stream back like subscribers, and end with all they have."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.raises import raises
from tests.world.adjunct import Store
from tests.world.streams import Lane, rows, unique
from weir.adjunct.stores import define_store, delete_store
from weir.database.connection import Database
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.names import stream_name
from weir.reader_groups.checkpoints.periodic import checkpoint_all
from weir.retention.run import retain
from weir.warehouse.paths import adjunct_folder


def define(lane: Lane, name: str, **options: Any) -> Mapping[str, Any]:
    return define_store(
        lane.database, name, lane.name, AdjunctConfiguration(**options), AdjunctDefinition(),
        request_id=unique("define"),
    )  # fmt: skip


def test_an_identical_store_is_left_as_it_is_and_another_is_refused(
    shared_database: Database,
) -> None:
    lane, other = (
        Lane.made(shared_database, retention="consumed"),
        Lane.made(shared_database, retention="consumed"),
    )
    store = Store.made(lane)
    before = store.row
    assert define(lane, store.name)["existed"] is True
    assert store.row == before
    with raises("adjunct_store_exists"):
        define(lane, store.name, layout="broadcast")
    with raises(f"adjunct_store_exists adjunct {lane.name}"):
        define(other, store.name)


def test_a_store_of_no_stream_or_with_wrong_settings_is_not_defined(
    shared_database: Database,
) -> None:
    lane = Lane.made(shared_database, retention="consumed")
    name = f"test/{unique('store')}"
    missing = replace(lane, name=stream_name("test/nothing"))
    with raises("stream_not_found"):
        define(missing, name)
    with raises("name_invalid adjunct"):
        define(lane, "no-scope")
    for wrong in (
        {"layout": "wide"}, {"bootstrap": "soon"}, {"bootstrap": "tail 5"}, {"keep_versions": 0},
        {"missing": "skip"}, {"null_key": "empty"}, {"on_error": "stop"}, {"on_gap": "skip"},
        {"patience": 0}, {"history": 0},
    ):  # fmt: skip
        with raises("argument_invalid"):
            define(lane, name, **wrong)
    for bootstrap, code in {
        "time soon": "time_invalid", "time 2999-01-01": "time_in_future",
        "0.0=x": "cut_invalid offset", "9.0=1": "cut_invalid because",
    }.items():  # fmt: skip
        with raises(code):
            define(lane, name, bootstrap=bootstrap)
    rejected = Lane.made(shared_database, name=f"{lane.name}.rejected", retention="consumed")
    with raises("name_invalid reserved"):
        define(rejected, name, on_error="quarantine")
    with raises("function_invalid does"):
        Store.made(lane, value="functions:values")
    with raises("function_invalid transforms"):
        Store.made(lane, key="upper(key)", key_type="STRING")
    assert not rows(lane.database, "SELECT FROM adjunct_store WHERE name = :n", n=name)


def test_a_store_is_a_subscriber_from_its_definition_on_and_until_it_is_deleted(
    shared_database: Database,
) -> None:
    lane = Lane.made(shared_database, segments=1, retention="consumed")
    lane.append({"0.0": 5})
    store = Store.made(lane)
    retain(shared_database, names=[lane.name])
    assert lane.head() == {"0.0": 0}
    store.build()
    checkpoint_all(shared_database)
    retain(shared_database, names=[lane.name])
    assert lane.head() == {"0.0": 5}
    [released] = rows(
        shared_database, "SELECT unread_events FROM lag WHERE reader_group = :g", g=store.name
    )
    assert released.unread_events == 0
    folder = adjunct_folder(store.row.store_id)
    delete_store(shared_database, store.name, request_id=unique("delete"))
    [dead] = rows(shared_database, "SELECT bytes FROM garbage WHERE path = :p", p=folder)
    assert dead.bytes == 100
    assert not rows(shared_database, "SELECT FROM subscribers WHERE stream = :s", s=str(lane.name))


def test_what_a_change_touches_is_a_new_definition_only_if_keys_or_values_change(
    shared_database: Database,
) -> None:
    lane = Lane.made(shared_database, retention="consumed")
    store = Store.made(lane)
    assert store.update(layout="partitioned")["definition"] == 1
    assert store.update(value="upper(key)")["definition"] == 2
    assert store.update(value="upper(key)")["definition"] == 2
    assert store.update(key="lower(key)") == {
        "adjunct_store": store.name, "definition": 3, "events_since": None
    }  # fmt: skip
    assert store.row.definition == AdjunctDefinition(key="lower(key)", value="upper(key)")
    with raises("argument_invalid colour"):
        store.update(colour="red")
    with raises("cut_invalid 9.0 because"):
        store.update(bootstrap="9.0=1")


@pytest.mark.parametrize("appended", [0, 3])
def test_another_key_says_since_when_there_are_events(
    shared_database: Database, appended: int
) -> None:
    lane = Lane.made(shared_database, segments=1, retention="consumed")
    lane.append({"0.0": 4})
    store = Store.made(lane)
    store.build()
    lane.truncate("0.0=4")
    if appended:
        lane.append({"0.0": appended})
    since = store.update(key="lower(key)")["events_since"]
    [[clock]] = lane.rows("SELECT last_clock FROM stream WHERE stream_id = :s")
    [[expected]] = rows(shared_database, "SELECT to_json(clock_time(:c)) #>> '{}'", c=clock)
    assert since == expected


def test_a_version_that_is_too_large_is_not_broadcast() -> None:
    auto, forced = AdjunctConfiguration(), AdjunctConfiguration(layout="broadcast")
    assert auto.layout_of("s/x", 1000) == forced.layout_of("s/x", 1 << 29) == "broadcast"
    assert auto.layout_of("s/x", 1 << 29) == "partitioned"
    assert AdjunctConfiguration(layout="partitioned").layout_of("s/x", 1) == "partitioned"
    with raises("join_invalid table s/x"):
        forced.layout_of("s/x", 1 << 31)
