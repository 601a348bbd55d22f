"""What an adjunct store makes of events, computed without Spark, and what is wrong with a
definition: said when it is given, in one sentence."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tests.raises import raises
from tests.world.columns import column
from weir.consumers.store_check import check_definition
from weir.consumers.store_outcomes import Maker
from weir.consumers.store_parts import parts_of
from weir.errors import InvalidInput
from weir.kernel.schema import to_arrow
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.column_changes import followed_definition
from weir.model.names import LONGEST_KEY, stream_name
from weir.model.schema import Field, Kind

INFO: Kind = {"type": "struct", "fields": [column("a", "long"), column("v", "variant")]}
FIELDS = [column("k", "string"), column("n", "long"), column("op", "string")]
MORE: list[Field] = [
    *FIELDS,
    {**column("info", "string"), "type": INFO},
    column("x", "double"),
    {**column("at", "timestamp"), "stored": "t"},
]
MODULE = """
import pyarrow as pa
import pyarrow.compute as pc

def seats(events):
    if "away" in events.column("op").to_pylist():
        raise ConnectionRefusedError("the service is away")
    if "poison" in events.column("op").to_pylist():
        raise ValueError("poison")
    made = pa.array([len(op) + 1 for op in events.column("op").to_pylist()], pa.int64())
    return pa.StructArray.from_arrays([made], names=["seats"])

def wrong(events):
    return pa.array(["x"])

def hasty(events):
    return pa.array([events.column("k")[0].as_py()] * len(events))

def two(events, more):
    return events.column("k")

def sometimes(events):
    return pc.utf8_upper(events.column("k")) if events.num_rows else pa.array([], pa.int64())
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Settings that let stores use the functions of a module."""
    (tmp_path / "store_functions.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield SimpleNamespace(function_packages=("store_functions",), function_path=(str(tmp_path),))
    sys.modules.pop("store_functions", None)


def check(settings: Any = None, fields: Sequence[Any] = FIELDS, **definition: str) -> None:
    settings = settings or SimpleNamespace(function_packages=(), function_path=())
    wanted = AdjunctDefinition(**definition)
    check_definition(None, settings, "s/store", stream_name("s/in"), wanted, ("k", [*fields]))  # type: ignore[arg-type]  # neither is asked


def made(rows: list[tuple[Any, ...]], settings: Any = None, **definition: str) -> list[Any]:
    """Of each event the key and the value, or what fails; a deleted key has no value."""
    parts = parts_of(AdjunctDefinition(**definition), FIELDS, "k", "s/store")
    paths = (settings.function_packages, settings.function_path) if settings else ((), ())
    table = [dict(zip(("k", "n", "op"), row, strict=True)) for row in rows]
    batch = pa.RecordBatch.from_pylist(table, to_arrow(FIELDS))
    found = Maker(parts, *paths).made(batch)
    values = found.value if found.value is not None else batch.to_struct_array()
    return [
        reason or ((key,) if deletes else (key, value))
        for key, value, deletes, reason in zip(
            found.key.to_pylist(), values.to_pylist(), found.deletes.to_pylist(),
            found.reason.to_pylist(), strict=True,
        )
    ]  # fmt: skip


def test_a_value_is_needed_only_where_an_event_does_not_delete() -> None:
    definition = {"key": "int(k)", "value": "int(op)", "delete_when": "int(left(op, 1)) = n"}
    key, value, condition = (
        f"the {what} {definition[part]!r} fails"
        for what, part in (("key", "key"), ("value", "value"), ("delete condition", "delete_when"))
    )
    cases: dict[tuple[Any, ...], Any] = {
        ("1", 2, "7"): (1, 7), ("1", 7, "7"): (1,), ("1", None, "7"): (1, 7),
        ("1", 7, "7x"): (1,), ("1", 2, "7x"): value, ("1", 2, "x"): value,
        ("1", 2, None): (1, None),
        (None, 7, "7"): (None,), (None, 2, "7"): (None, 7), (None, 2, "7x"): value,
        ("x", 7, "7"): key, ("x", 2, "x"): key,
    }  # fmt: skip
    assert made(list(cases), **definition) == list(cases.values())
    assert made([("1", 2, "x")], delete_when=definition["delete_when"]) == [condition]
    assert made([], **definition) == []


def test_keys_and_values_are_columns_transforms_and_nothing_else() -> None:
    row = ("Ab", 5, "u")
    whole = {"k": "Ab", "n": 5, "op": "u"}
    for definition, wanted in (
        ({}, ("Ab", whole)),
        ({"key": "n"}, (5, whole)),
        ({"key": "lower(k)", "value": "N"}, ("ab", 5)),
        ({"value": "n AS m, upper(k) AS `K 2`"}, ("Ab", {"m": 5, "K 2": "AB"})),
        ({"value": "n AS m, concat(k, '-', n) AS k"}, ("Ab", {"m": 5, "k": "Ab-5"})),
    ):  # fmt: skip
        assert made([row], **definition) == [wanted], definition
    unusable = "x" * LONGEST_KEY
    found = made([("a\0", 1, ""), (unusable, 1, ""), (unusable + "x", 1, "")], value="n")
    assert found == ["the key 'k' fails", (unusable, 1), "the key 'k' fails"]


def test_columns_of_a_version_are_known_without_events() -> None:
    def fields(**definition: str) -> dict[str, Any]:
        found = parts_of(AdjunctDefinition(**definition), MORE, "n", "s/store").fields
        assert [one["nullable"] for one in found] == [False, *[True] * (len(found) - 1)]
        return {one["name"]: one["type"] for one in found}

    of_event = {one["name"]: one["type"] for one in MORE}
    assert fields() == {"_weir_key": "string", **of_event}  # a routing key is text
    assert parts_of(AdjunctDefinition(), MORE, "n", "s/store").fields[-1]["stored"] == "t"
    assert fields(key="date(at)", value="at") == {"_weir_key": "date", "value": "timestamp"}
    assert fields(value="info") == {"_weir_key": "string", "a": "long", "v": "variant"}
    assert fields(value="INFO.v, info AS i, x") == {
        "_weir_key": "string", "v": "variant", "i": INFO, "x": "double",
    }  # fmt: skip
    assert fields(key="cast(n as decimal(9,2))", value="int(k)") == {
        "_weir_key": "decimal(9,2)", "value": "integer",
    }  # fmt: skip


def test_mistakes_of_a_definition_are_named() -> None:
    check(fields=[], key="anything", value="a, b")  # there are no columns yet
    with raises("expression_invalid java_method cast"):
        check(fields=[], value="java_method('java.lang.System', 'getenv')")
    for key_type in ("string, b int", "double", "string collate unicode_ci", "array<int>", "void",
                     "char(3)", "string string"):  # fmt: skip
        with pytest.raises(InvalidInput) as refused:
            check(key="tests.nowhere:f", key_type=key_type)
        assert refused.value.code in ("columns_invalid", "column_type_unsupported"), key_type
    for code, wrong in {
        "expression_not_computable missing": {"key": "missing"},
        "expression_invalid": {"value": "n +"},
        "expression_invalid rand cast": {"key": "rand()"},
        "expression_invalid every": {"value": "n, 5 AS five"},
        "column_type_unsupported double cast": {"key": "cast(n as double)"},
        "expression_invalid long something": {"delete_when": "n"},
        "columns_invalid column": {"value": "n AS _weir_key"},
        "function_not_allowed": {"value": "os:system", "value_columns": "a INT"},
        "columns_invalid": {"value": "m:f", "value_columns": "not columns at all"},
        "function_invalid does": {"value": "m:f"},
    }.items():
        with raises(code):
            check(**wrong)


def test_a_function_is_asked_about_events_that_keep_their_key(functions: SimpleNamespace) -> None:
    seats = {"value": "store_functions:seats", "value_columns": "seats BIGINT"}
    rows = [("a", 1, "u"), ("b", -1, None), ("c", 1, "uu"), ("d", 1, "poison"), ("e", -1, None)]
    found = made(rows, functions, delete_when="n < 0", **seats)
    assert found == [
        ("a", {"seats": 2}), ("b",), ("c", {"seats": 3}),
        "the value 'store_functions:seats' fails", ("e",),
    ]  # fmt: skip
    assert made(rows[1:2], functions, delete_when="n < 0", **seats) == [("b",)]
    with pytest.raises(ConnectionRefusedError, match="the service is away"):
        made([("a", 1, "away")], functions, **seats)


def test_a_function_that_is_wrong_is_refused(functions: SimpleNamespace) -> None:
    for name, code in {
        "wrong": "function_invalid returned", "two": "function_invalid fails",
        "hasty": "function_invalid store_functions:hasty without events",
        "missing": "function_not_loadable", "pa": "function_not_loadable",
    }.items():  # fmt: skip
        with raises(code):
            check(functions, value=f"store_functions:{name}", value_columns="a STRING")
    late = {"key": "store_functions:sometimes", "key_type": "BIGINT"}
    check(functions, **late)
    with raises("function_invalid string int64 return"):
        made([("a", 1, "u")], functions, **late)


def test_a_definition_follows_its_columns_to_their_new_names() -> None:
    rename = {"a": "b", "b": "a", "c": "the c"}
    for before, after in {
        "a": "b", "lower(A)": "lower(b)", "n": "n", "c": "`the c`", "a AS x": "b AS x",
        "a, c, n": "b AS a, `the c` AS c, n", "a.b, n": "b.b AS b, n",
        "": "",
    }.items():  # fmt: skip
        found = followed_definition(AdjunctDefinition(value=before), rename)
        assert found == AdjunctDefinition(value=after)
    other = AdjunctDefinition(key="upper(a)", delete_when="b = 'a' AND c.a IS NULL")
    assert followed_definition(other, rename) == AdjunctDefinition(
        key="upper(b)", delete_when="a = 'a' AND `the c`.a IS NULL"
    )
    function = AdjunctDefinition(value="a:b", value_columns="x INT")
    assert followed_definition(function, rename) == function
