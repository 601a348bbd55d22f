"""A file declares streams, groups and consumers: what differs is changed, and nothing else."""

from typing import Any

import pytest
import yaml

from tests.annex.declarations.shop import SHOP, compared, edited, everything, run
from tests.raises import raises
from tests.watching import count_statements
from tests.world.streams import rows
from weir.annex.declarations.reading import read_text
from weir.controller.seal import seal_stream
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.operations.consumers import with_declared


def test_a_file_makes_what_it_declares_and_the_second_time_changes_nothing(
    database: Database,
) -> None:
    made = run(database, SHOP)
    assert [(one.kind, one.name, one.new) for one in made] == [
        ("stream", "shop/orders", True), ("stream", "shop/late", True),
        ("adjunct store", "shop/newest", True),
        ("reader group", "late", True), ("consumer", "late", True),
    ]  # fmt: skip
    [orders] = rows(database, "SELECT * FROM stream WHERE stream_name = 'shop/orders'")
    assert (orders.routing_key, orders.retain_max_age, orders.tags) == (
        "customer", 30 * 86400, ["money"],
    )  # fmt: skip
    [store] = rows(database, "SELECT * FROM adjunct_stores")
    assert (store.stream, store.value, store.history.days, store.time_out.days) == (
        "shop/orders", "amount", 30, 7,
    )  # fmt: skip
    [group] = rows(database, "SELECT * FROM reader_group WHERE name = 'late'")
    assert (group.time_out, group.subscriber) == (7 * 86400, True)
    assert rows(database, "SELECT key_low, label FROM reader_group_pin") == [(0.25, "big")]
    before = everything(database)
    assert run(database, SHOP) == []
    assert everything(database) == before, "not even the generation of a group"


CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "a limit": (
        edited("streams", "shop/orders", "retain_max_age", value="60 d"),
        {"shop/orders": {"retain_max_age": (30 * 86400, 60 * 86400)}}),
    "a setting that is left out": (
        edited("streams", "shop/orders", "tags", value=[]),
        {"shop/orders": {"tags": (("money",), ())}}),
    "columns": (
        edited("streams", "shop/orders", "schema", value="customer string, gate INT"),
        {"shop/orders": {"columns": (["customer", "amount"], ["gate"])}}),
    "segments to begin with": (edited("streams", "shop/orders", "segments", value=5), {}),
    "a store's history and its time-out": (
        edited("adjunct_stores", "shop/newest", value={
            "stream": "shop/orders", "value": "amount", "history": "60 d"}),
        {"shop/newest": {"history": (30 * 86400, 60 * 86400), "time_out": (7 * 86400, None)}}),
    "a new stream of a group": (
        edited("reader_groups", "late", "streams", value=["shop/orders", "shop/late"]),
        {"late": {"streams": (["shop/orders"], ["shop/late", "shop/orders"])}}),
    "pins": (
        edited("reader_groups", "late", "pins", value=[]),
        {"late": {"pins": (["shop/orders 0.25..0.5 big"], [])}}),
    "a consumer": (
        edited("consumers", "late", "parameters", value={"threshold": 11}),
        {"late": {"parameters": ({"threshold": 10}, {"threshold": 11})}}),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_file_changes_just_that(database: Database, what: str) -> None:
    run(database, SHOP)
    text, wanted = CHANGES[what]
    before = everything(database)
    shown = compared(database, text)
    assert {one.name: one.changes for one in shown} == wanted
    assert everything(database) == before, "a comparison changes nothing"
    assert run(database, text) == shown
    assert run(database, text) == []


LOSSES = {
    "retain_max_age truncates": edited("streams", "shop/orders", "retain_max_age", value="8 d"),
    "retain_min_age keeps": edited("streams", "shop/orders", "retain_min_age", value="1 d"),
    "position in shop/orders": edited("reader_groups", "late", "streams", value=["shop/late"]),
    "retention no longer keeps": edited("reader_groups", "late", "subscriber", value=False),
    "skips events": edited("reader_groups", "late", "on_gap", value="skip"),
    "history keeps changes": edited("adjunct_stores", "shop/newest", "history", value="1 d"),
    "begins a new history": edited("adjunct_stores", "shop/newest", "value", value="customer"),
    "its keys are made anew": edited("adjunct_stores", "shop/newest", "key", value="amount"),
    "rebuilt without": edited("adjunct_stores", "shop/newest", "on_gap", value="rebuild"),
    "no longer than its time-out": edited("reader_groups", "late", "time_out", value="1 d"),
}


@pytest.mark.parametrize("says", LOSSES)
def test_what_may_lose_data_is_refused_as_a_whole_unless_loss_is_allowed(
    database: Database, says: str
) -> None:
    run(database, SHOP)
    text = LOSSES[says].replace("segments: 2", "segments: 2\n    on_bad_rows: quarantine")
    text = text.replace("pins:\n    - shop/orders 0.25..0.5 big\n", "pins: []\n")
    before = everything(database)
    with raises(f"would_lose_data {says}"):
        run(database, text)
    assert everything(database) == before
    run(database, text, loss=True)
    assert run(database, text) == []


CONSUMER = "consumers: {{g: {{function: 'a:b', outputs: ['parquet:x'], parameters: {}}}}}"
WRONG = {
    "streams: [a]": "declarations_invalid streams mapping",
    "stream: {}": "declarations_invalid ['stream'] streams, reader_groups, consumers",
    "a: [": "declarations_invalid YAML line 1",
    "- x": "declarations_invalid list",
    "streams: {shop/x: {routing_kay: a}}": "declarations_invalid shop/x 'routing_kay'",
    "streams: {shop/x: {}}": "declarations_invalid shop/x routing_key missing",
    "streams: {Shop: {routing_key: a}}": "declarations_invalid Shop",
    "reader_groups: {g: {streams: [shop/none]}}": "stream_not_found g shop/none declare",
    "consumers: {g: {function: 'a:b', outputs: ['parquet:x']}}": "group_not_found g declare",
    "consumers: {g: {function: 'a:b'}}": "declarations_invalid g outputs",
    "reader_groups: {g: {streams: [shop/none], pins: [x]}}": "declarations_invalid g 'x' pin",
    "streams: {shop/x: {routing_key: a, retain_max_age: 5}}": "declarations_invalid retain_max_age",
    "streams: []": "declarations_invalid streams mapping",
    "reader_groups: 0": "declarations_invalid reader_groups mapping",
    "streams: {shop/x: {routing_key: a, 1: 2}}": "declarations_invalid streams mapping",
    "streams: {shop/x: {routing_key: a, null: 2}}": "declarations_invalid streams mapping",
    "streams: {shop/x: {routing_key: a, stream: shop/y}}": "declarations_invalid stream shop/x",
    "consumers: {g: {function: 'a:b', outputs: ['parquet:x'], reader_group: h}}": (
        "declarations_invalid reader_group 'g' leave it out"
    ),
    "streams:\n  shop/x: {}\n  shop/x: {}": "declarations_invalid 'shop/x' second time line 3",
    "streams: !!python/object/apply:os.getcwd []": "declarations_invalid constructor",
    "adjunct_stores: {shop/x: {stream: shop/none}}": "stream_not_found shop/x shop/none declare",
    "adjunct_stores: {x: {stream: shop/none}}": "declarations_invalid x scope/name",
    "adjunct_stores: {shop/x: {stream: shop/y, layout: wide}}": "declarations_invalid layout",
    "adjunct_stores: {shop/x: {stream: shop/y, bootstrap: x}}": "declarations_invalid bootstrap",
    "adjunct_stores: {shop/x: {stream: shop/y, value: 'a:b'}}": "declarations_invalid a:b returns",
    "adjunct_stores: {shop/x: {stream: shop/y, keep_versions: none}}": "declarations_invalid none",
    CONSUMER.format("{a: .nan}"): "declarations_invalid g parameters nan",
    CONSUMER.format("{1: a}"): "declarations_invalid g parameters",
    CONSUMER.format("&p {a: *p}"): "declarations_invalid alias contains",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_in_a_file_is_named(database: Database, text: str) -> None:
    with raises(WRONG[text]):
        run(database, text)
    assert rows(database, "SELECT FROM stream") == []


def test_a_maximum_of_segments_is_written_as_a_number_or_as_a_text() -> None:
    for most in ("16", "'16'"):
        line = f"{{routing_key: a, scaling: event_rate, target_rate: 9, max_segments: {most}}}"
        found = read_text(f"streams: {{shop/x: {line}}}")
        assert found.streams["shop/x"].configuration.max_segments == 16


def test_a_definition_is_checked_with_the_columns_that_its_stream_gets(database: Database) -> None:
    run(database, SHOP)
    widened = yaml.safe_load(SHOP)
    widened["adjunct_stores"]["shop/newest"]["value"] = "gate"
    with raises("expression_not_computable shop/newest 'gate'"):
        run(database, yaml.safe_dump(widened), loss=True)
    widened["streams"]["shop/orders"]["schema"] += ", gate INT"
    run(database, yaml.safe_dump(widened), loss=True)


def test_a_stream_that_was_scaled_keeps_its_segments_though_its_minimum_changes(
    database: Database,
) -> None:
    run(database, SHOP)
    update_stream(database, stream_name("shop/late"), {"min_segments": 4}, request_id="four")

    def applied(text: str) -> int:
        assert [list(one.changes) for one in run(database, text)] == [["min_segments"]]
        return len(rows(database, "SELECT FROM active_segments('shop/late')"))

    assert applied(SHOP) == 4
    assert applied(edited("streams", "shop/late", "min_segments", value=2)) == 4
    assert applied(edited("streams", "shop/late", "min_segments", value=6)) == 6


def test_dates_are_written_without_quotes(database: Database) -> None:
    plain = SHOP.replace("{threshold: 10}", "{since: 2024-01-01, at: 2024-01-01T10:00:00Z}")
    plain = plain.replace("time_out: 7 d\n    pins", "start: 2024-01-01\n    pins")
    run(database, plain)
    assert run(database, plain) == []
    found = database.transaction(lambda c: with_declared(c, {"reader_group": "late"}))
    assert found.parameters == {"since": "2024-01-01", "at": "2024-01-01T10:00:00Z"}


def test_settings_can_be_shared_by_aliases(database: Database) -> None:
    text = """
streams:
  shop/x: &all {routing_key: customer, tags: [money]}
  shop/y: {<<: *all, routing_key: amount}
"""
    assert read_text(text).streams["shop/y"].configuration.tags == ("money",)
    assert read_text(text).streams["shop/y"].configuration.routing_key == "amount"


def test_what_can_not_change_is_refused(database: Database) -> None:
    run(database, SHOP)
    with raises("change_impossible shop/late customer amount change"):
        run(database, edited("streams", "shop/late", "routing_key", value="amount"))
    with raises("adjunct_store_exists adjunct shop/newest shop/orders shop/late"):
        run(database, edited("adjunct_stores", "shop/newest", "stream", value="shop/late"))
    seal_stream(database, stream_name("shop/late"), request_id="seal")
    assert run(database, SHOP) == [], "it need not change"
    with raises("stream_not_active shop/late sealed on_bad_rows"):
        run(database, edited("streams", "shop/late", "on_bad_rows", value="quarantine"))


def test_a_run_takes_what_was_declared_where_it_says_nothing(database: Database) -> None:
    run(database, edited("consumers", "late", "on_error", value="quarantine"))
    given = {"reader_group": "late", "readers": 3, "parameters": {"threshold": 5}, "outputs": []}
    found = database.transaction(lambda c: with_declared(c, given))
    assert found.on_error == "quarantine"
    stop = given | {"on_error": "stop"}  # which is also the default
    assert database.transaction(lambda c: with_declared(c, stop)).on_error == "stop"
    assert (found.function, found.readers, found.parameters) == (
        "shop.orders:late", 3, {"threshold": 5},
    )  # fmt: skip
    blank = {"reader_group": "late", "function": " ", "outputs": [], "batch_bytes": " "}
    found = database.transaction(lambda c: with_declared(c, blank))
    assert (found.function, found.outputs[0]) == ("shop.orders:late", "stream:shop/late")
    with raises("argument_missing other weir apply"):
        database.transaction(lambda c: with_declared(c, {"reader_group": "other"}))


def test_nothing_to_change_takes_as_many_statements_for_many_streams_as_for_few(
    database: Database,
) -> None:
    def declared(count: int) -> str:
        streams = {f"many/s{i}": {"routing_key": "k"} for i in range(count)}
        groups = {f"g{i}": {"streams": [f"many/s{i}"]} for i in range(0, count, 5)}
        stores = {f"many/a{i}": {"stream": f"many/s{i}"} for i in range(0, count, 5)}
        file = {"streams": streams, "reader_groups": groups, "adjunct_stores": stores}
        return str(yaml.safe_dump(file))

    few, many = declared(10), declared(60)
    for one in (many, few):
        run(database, one)
    counted, counts = count_statements(database), []
    for one in (few, many):
        del counted[:]
        assert run(database, one) == []
        counts.append(len(counted))
    assert counts[0] == counts[1] <= 5


def test_a_difference_is_said_as_the_file_says_it(database: Database) -> None:
    orders, _, newest, *_ = map(str, compared(database, SHOP))
    assert "retain_max_age = 30 d," in orders
    assert "time_out = 7 d, history = 30 d," in newest
    run(database, SHOP)
    [change] = compared(database, edited("streams", "shop/orders", "retain_max_age", value="60 d"))
    assert str(change) == "~ stream shop/orders: retain_max_age: 30 d -> 60 d"
    [change] = compared(database, edited("reader_groups", "late", "subscriber", value=False))
    assert str(change).startswith("~ reader group late: subscriber: yes -> no (may lose")
