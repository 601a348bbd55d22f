"""A file of which a part is wrong, or meets what somebody else does, changes nothing."""

import time
from typing import Any

import pytest
import yaml

from tests.annex.declarations.shop import SHOP, compared, edited, everything, run
from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane
from weir.annex.declarations.reading import read_text
from weir.database.connection import Database
from weir.errors import WeirError
from weir.operations.consumers import AskedConsumer


def test_the_outputs_of_a_consumer_are_checked_before_anything_is_changed(
    database: Database,
) -> None:
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
            compared(database, text)
    own = yaml.safe_load(edited("consumers", "late", "outputs", value=["stream:shop/late"]))
    assert len(compared(database, yaml.safe_dump(own))) == 5
    own["consumers"]["late"]["function"] = "os.path:join"
    with raises("declarations_invalid consumers late 'os.path:join' function_packages"):
        compared(database, yaml.safe_dump(own))

    # A group that exists, and is not in the file.
    run(database, edited("consumers", value={}))
    alone = {"consumers": {"late": {"function": "shop:f", "outputs": ["stream:shop/orders"]}}}
    with raises("declarations_invalid consumers late reads shop/orders"):
        compared(database, yaml.safe_dump(alone))


HALF_WRONG: dict[str, tuple[str, str]] = {
    "a routing key": (
        edited("streams", "shop/late", "routing_key", value="wrong("),
        "expression_invalid 'wrong('"),
    "columns": (
        edited("streams", "shop/late", "schema", value="customer NUMBERS"),
        "columns_invalid NUMBERS"),
    "an event time": (
        edited("streams", "shop/late", "event_time", value="wrong("),
        "expression_invalid 'wrong('"),
    "a store of a new stream": (
        edited("adjunct_stores", "shop/newest", "value", value="wrong"),
        "expression_not_computable shop/newest 'wrong'"),
    "a consumer": (
        edited("consumers", "late", "function", value="wrong:late"),
        "declarations_invalid consumers late 'wrong:late'"),
}  # fmt: skip


@pytest.mark.parametrize("what", HALF_WRONG)
def test_a_file_of_which_a_part_is_wrong_changes_nothing(database: Database, what: str) -> None:
    before = everything(database)
    text, says = HALF_WRONG[what]
    for how in (compared, run):
        with raises(says):
            how(database, text)
    assert everything(database) == before


def test_what_somebody_else_makes_meanwhile_stops_the_whole_file(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(database, yaml.safe_dump({"streams": yaml.safe_load(SHOP)["streams"]}))
    text = edited("streams", "shop/late", "tags", value=["changed"])
    alone = yaml.safe_dump({"reader_groups": yaml.safe_load(SHOP)["reader_groups"]})
    before: list[Any] = []

    def meanwhile(*_: Any) -> None:
        monkeypatch.undo()
        run(database, alone)
        before.extend(everything(database))

    monkeypatch.setattr(AskedConsumer, "check", meanwhile)
    said: list[str] = []
    with raises("group_exists late"):
        run(database, text, say=said.append)
    assert everything(database) == before
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
    with raises("position_invalid belongs"):
        run(database, text)
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
    [_, shown] = compared(database, text)
    assert "would release 3 events of shop/orders" in shown.loses[0]
    with raises("would_lose_data 1 2 late"):
        run(database, text)
    assert everything(database) == before
    run(database, text, loss=True)
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
    for ask in (run, compared):
        with raises("events_truncated 2 events hand allow_truncated=True"):
            ask(database, text)
        assert everything(database) == before
    assert compared(database, text, truncated=True)
    said: list[str] = []
    run(database, text, truncated=True, say=said.append)
    assert any(line.startswith("2 events of stream shop/orders were") for line in said)
    assert run(database, text) == [], "the start of a group that exists is not compared"
    with raises("declarations_invalid allow_truncated"):
        read_text(f"reader_groups: {{{group}, allow_truncated: true}}}}")
