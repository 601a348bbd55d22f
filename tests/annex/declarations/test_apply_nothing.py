"""A file of which a part is wrong, or meets what somebody else does, changes nothing."""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import yaml

from tests.annex.declarations.shop import CHECKS, SHOP, columns, edited, everything, run
from tests.conftest import TestDatabase
from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane, rows
from weir.annex.declarations.apply import Checks, Planned, apply, compare
from weir.annex.declarations.reading import read_text
from weir.database.connection import Database
from weir.errors import InvalidInput, WeirError
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.names import StreamName
from weir.model.schema import Field
from weir.operations.consumers import check_consumer
from weir.settings import Settings


@pytest.fixture
def database(test_database: TestDatabase) -> Database:
    return test_database.open()


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

    checks = Checks(checked_columns, event_time, definition, consumer, CHECKS.allowing)
    before = everything(database)
    text, says = HALF_WRONG[what]
    for dry_run in (True, False):
        how = compare if dry_run else partial(apply, request_id="wrong")
        with pytest.raises(InvalidInput, match=says):
            how(database, read_text(text), checks=checks)
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
    begun = time.process_time()
    with pytest.raises(WeirError) as refused:
        read_text(HOSTILE_YAML[what])
    assert len(str(refused.value).splitlines()) == 1
    assert str(refused.value).endswith(f"[{refused.value.code}]")
    assert len(str(refused.value)) < 1_000
    assert time.process_time() - begun < 5


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
            ask(database, text)
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
