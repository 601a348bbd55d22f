"""Events are found by their routing keys, or by a condition, with the places that readers see."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.annex.erasure.world import Erasing
from tests.chance import random_for
from tests.raises import raises
from tests.world.streams import rows, run
from weir.annex.erasure import find
from weir.annex.erasure.find import places, where, with_keys
from weir.annex.erasure.records import Offsets
from weir.arrow.read import read_rows
from weir.controller.read_plan import FileSlice, plan_of_stream
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.installation.opened import no_spark
from weir.kernel.matching import Matching, routing_keys, with_routing_keys
from weir.kernel.schema import to_read
from weir.model.schema import new_field
from weir.operations.action import Job
from weir.operations.jobs import ACTIONS
from weir.operations.runner import by_hand, perform
from weir.programs.opening import shared
from weir.programs.store import StreamStore
from weir.settings import Settings


def seen(found: pa.Table) -> dict[int, list[int]]:
    """The places of events as readers see them."""
    segments = sorted(set(found["_segment"].to_pylist()))
    return {
        segment: sorted(found.filter(pc.equal(found["_segment"], segment))["_offset"].to_pylist())
        for segment in segments
    }


def test_events_are_found_by_key_and_by_condition_where_readers_see_them(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Erasing.made(database, settings, random_for("places"), segments=4)
    for _ in range(12):
        made.append()
    made.compact(thorough=True)
    made.erase("k3")
    events = shared(settings).read(str(made.lane.name))
    _, slices, fields = database.snapshot(lambda c: plan_of_stream(c, made.lane.name))
    opened: list[str] = []

    def counting(settings: Settings, part: FileSlice, *how: Any) -> pa.Table:
        opened.append(part.path)
        return read_rows(settings, part, *how)

    monkeypatch.setattr(find, "read_rows", counting)

    def found(match: Matching, slices: list[FileSlice] = slices) -> dict[int, list[int]]:
        some: dict[int, Offsets] = places(settings, slices, fields, match)
        return {segment: offsets.tolist() for segment, offsets in some.items()}

    keys = ["k1", "k3", "never"]
    key = routing_keys(made.lane.name, "key", to_read(fields))
    theirs = found(with_routing_keys(key, keys), with_keys(slices, keys))
    assert theirs == seen(events.filter(pc.is_in(events["key"], pa.array(["k1", "k3"]))))
    assert len(opened) < len(slices)  # not those of segments that can't have the keys
    wanted = pc.and_(pc.less(events["n"], 70), pc.not_equal(events["key"], "k1"))
    assert found(where("N < 70 AND upper(key) <> 'K1'", fields)) == seen(events.filter(wanted))
    assert found(where("n < 0", fields)) == {}


def test_a_transformed_routing_key_is_erased(
    store: StreamStore,
) -> None:
    store.create_stream("shop/orders", "who")
    store.append(
        "shop/orders", [{"who": who, "n": n} for n, who in enumerate(["Ann", "bob", "ann", "cem"])]
    )
    run(store.database, "UPDATE stream SET routing_key = 'concat(lower(who), \"!\")'")
    asked: dict[str, Any] = {"reason": "asked", "dry_run": False}
    assert store.erase("shop/orders", keys=["ann"], **asked)["events"] == 0
    assert store.erase("shop/orders", keys=["ann!"], **asked)["events"] == 2
    assert store.erase("shop/orders", condition="who = 'bob'", **asked)["events"] == 1


def test_a_condition_erases_what_it_is_true_for_and_everything_only_if_that_is_meant(
    store: StreamStore,
) -> None:
    store.create_stream("s/people", "who", segments=2)
    store.append("s/people", [{"who": f"w{n % 3}", "n": n, "text": str(n)} for n in range(9)])

    def erase(condition: str, **how: Any) -> int:
        done = store.erase("s/people", "asked", condition=condition, **{"dry_run": False, **how})
        return int(done["events"])

    def left() -> list[int]:
        return sorted(store.read("s/people")["n"].to_pylist())

    for of_texts in ("NOT int(who) > 1", "int(who) IS NULL", "who = 'nobody'"):
        assert erase(of_texts) == 0  # what can't be computed fulfils nothing
    with raises("argument_missing every"):  # and leaves no request behind
        erase("n >= 0")
    assert erase("who = 'w2' AND int(text) > 2") == 2
    assert left() == [0, 1, 2, 3, 4, 6, 7]
    assert erase("n >= 0", everything=True) == 7
    assert left() == []
    asked = """SELECT certificate #>> '{document,asked,condition}' AS condition
        FROM weir.certificates ORDER BY asked_at"""
    assert [row.condition for row in rows(store.database, asked)] == [
        "who = ? AND int(text) > ?",
        "n >= ?",
    ]


def test_a_run_without_spark_looks_through_very_many_events_itself(
    store: StreamStore, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_stream("s/people", "who")
    store.append("s/people", [{"who": "ann"}, {"who": "bob"}])
    monkeypatch.setitem(ACTIONS["erase"].run.__globals__, "MUCH", 0)
    job = Job("erase", by_hand("erase"), settings, store.database, start_spark=no_spark)
    asked = {"stream": "s/people", "reason": "asked", "keys": ["ann"], "dry_run": False}
    assert perform(job, ACTIONS["erase"], asked)["events"] == 1


@pytest.mark.parametrize(
    ("condition", "code", "said"),
    [
        ("n + 1", "expression_invalid", "?"),
        ("lower(who)", "expression_invalid", "lower(who)"),
        (
            "java_method('java.lang.System', 'exit') = who",
            "expression_invalid",
            "java_method()",
        ),
        ("who = 'subject-0815' AND m = 1", "expression_not_computable", "who = ? AND ? = ?"),
        ("who = 'subject-0815' 'subject-0815'", "expression_invalid", "a text follows"),
        ("(who = 'a' 'subject-0815'", "expression_invalid", "missing before a text"),
        ("who = 'subject-0815", "expression_invalid", "the sign"),
        ("who = 'subject-0815' % 5", "expression_invalid", "the sign '%' can't be read"),
        (r"who = 'subject-0815\d'", "expression_invalid", "a backslash"),
        ("at > 'subject-0815'", "expression_not_computable", "at > ?"),
        ("who = s0815", "expression_not_computable", "'who = ?' uses ?"),  # without its quotes
        ("who = s0815 x0815", "expression_invalid", "? follows"),
        ("who = s0815.x0815", "expression_not_computable", "'who = ?' uses ?"),
        ("who = `s 0815`", "expression_not_computable", "'who = ?' uses ?"),
    ],
)
def test_no_value_of_a_condition_is_in_a_sentence_about_it(
    condition: str, code: str, said: str
) -> None:
    named = {"who": "string", "n": "long", "at": "timestamp"}
    fields = [new_field(name, kind) for name, kind in named.items()]
    with pytest.raises(InvalidInput) as told:  # it is recorded with the run
        where(condition, fields)
    assert told.value.code == code
    assert said in str(told.value)
    assert "0815" not in str(told.value)
