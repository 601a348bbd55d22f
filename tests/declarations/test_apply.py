"""A file declares streams, groups and consumers: what differs is changed, and nothing else."""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import yaml

from tests.conftest import TestDatabase
from tests.controller.support import Lane, rows
from tests.raises import raises
from tests.reader_groups.support import Group
from tests.watching import count_statements
from weir.controller.seal import seal_stream
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.declarations.apply import Checks, Planned, apply, compare
from weir.declarations.declared import Declared, read_text
from weir.declarations.differences import Difference
from weir.errors import InvalidInput, WeirError
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.names import StreamName, stream_name
from weir.model.schema import Field
from weir.operations.consumers import with_declared
from weir.settings import Settings
from weir.spark.declared_consumers import check_consumer

SHOP = """
streams:
  shop/orders:
    routing_key: customer
    segments: 2
    schema: customer STRING, amount BIGINT
    retention: consumed
    retain_max_age: 30 d
    tags: [money]
  shop/late: {routing_key: customer}
adjunct_stores:
  shop/newest:
    stream: shop/orders
    value: amount
    history: 30 d
    time_out: 7 d
reader_groups:
  late:
    streams: [shop/orders]
    time_out: 7 d
    pins: [shop/orders 0.25..0.5 big]
consumers:
  late:
    function: shop.orders:late
    outputs: ["stream:shop/late", "table:shop.late mode=upsert key=customer"]
    parameters: {threshold: 10}
"""


@pytest.fixture
def database(test_database: TestDatabase) -> Database:
    return test_database.open()


def columns(text: str, key: str | None) -> list[Field] | None:
    """What Spark makes of columns of two words."""
    if not text:
        return None
    kinds = {"STRING": "string", "BIGINT": "long", "INT": "integer"}
    named = [one.split() for one in text.split(",")]
    return [{"name": n, "type": kinds[t], "nullable": True, "metadata": {}} for n, t in named]


CHECKS = Checks(
    columns, lambda *event_time: None, lambda *definition: None,
    lambda *consumer: None,
)  # fmt: skip


def run(database: Database, text: str, **options: Any) -> list[Difference]:
    """Apply a file under a request of its own."""
    run.count = getattr(run, "count", 0) + 1  # type: ignore[attr-defined]
    return apply(
        database, read_text(text), checks=CHECKS,
        request_id=f"run {run.count}", say=lambda line: None, **options,  # type: ignore[attr-defined]
    )  # fmt: skip


def everything(database: Database) -> list[Any]:
    """All rows that an apply may write."""
    tables = ("stream", "stream_schema", "epoch", "reader_group", "reader_group_stream",
              "reader_group_segment", "reader_group_pin", "adjunct_store",
              "adjunct_definition", "request")  # fmt: skip
    return [
        [tuple(map(str, row)) for row in rows(database, f"SELECT * FROM {table} ORDER BY 1, 2")]
        for table in tables
    ]


def edited(*path: str, value: Any) -> str:
    """The file with one entry changed."""
    found = yaml.safe_load(SHOP)
    one = found
    for name in path[:-1]:
        one = one.setdefault(name, {})
    one[path[-1]] = value
    return yaml.safe_dump(found)


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
    text = text.replace("customer string,", "customer STRING,")
    shown = compare(database, read_text(text), CHECKS)
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
    run(database, text, allow_loss=True)
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


def test_a_text_that_grows_beyond_measure_is_refused_at_once() -> None:
    nested = [f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]" for i in range(9)]
    with raises("declarations_invalid aliases repeat"):
        read_text("\n".join(["a0: &a0 [1]", *nested]))
    with raises("declarations_invalid number 400"):
        read_text(f"streams: {{shop/x: {{segments: {'1' * 5000}}}}}")


def test_a_definition_is_checked_with_the_columns_that_its_stream_gets(database: Database) -> None:
    run(database, SHOP)
    checked = []

    def check(
        name: str, stream: StreamName, wanted: AdjunctDefinition, planned: Planned | None
    ) -> None:
        assert planned is not None
        assert wanted.value in {one["name"] for one in planned[1]}
        checked.append(name)

    def applied(text: str) -> list[str]:
        checked.clear()
        apply(database, read_text(text), checks=replace(CHECKS, definition=check), allow_loss=True,
              request_id=text, say=lambda line: None)  # fmt: skip
        return checked

    kept = edited("adjunct_stores", "shop/newest", "history", value="60 d")
    assert applied(kept) == [], "its keys and values are as they were"
    widened = yaml.safe_load(kept)
    widened["streams"]["shop/orders"]["schema"] += ", gate INT"
    widened["adjunct_stores"]["shop/newest"]["value"] = "gate"
    assert applied(yaml.safe_dump(widened)) == ["shop/newest"]


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
    with raises("routing_key_fixed shop/late customer amount"):
        run(database, edited("streams", "shop/late", "routing_key", value="amount"))
    with raises("adjunct_store_bound shop/newest shop/orders shop/late"):
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
    blank = {"reader_group": "late", "function": " ", "outputs": ["", " "], "batch_bytes": " "}
    found = database.transaction(lambda c: with_declared(c, blank))
    assert (found.function, found.outputs[0]) == ("shop.orders:late", "stream:shop/late")
    with raises("argument_missing other weir apply"):
        database.transaction(lambda c: with_declared(c, {"reader_group": "other"}))


def test_nothing_to_change_takes_as_many_statements_for_many_streams_as_for_few(
    database: Database,
) -> None:
    def declared(count: int) -> Declared:
        streams = {f"many/s{i}": {"routing_key": "k"} for i in range(count)}
        groups = {f"g{i}": {"streams": [f"many/s{i}"]} for i in range(0, count, 5)}
        stores = {f"many/a{i}": {"stream": f"many/s{i}"} for i in range(0, count, 5)}
        return read_text(
            yaml.safe_dump({"streams": streams, "reader_groups": groups, "adjunct_stores": stores})
        )

    few, many = declared(10), declared(60)
    for i, one in enumerate((many, few)):
        apply(database, one, checks=CHECKS, request_id=f"{i}",
              say=lambda line: None)  # fmt: skip
    counted, counts = count_statements(database), []
    for one in (few, many):
        del counted[:]
        assert apply(database, one, checks=CHECKS,
                     request_id="again") == []  # fmt: skip
        counts.append(len(counted))
    assert counts[0] == counts[1] <= 5


def test_the_outputs_of_a_consumer_are_checked_before_anything_is_changed(
    database: Database, settings: Settings, test_database: TestDatabase
) -> None:
    def check(*consumer: Any) -> None:
        check_consumer(database, replace(settings, function_packages=("shop",)), *consumer)

    checks = replace(CHECKS, consumer=check)
    wrong = {
        "stream shop/later": ["stream:shop/later"],
        "there is no table shop.totals": ["table:shop.totals"],
        "named twice": ["stream:shop/late", "stream:shop/late"],
        "option 'mode=upsert'": ["parquet:late mode=upsert"],
        "output path '../late'": ["parquet:../late"],
        "reads shop/orders": ["stream:shop/orders"],
    }
    for said, outputs in wrong.items():
        text = edited("consumers", "late", "outputs", value=outputs)
        with raises(f"declarations_invalid consumers late {said}"):
            compare(database, read_text(text), checks)
    own = yaml.safe_load(edited("consumers", "late", "outputs", value=["stream:shop/late"]))
    assert len(compare(database, read_text(yaml.safe_dump(own)), checks)) == 5
    own["consumers"]["late"]["function"] = "os.path:join"
    with raises("declarations_invalid consumers late 'os.path:join' function_packages"):
        compare(database, read_text(yaml.safe_dump(own)), checks)

    # A group that exists, and is not in the file.
    run(database, edited("consumers", value={}))
    alone = {"consumers": {"late": {"function": "shop:f", "outputs": ["stream:shop/orders"]}}}
    with raises("declarations_invalid consumers late reads shop/orders"):
        compare(database, read_text(yaml.safe_dump(alone)), checks)


HALF_WRONG: dict[str, tuple[str, str]] = {
    "a routing key": (edited("streams", "shop/late", "routing_key", value="wrong"), "wrong key"),
    "columns": (edited("streams", "shop/late", "schema", value="customer NUMBERS"), "NUMBERS"),
    "an event time": (edited("streams", "shop/late", "event_time", value="wrong"), "wrong time"),
    "a store of a new stream": (edited("adjunct_stores", "shop/newest", "value", value="wrong"),
                                "wrong value"),
    "a consumer": (edited("consumers", "late", "function", value="shop.wrong:late"), "wrong"),
}  # fmt: skip


@pytest.mark.parametrize("what", HALF_WRONG)
def test_a_file_of_which_a_part_is_wrong_changes_nothing(database: Database, what: str) -> None:
    def checked_columns(text: str, key: str | None) -> list[Field] | None:
        if key == "wrong":
            raise InvalidInput("expression_invalid", "wrong key")
        try:
            return columns(text, key)
        except KeyError as error:
            raise InvalidInput("columns_invalid", str(error)) from None

    def event_time(name: StreamName, text: str, fields: list[Field] | None) -> None:
        raise InvalidInput("expression_invalid", "wrong time")

    def definition(
        name: str, stream: StreamName, wanted: AdjunctDefinition, planned: Planned | None
    ) -> None:
        assert planned is not None
        assert planned[0] == "customer"
        assert [one["name"] for one in planned[1]] == ["customer", "amount"]
        if wanted.value == "wrong":
            raise InvalidInput("expression_not_computable", "wrong value")

    def consumer(group: str, declared: Any, *_: Any) -> None:
        if "wrong" in declared["function"]:
            raise InvalidInput("function_not_allowed", "wrong")

    checks = Checks(checked_columns, event_time, definition, consumer)
    before = everything(database)
    text, says = HALF_WRONG[what]
    for dry_run in (True, False):
        how = compare if dry_run else partial(apply, request_id="wrong")
        with pytest.raises(InvalidInput, match=says):
            how(database, read_text(text), checks=checks)  # type: ignore[operator]
    assert everything(database) == before


def test_what_somebody_else_makes_meanwhile_stops_the_whole_file(database: Database) -> None:
    run(database, yaml.safe_dump({"streams": yaml.safe_load(SHOP)["streams"]}))
    text = edited("streams", "shop/late", "tags", value=["changed"])
    alone = replace(read_text(SHOP), streams={}, stores={}, consumers={})

    def meanwhile(*_: Any) -> None:
        if not rows(database, "SELECT FROM reader_group"):
            apply(database, alone, checks=CHECKS, request_id="meanwhile", say=lambda line: None)
            meanwhile.before = everything(database)  # type: ignore[attr-defined]

    said: list[str] = []
    with raises("group_exists late"):
        apply(database, read_text(text), checks=replace(CHECKS, consumer=meanwhile),
              request_id="whole", say=said.append)  # fmt: skip
    assert everything(database) == meanwhile.before  # type: ignore[attr-defined]
    assert said == [], "nothing is said to be changed"


def test_a_group_that_can_not_begin_where_it_is_declared_changes_nothing(
    database: Database,
) -> None:
    run(database, "streams: {shop/a: {routing_key: k}}")
    text = """
streams: {shop/a: {routing_key: k, tags: [changed]}, shop/b: {routing_key: k}}
reader_groups: {g: {streams: [shop/a], start: checkpoint none}}
"""
    before = everything(database)
    with raises("position_needs_group"):
        run(database, text)
    assert everything(database) == before


def test_a_column_that_is_declared_with_another_type_changes_nothing(database: Database) -> None:
    run(database, "streams: {shop/a: {routing_key: k, schema: 'k STRING'}}")
    before = everything(database)
    with raises("column_type_differs 'k' integer string shop/a"):
        run(database, "streams: {shop/b: {routing_key: k}, "
                      "shop/a: {routing_key: k, schema: 'k INT'}}")  # fmt: skip
    assert everything(database) == before


HOSTILE_YAML = {
    "a control character": "streams: {a\x07b: 1}",
    "many lists": "[" * 5_000,
    "many mappings": "{a: " * 5_000,
    "many lists below each other": "\n".join(" " * n + "- " for n in range(200)),
    "many flows in a block": "a: " + "[{a: " * 2_000,
    "a long number": "a: " + "1" * 5_000,
    "a long number in base 60": "a: 1" + ":01" * 5_000,
    "a long number in hexadecimal": "a: 0x" + "f" * 500_000,
    "aliases of aliases": "a: &a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [" + ",".join([f"*{chr(97 + n)}"] * 9) + "]"
        for n in range(9)
    ),
    "merges of merges": "a: &a {x: 1}\n" + "\n".join(
        f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [" + ",".join([f"*{chr(97 + n)}"] * 9) + "]}"
        for n in range(9)
    ),
    "itself": "a: &a [*a]",
    "a tag": "a: !!python/object/apply:os.system ['true']",
    "a half of a character": "a: \"\\uD800\"",
    "an unknown alias": "a: *b",
    "a tab": "a:\n\t- b",
    "two documents": "a: 1\n---\nb: 2",
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE_YAML)
def test_hostile_yaml_is_refused_in_one_line_and_soon(what: str) -> None:
    begun = time.monotonic()
    with pytest.raises(WeirError) as refused:
        read_text(HOSTILE_YAML[what])
    assert len(str(refused.value).splitlines()) == 1
    assert str(refused.value).endswith(f"[{refused.value.code}]")
    assert len(str(refused.value)) < 1_000
    assert time.monotonic() - begun < 5


def test_a_group_by_which_others_would_lose_events_is_refused_before_anything_is_changed(
    database: Database,
) -> None:
    lane = Lane.made(database, name="shop/orders", retention="consumed")
    lane.append({"0.0": 3})
    Group.made(lane, subscriber=False)
    text = """
streams: {shop/other: {routing_key: a}}
reader_groups: {late: {streams: [shop/orders], start: tail}}
"""
    before = everything(database)
    [_, shown] = compare(database, read_text(text), CHECKS)
    assert "would release 3 events of shop/orders" in shown.loses[0]
    with raises("would_lose_data 1 2 late"):
        run(database, text)
    assert everything(database) == before
    run(database, text, allow_loss=True)
    with raises("declarations_invalid allow_loss"):
        read_text("reader_groups: {late: {streams: [shop/orders], allow_loss: true}}")


def test_a_group_of_which_events_are_truncated_is_applied_only_by_the_flag(
    database: Database,
) -> None:
    lane = Lane.made(database, name="shop/orders")
    lane.append({"0.0": 5})
    lane.truncate("0.0=3, 1.0=0")
    group = 'late: {streams: [shop/orders], start: "0.0=1, 1.0=0"'
    text = f"streams: {{shop/other: {{routing_key: a}}}}\nreader_groups: {{{group}}}}}"
    before = everything(database)
    for ask in (run, lambda d, t: compare(d, read_text(t), CHECKS)):
        with raises("events_truncated 2 events hand allow_truncated=True"):
            ask(database, text)  # type: ignore[operator]
        assert everything(database) == before
    assert compare(database, read_text(text), CHECKS, allow_truncated=True)
    said: list[str] = []
    apply(
        database, read_text(text), checks=CHECKS, allow_truncated=True, request_id="flag",
        say=said.append,
    )  # fmt: skip
    assert any(line.startswith("2 events of stream shop/orders were") for line in said)
    assert run(database, text) == [], "the start of a group that exists is not compared"
    with raises("declarations_invalid allow_truncated"):
        read_text(f"reader_groups: {{{group}, allow_truncated: true}}}}")
