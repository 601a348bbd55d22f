"""A file says what columns are to be: what is applied again changes nothing, also a swap."""

from typing import Any

import pyarrow as pa
import pytest

from tests.annex.declarations.shop import compared, everything, run
from tests.raises import raises
from tests.world.columns import column
from tests.world.streams import rows, unique
from weir.annex.declarations import apply
from weir.annex.declarations.columns import DeclaredColumns
from weir.annex.declarations.reading import read_text
from weir.controller.streams import create_stream, schema_at
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.model.column_changes import ColumnChanges
from weir.model.names import stream_name
from weir.model.schema import Field
from weir.programs.opening import shared

THERE: list[Field] = [
    column("k", "string"), column("a", "integer"), column("b", "float", "0.1"),
    {**column("c", "integer"), "stored": "old"},
]  # fmt: skip


def changes(written: str, **more: Any) -> ColumnChanges:
    return DeclaredColumns(written, **more).changes("s/s", THERE, ["gone"])


def changes_of(there: list[Field], declared: DeclaredColumns) -> ColumnChanges:
    return declared.changes("s/s", there, [])


def after(there: list[Field], declared: DeclaredColumns) -> list[Field]:
    """The columns after a declaration is applied, which changes nothing the second time."""
    wanted = declared.changes("s/s", there, [])
    fields, gone = wanted.applied("s/s", there, [])
    assert not declared.changes("s/s", fields, gone)
    return fields


def test_a_column_is_known_by_its_name_in_files_so_a_swap_is_done_once() -> None:
    swap = DeclaredColumns("k STRING, a INT, b INT", renames={"a": "b", "b": "a"})
    there = [column("k", "string"), column("a", "integer"), column("b", "integer")]
    fields = after(there, swap)
    assert [(one["name"], one.get("stored")) for one in fields] == [
        ("k", None), ("b", "a"), ("a", "b"),
    ]  # fmt: skip
    again = DeclaredColumns("k STRING, c INT, b INT", renames={"a": "b", "b": "c"})
    assert [one["name"] for one in after(fields, again)] == ["k", "b", "c"]
    new = swap.created("s/s", "k").add
    assert [(one["name"], one.get("stored")) for one in new] == [
        ("k", None), ("a", "b"), ("b", "a"),
    ]  # fmt: skip
    assert not swap.changes("s/s", list(new), []), "a new stream has the same files"


def test_columns_are_renamed_widened_dropped_and_added_with_defaults_at_once() -> None:
    declared = DeclaredColumns(
        "k STRING, a DOUBLE, z BIGINT, n INT", {"n": "7"}, {"a": "z", "b": "a"}, ["old"]
    )
    wanted = declared.changes("s/s", THERE, [])
    assert wanted.touched == {
        "a": "renamed to z and widened to long", "b": "renamed to a and widened to double",
        "c": "dropped",
    }  # fmt: skip
    assert [(one["name"], one["default"]) for one in wanted.add] == [("n", "7")]
    assert [one["name"] for one in after(THERE, declared)] == ["k", "z", "a", "n"]


def test_a_file_from_before_a_rename_adds_no_second_column() -> None:
    there: list[Field] = [column("k", "string"), {**column("x", "integer"), "stored": "a"}]
    old = "k STRING, a INT"
    with raises("column_unknown 'x' 'a' rename_columns a -> x"):
        changes_of(there, DeclaredColumns(old))
    assert changes_of(there, DeclaredColumns(old, renames={"a": "a"})).rename == {"x": "a"}
    both = DeclaredColumns("k STRING, x INT, a INT", renames={"a": "x"})
    assert [(one["name"], one.get("stored")) for one in after(there, both)] == [
        ("k", None), ("x", "a"), ("a", "a#2"),
    ]  # fmt: skip
    again = DeclaredColumns(old, drop=["a"])
    assert [one.get("stored") for one in after(there, again)] == [None, "a#2"]


def test_a_name_in_files_that_a_file_drops_is_given_to_no_new_column() -> None:
    declared = DeclaredColumns("k STRING, city STRING", drop=["city"])
    there = [column("k", "string")]
    assert after(there, declared)[1]["stored"] == "city#2"
    before = [*there, column("city", "string")]
    with raises("argument_invalid 'city' drop this one first"):
        declared.changes("s/s", before, [])
    fields, gone = ColumnChanges(drop=["city"]).applied("s/s", before, [])
    added, _ = declared.changes("s/s", fields, gone).applied("s/s", fields, gone)
    assert not declared.changes("s/s", added, gone)


def test_a_default_is_the_same_in_a_wider_type_and_never_changes() -> None:
    for written in ("0.1", "0.10", "0.10000000149011612"):
        wide = changes("k STRING, b DOUBLE", defaults={"b": written})
        assert list(wide.touched) == ["b"]
        fields, _ = wide.applied("s/s", THERE, [])
        again = DeclaredColumns("k STRING, b DOUBLE", {"b": written})
        assert not again.changes("s/s", fields, [])
    with raises("change_impossible 'b' '0.2' never changes"):
        changes("k STRING, b DOUBLE", defaults={"b": "0.2"})
    with raises("change_impossible 'a' none changes"):
        changes("k STRING, a INT", defaults={"a": "1"})


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "column_type_differs 'a' string integer wider": ("k STRING, a STRING", {}),
    "column_unknown 'gone' 'z' dropped rename_columns": (
        "k STRING, z INT", {"renames": {"gone": "z"}}),
    "column_unknown 'c' 'old' write old -> z": ("k STRING, z INT", {"renames": {"c": "z"}}),
    "column_unknown 'a' write a -> a": ("k STRING, a INT", {"renames": {"never": "a"}}),
    "column_unknown 'c' drop_columns write old": ("k STRING", {"drop": ["c"]}),
    "column_unknown 'z' name in files declare": ("k STRING", {"renames": {"a": "z"}}),
    "column_unknown 'n' a default declare": ("k STRING", {"defaults": {"n": "1"}}),
    "argument_invalid 'x' 'n'": ("k STRING, n INT", {"defaults": {"n": "x"}}),
}  # fmt: skip


@pytest.mark.parametrize("said", REFUSED)
def test_what_a_stream_can_not_become_is_refused(said: str) -> None:
    written, more = REFUSED[said]
    with raises(said):
        changes(written, **more)


@pytest.mark.parametrize(
    "wrong",
    [
        "rename_columns: [a -> b, A -> c]", "rename_columns: [a -> b, c -> b]",
        "rename_columns: [a -> b], drop_columns: [a]", "rename_columns: [_weir_seq -> b]",
        "rename_columns: [a]", "defaults: [a]", "defaults: [a = 1, a = 2]",
    ],
)  # fmt: skip
def test_a_file_that_contradicts_itself_is_refused(wrong: str) -> None:
    with raises("declarations_invalid s/s"):
        read_text(f"streams: {{s/s: {{routing_key: k, {wrong}}}}}")


FIRST = """
streams:
  shop/orders:
    routing_key: customer
    schema: customer STRING, n INT, city STRING
"""
SECOND = """
streams:
  shop/orders:
    routing_key: client
    schema: client STRING, number BIGINT, gate INT
    rename_columns: [customer -> client, n -> number]
    drop_columns: [city]
    defaults: [gate = 7]
"""


def test_who_names_a_column_is_listed_first_and_must_be_allowed(
    database: Database, settings: Any
) -> None:
    run(database, FIRST)
    table = pa.table({"customer": ["a"], "n": pa.array([1], pa.int32()), "city": ["x"]})
    shared(settings).append("shop/orders", table, writer_id="w", batch_id="1")
    run(database, "reader_groups: {late: {streams: [shop/orders]}}")
    before = everything(database)
    [shown] = compared(database, SECOND)
    assert shown.changes["columns"] == (
        ["customer", "n", "city"],
        ["gate", "city dropped", "n renamed to number and widened to long",
         "customer renamed to client"],
    )  # fmt: skip
    assert list(shown.changes) == ["columns"], "the routing key follows"
    [named] = shown.named_by
    assert "reader group late reads the stream" in named
    assert named in str(shown)
    assert shown.report()["named_by"] == [named]
    with raises("columns_in_use late allow_named"):
        run(database, SECOND)
    assert everything(database) == before
    assert run(database, SECOND, named=True) == [shown]
    assert run(database, SECOND) == []
    table = shared(settings).read("shop/orders")
    assert table.select(["client", "number", "gate"]).to_pylist() == [
        {"client": "a", "number": 1, "gate": 7}
    ]
    run(database, SECOND.replace("shop/orders", "shop/new"))
    shared(settings).append("shop/new", [{"client": "a", "number": 1}])
    new = shared(settings).read("shop/new")
    assert new.select(["client", "number", "gate"]) == table.select(["client", "number", "gate"])
    stored = "SELECT stream, name, stored_name FROM weir.stream_columns WHERE newest ORDER BY 1, 2"
    both = rows(database, stored)
    assert [one[1:] for one in both[:3]] == [one[1:] for one in both[3:]] == [
        ("client", "customer"), ("gate", "gate"), ("number", "n"),
    ]  # fmt: skip


def test_an_event_time_follows_its_column_and_completeness_goes_on(database: Database) -> None:
    text = "streams: {shop/orders: {routing_key: k, event_time: %s, schema: 'k STRING, %s BIGINT'"
    run(database, text % ("at", "at") + "}}")
    since = rows(database, "SELECT event_time_since FROM stream")
    [shown] = run(database, text % ("since", "since") + ", rename_columns: [at -> since]}}")
    assert list(shown.changes) == ["columns"]
    assert rows(database, "SELECT event_time FROM stream") == [("since",)]
    assert rows(database, "SELECT event_time_since FROM stream") == since
    with raises("change_impossible column 'since' event time"):
        run(database, text % ("since", "x") + ", drop_columns: [at]}}")


def test_the_key_of_a_declared_store_follows_and_is_not_made_anew(database: Database) -> None:
    text = """{streams: {s/s: {routing_key: k, schema: 'k STRING, %s INT', rename_columns: %s}},
        adjunct_stores: {s/one: {stream: s/s, key: %s, value: k}}}"""
    run(database, text % ("a", "[]", "a"))
    [shown] = run(database, text % ("b", "[a -> b]", "b"))
    assert (shown.kind, list(shown.changes)) == ("stream", ["columns"])
    assert rows(database, "SELECT key, definition FROM adjunct_stores") == [("b", 1)]
    assert run(database, text % ("b", "[a -> b]", "b")) == []


def test_a_swap_that_somebody_else_makes_meanwhile_is_not_swapped_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = stream_name("shop/orders")
    fields = [column("k", "string"), column("a", "integer"), column("b", "integer")]
    create_stream(
        database, name, routing_key="k", segments=1, fields=fields, request_id=unique("create")
    )
    text = ("streams: {shop/orders: {routing_key: k, schema: 'k STRING, a INT, b INT',"
            " rename_columns: [a -> b, b -> a]}}")  # fmt: skip

    def swapped(*given: Any) -> Any:
        """The other one does it between the comparison and the change."""
        monkeypatch.undo()
        update_stream(
            database, name, {}, column_changes=ColumnChanges(rename={"a": "b", "b": "a"}),
            request_id=unique("swap"),
        )  # fmt: skip
        return apply._concerned(*given)

    monkeypatch.setattr(apply, "_concerned", swapped)
    with raises("schema_changed shop/orders apply it again"):
        run(database, text)
    assert run(database, text) == []
    found = database.transaction(lambda c: schema_at(c, rows_id(database), 2))
    assert [one["name"] for one in found] == ["k", "b", "a"]


def rows_id(database: Database) -> int:
    [(found,)] = rows(database, "SELECT stream_id FROM stream")
    return int(found)
