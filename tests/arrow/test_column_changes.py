"""Columns are renamed, dropped, widened and added with defaults while files stay as they are: what
is read is what a model says that keeps each row by itself (semantics 5.5)."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.verify import contents_by
from tests.annex.erasure.world import ASKED
from tests.chance import cases, random_for
from tests.raises import raises
from tests.world.columns import World, column, converted, update
from tests.world.streams import Lane, unique
from weir.annex.erasure.find import places
from weir.annex.erasure.run import erase
from weir.annex.publication.columns import unlike
from weir.annex.verification.new_files import checking
from weir.annex.verification.verify import verify
from weir.arrow.read import read_slice
from weir.compaction.run import Budget, compact
from weir.controller.commit import commit
from weir.controller.read_plan import plan, plan_of_stream
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.kernel.matching import in_columns
from weir.kernel.schema import to_arrow
from weir.kernel.writer import stage_table
from weir.pages.browse import browse
from weir.programs.opening import shared
from weir.settings import Settings


def test_whatever_changes_each_row_is_read_as_the_model_says(
    database: Database, settings: Settings
) -> None:
    for case in range(cases(96)):
        random = random_for("columns", case)
        world = World.made(database, settings, random)
        for _ in range(random.randint(4, 12)):
            random.choice([world.append, world.change, world.change])()
        world.append()
        world.check()


def test_a_column_that_is_dropped_and_added_again_never_shows_what_it_was(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database, fields=[column("key", "string"), column("a", "integer")])
    put(lane, settings, key=["x"], a=[1])
    update(lane, rename={"a": "b"})
    update(lane, add=[column("a", "integer")])
    put(lane, settings, key=["x"], a=[2], b=[3])
    update(lane, drop=["a", "b"])
    update(lane, add=[column("a", "integer"), column("B", "integer", "9")])
    put(lane, settings, key=["x"], a=[4])
    found = shared(settings).read(str(lane.name)).select(["a", "B"]).to_pylist()
    assert found == [{"a": None, "B": 9}, {"a": None, "B": 9}, {"a": 4, "B": 9}]


def test_an_older_version_of_the_columns_can_be_read(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database, fields=[column("key", "string"), column("a", "integer")])
    put(lane, settings, key=["x"], a=[1])
    update(lane, rename={"a": "b"}, widen=[column("a", "long")])
    put(lane, settings, key=["x"], b=pa.array([2**40], pa.int64()))
    update(lane, drop=["b"])
    put(lane, settings, key=["x"])
    seen = {}
    for version in (1, 2, 3, None):
        table = shared(settings).read(str(lane.name), schema_version=version)
        seen[version] = table.drop_columns(["_segment", "_offset", "_clock"]).to_pydict()
    assert seen[1] == {"key": ["x"] * 3, "a": [1, 2**40, None]}
    assert seen[2] == {"key": ["x"] * 3, "b": [1, 2**40, None]}
    assert seen[3] == seen[None] == {"key": ["x"] * 3}
    with raises("argument_invalid 4 asked"):
        shared(settings).read(str(lane.name), schema_version=4)


def put(lane: Lane, settings: Settings, **columns: Any) -> Any:
    table = pa.table({
        name: values if isinstance(values, pa.Array) else pa.array(
            values, pa.string() if isinstance(values[0], str) else pa.int32())
        for name, values in columns.items()
    })  # fmt: skip
    return shared(settings).append(str(lane.name), table, writer_id="w", batch_id=unique("b"))


def test_a_value_of_another_type_is_refused_and_never_guessed(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database, fields=[column("key", "string"), column("a", "integer")])
    with raises("column_type_differs 'a' long integer"):
        put(lane, settings, key=["x"], a=pa.array([1], pa.int64()))
    update(lane, widen=[column("a", "long")])
    put(lane, settings, key=["x"], a=pa.array([2**40], pa.int64()))
    put(lane, settings, key=["x"], a=[7])  # what is narrower still fits
    with raises("column_type_differs 'a' double long"):
        put(lane, settings, key=["x"], a=pa.array([1.0]))
    assert shared(settings).read(str(lane.name))["a"].to_pylist() == [2**40, 7]


@pytest.mark.parametrize(
    ("before", "after", "fits", "larger"),
    [
        ("integer", "long", pa.array([7]), pa.array([2**40])),
        ("float", "double", pa.array([0.5]), pa.array([0.1])),
        ("decimal(4,1)", "decimal(5,2)", pa.array(["1.50"]).cast(pa.decimal128(5, 2)),
         pa.array(["1.25"]).cast(pa.decimal128(5, 2))),
        ("date", "timestamp_ntz", pa.array([datetime(2024, 1, 1)], pa.timestamp("us")),
         pa.array([datetime(2024, 1, 1, 1)], pa.timestamp("us"))),
        ("integer", "decimal(12,2)", pa.array([Decimal(7)], pa.decimal128(12, 2)),
         pa.array([Decimal("7.50")], pa.decimal128(12, 2))),
        ("array<float>", "array<double>", pa.array([[0.5, None]]), pa.array([[0.1]])),
        ("struct<date>", "struct<timestamp_ntz>",
         pa.array([{"x": datetime(2024, 1, 1)}], pa.struct({"x": pa.timestamp("us")})),
         pa.array([{"x": datetime(2024, 1, 1, 1)}], pa.struct({"x": pa.timestamp("us")}))),
    ],
)  # fmt: skip
def test_a_read_that_began_before_a_widening_goes_on_or_says_which_column_grew(
    database: Database,
    settings: Settings,
    before: str,
    after: str,
    fits: pa.Array,
    larger: pa.Array,
) -> None:
    lane = Lane.made(database, fields=[column("key", "string"), column("a", before)])
    _, fields = database.snapshot(lambda c: plan(c, lane.name, None, None))
    update(lane, widen=[column("a", after)])
    put(lane, settings, key=["x"], a=fits)
    put(lane, settings, key=["x"], a=larger)
    slices, _ = database.snapshot(lambda c: plan(c, lane.name, None, None))
    first, second = sorted(slices, key=lambda one: one.start_offset)
    assert (
        read_slice(settings, first, fields, ["a"])["a"]
        .cast(fits.type)
        .equals(pa.chunked_array([fits]))
    )
    with raises("schema_changed 'a' begin"):
        read_slice(settings, second, fields, ["a"])


def test_a_renamed_key_routes_as_before_and_new_appends_name_it(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database, 8, fields=[column("key", "string"), column("n", "integer")])
    keys = [f"k{i}" for i in range(40)]
    put(lane, settings, key=keys, n=list(range(40)))
    update(lane, rename={"key": "customer"})
    put(lane, settings, customer=keys, n=list(range(40)))
    found = shared(settings).read(str(lane.name))
    places: dict[str, set[int]] = {}
    for key, segment in zip(
        found["customer"].to_pylist(), found["_segment"].to_pylist(), strict=True
    ):
        places.setdefault(key, set()).add(segment)
    assert found.num_rows == 80
    assert all(len(segments) == 1 for segments in places.values())
    with raises("column_missing routing"):
        put(lane, settings, n=[1])


@pytest.mark.parametrize(
    ("kind", "wide"),
    [("byte", "long"), ("integer", "long"), ("decimal(4,1)", "decimal(38,1)"),
     ("decimal(9,7)", "decimal(20,7)")],
)  # fmt: skip
def test_a_widened_key_routes_as_before_and_is_found_in_old_and_new_files(
    database: Database, settings: Settings, kind: str, wide: str
) -> None:
    fields = [column("key", kind)]
    lane, store = Lane.made(database, 8, fields=fields), shared(settings)
    name, keys = str(lane.name), pa.array([Decimal(n) for n in range(-40, 40)])
    store.append(name, pa.table({"key": keys.cast(to_arrow(fields).field(0).type)}))
    update(lane, widen=[column("key", wide)])
    store.append(name, pa.table({"key": keys.cast(to_arrow([column("key", wide)]).field(0).type)}))
    both = store.read(name).select(["key", "_segment"]).group_by("key").aggregate(
        [("_segment", "count_distinct"), ("_segment", "count")]
    )  # fmt: skip
    assert set(both["_segment_count_distinct"].to_pylist()) == {1}
    assert set(both["_segment_count"].to_pylist()) == {2}
    key = str(both["key"][0])
    assert store.erase(name, "asked", keys=[key], dry_run=False)["streams"] == {name: 2}
    assert key not in map(str, store.read(name)["key"].to_pylist())


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({"rename": {"a": "b"}}, False), ({"drop": ["a"]}, False),
        ({"widen": [column("a", "long")]}, False), ({"add": [column("b", "integer", "5")]}, False),
        ({"add": [column("b", "integer")]}, True),
    ],
)  # fmt: skip
def test_an_append_that_began_before_a_change_is_committed_if_it_fits_or_refused(
    database: Database, settings: Settings, changes: dict[str, Any], fits: bool
) -> None:
    lane = Lane.made(database, fields=[column("key", "string"), column("a", "integer")])
    table = pa.table({"key": ["x"], "a": pa.array([1], pa.int32())})
    shared(settings).append(str(lane.name), table, writer_id="w", batch_id="first")
    began = lane.opened()
    staged = stage_table(settings.warehouse, began, table)
    update(lane, **changes)
    if not fits:
        with raises("schema_changed append"):
            commit(database, staged)
        return
    commit(database, staged)
    assert shared(settings).read(str(lane.name))["b"].to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("kind", "text"),
    [("integer", "x"), ("integer", "1.5"), ("binary", "00"), ("decimal(20,0)", "1"),
     ("date", "2013"), ("byte", "300"), ("string", "${HOME}")],
)  # fmt: skip
def test_a_default_that_is_no_value_of_the_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        column("a", kind, text)
    assert refused.value.code == "argument_invalid"


def test_whole_numbers_that_became_decimals_stay_exact_whatever_happens_to_their_files(
    database: Database, settings: Settings
) -> None:
    store = shared(settings)
    fields = [column("key", "string"), column("i", "integer"), column("l", "long")]
    lane = Lane.made(database, segments=1, fields=fields)
    whole = pa.table({
        "key": ["a", "b", "c"], "i": pa.array([-(2**31), 2**31 - 1, None], pa.int32()),
        "l": [-(2**63), 2**63 - 1, None],
    })  # fmt: skip
    store.append(str(lane.name), whole, batch_id="1", writer_id="w")
    store.append(str(lane.name), whole, batch_id="2", writer_id="w")
    update(lane, widen=[column("i", "decimal(38,28)"), column("l", "decimal(38,18)")])
    store.append(str(lane.name), whole, batch_id="3", writer_id="w")  # it still fits

    def seen() -> list[tuple[Any, ...]]:
        rows = store.read(str(lane.name), order="stream").select(["key", "i", "l"]).to_pylist()
        return [tuple(row.values()) for row in rows]

    a, b, c = [
        (row["key"], *(None if row[n] is None else Decimal(row[n]) for n in ("i", "l")))
        for row in whole.to_pylist()
    ]
    assert seen() == [a, b, c] * 3
    [report] = compact(
        database, settings, Budget(1 << 40, 600), [lane.name], thorough=True, check=checking(store)
    )
    assert report["files_after"] < report["files_before"]
    assert seen() == [a, b, c] * 3
    _, slices, now = database.snapshot(lambda c: plan_of_stream(c, lane.name))
    of_b = places(settings, slices, now, in_columns(["key"], ["b"]))
    erase(database, settings, lane.name, ASKED, lambda: of_b)
    assert seen() == [a, c] * 3
    found = verify(store, contents=contents_by(store, "pyarrow"))
    assert dict(found.damage) == {}, "digests are of the types of the files"
    with raises("change_impossible 'l' decimal(38,18) long exactly"):
        update(lane, widen=[column("l", "long")])
    assert [why for _, _, why in unlike([(1, fields), (2, now)])] == [  # it is not published
        "was widened from integer to decimal(38,28)", "was widened from long to decimal(38,18)",
    ]  # fmt: skip


DAY, NOON = date(2024, 1, 1), datetime(2024, 1, 2, 12)
# A type and a wider one, values of files of each, and a condition with those that fulfil it.
WIDENED: dict[str, tuple[str, str, list[Any], list[Any], str, list[Any]]] = {
    "tiny": ("byte", "long", [-128, 127], [2**40, 1], "> 126", [127, 2**40]),
    "whole": ("integer", "decimal(12,2)", [-(2**31), 1], [Decimal("1.50"), None], "< 1.50",
              [-(2**31), 1]),
    "big": ("long", "decimal(38,18)", [2**63 - 1, None], [Decimal("0.5"), 7], "IN (0.5, 7)",
            [Decimal("0.5"), 7]),
    "single": ("float", "double", [0.25, 0.5], [0.1, None], "= 0.5", [0.5]),
    "money": ("decimal(5,2)", "decimal(30,5)", [Decimal("1.50"), None],
              [Decimal("1.50001"), 2], "<= 1.5", [Decimal("1.50")]),
    "at": ("date", "timestamp_ntz", [DAY, None], [NOON, datetime(2024, 1, 1)],
           "= '2024-01-01'", [DAY, DAY]),
}  # fmt: skip


def within(outer: str, value: Any, key: Any) -> Any:
    return {"": value, "array": [value], "struct": {"x": value}, "map": [(key, value)]}[outer]


def test_each_door_gives_the_values_of_old_and_new_files_of_widened_columns(
    database: Database, settings: Settings
) -> None:
    kinds: dict[str, tuple[str, str]] = {"key": ("string", "string")}
    given: list[dict[str, list[Any]]] = [{"key": ["a", "b"]}, {"key": ["c", "d"]}]
    for name, (kind, wide, old, new, *_) in WIDENED.items():
        for outer in ("", "array", "struct", "map"):
            both = tuple(f"{outer}<{one}>" if outer else one for one in (kind, wide))
            kinds[outer + name] = both[0], both[1]
            for table, values in zip(given, (old, new), strict=True):
                table[outer + name] = [within(outer, one, values[0]) for one in values]
    fields = [[column(name, both[i]) for name, both in kinds.items()] for i in (0, 1)]
    store, lane = shared(settings), Lane.made(database, 1, fields=fields[0], event_time="at")
    stream = str(lane.name)
    store.append(stream, pa.table(given[0], to_arrow(fields[0])), writer_id="w", batch_id="1")
    update(lane, widen=fields[1][1:])
    store.append(stream, pa.table(given[1], to_arrow(fields[1])), writer_id="w", batch_id="2")
    store.append(stream, pa.table(given[0], to_arrow(fields[0])), writer_id="w", batch_id="3")
    wanted = [
        {name: converted(values[i], kinds[name][1]) for name, values in table.items()}
        for table in (*given, given[0]) for i in (0, 1)
    ]  # fmt: skip

    def rows(table: pa.Table) -> list[dict[str, Any]]:
        assert table.select(list(kinds)).schema.equals(to_arrow(fields[1]))
        found: list[dict[str, Any]] = table.select(list(kinds)).to_pylist()
        return found

    store.create_reader_group("readers", [stream])
    for _ in ("files of two appends", "one compacted file"):
        assert rows(store.read(stream)) == rows(store.tail(stream)) == wanted
        assert rows(browse(database, settings, lane.name, 9).table) == wanted[::-1]
        for name, (_, wide, _, _, condition, fulfil) in WIDENED.items():
            seen = browse(database, settings, lane.name, 9, condition=f"{name} {condition}")
            assert rows(seen.table)[::-1] == [
                row for row in wanted
                if row[name] is not None and row[name] in [converted(one, wide) for one in fulfil]
            ], name  # fmt: skip
        for since, until, keys in (
            ("2024-01-01", "2024-01-02", ["a", "d", "a"]), ("2024-01-01 01:00", None, ["c"]),
            (None, "2024-01-02 12:00", ["a", "d", "a"]),
        ):  # fmt: skip
            span = store.read(stream, event_time_since=since, event_time_until=until)
            assert [row["key"] for row in rows(span)] == keys
        compact(database, settings, Budget(1 << 40, 600), [lane.name], thorough=True,
                check=checking(store))  # fmt: skip
    with store.reader("readers") as reader:
        for batch in reader:
            assert rows(batch.events) == wanted
            batch.commit()
    done = store.erase(stream, "asked", condition="whole < 1.50 AND at IS NULL", dry_run=False)
    assert done["streams"] == {stream: 2}
    del wanted[5], wanted[1]
    assert rows(store.read(stream)) == wanted
    found = verify(store, contents=contents_by(store, "pyarrow"))
    assert dict(found.damage) == {}
