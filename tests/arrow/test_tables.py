"""Reading without a JVM, beside what others do to the stream meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine, event

import weir
from tests.raises import raises
from tests.world.streams import Lane
from weir.arrow.tables import as_table, in_types
from weir.controller.ownership import read_installation
from weir.controller.read_plan import plan as plan_of
from weir.database.connection import Database
from weir.kernel.schema import to_arrow
from weir.model.schema import new_field
from weir.programs.opening import shared
from weir.retention.prune import prune
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker


@pytest.fixture
def lane(database: Database, settings: Settings) -> Lane:
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    return Lane.made(database)


def fill(lane: Lane, settings: Settings, batch: str, count: int = 20) -> None:
    rows = pa.table({"key": [f"key {n}" for n in range(count)]})
    shared(settings).append(str(lane.name), rows, writer_id="w", batch_id=batch)


@contextmanager
def after_the_first(statement: str, then: Callable[[], Any]) -> Iterator[None]:
    """Once something has been asked in whatever session, do something in another."""
    done: list[str] = []

    def asked(*sent: Any) -> None:
        if statement in sent[2] and not done:
            done.append(statement)
            then()

    event.listen(Engine, "after_cursor_execute", asked)
    try:
        yield
    finally:
        event.remove(Engine, "after_cursor_execute", asked)
    assert done


def test_what_is_truncated_while_a_read_is_planned_is_read_or_missed(
    lane: Lane, settings: Settings, tmp_path: Path
) -> None:
    fill(lane, settings, "one")
    tail = lane.tail()

    def meanwhile() -> None:
        fill(lane, settings, "two")
        lane.truncate(", ".join(f"{name}={end // 2}" for name, end in tail.items()))

    start: dict[str, int | str] = dict.fromkeys(tail, 0)
    with after_the_first("segments_between", meanwhile):
        read = shared(settings).read(str(lane.name), start=start)
    assert read.num_rows == 20, "the events that were there when the read began"
    with raises("events_truncated 10 events"):
        shared(settings).read(str(lane.name), start=start)


@pytest.mark.parametrize(
    ("start", "wrong"),
    [
        ({"0.0": 5}, "cut_invalid [0.5, 1) add"),
        ({"0.0": 99, "1.0": 0}, "cut_invalid 99 0.0"),
        ({"0.0": 1, "1.0": 1, "2.1": 3}, "cut_invalid 2.1 0.0 future"),
        ({"0.0": 1, "1.0": 1, "9.0": 3}, "cut_invalid 9.0 because"),
    ],
)
def test_a_start_below_the_head_is_checked_where_the_gap_is_skipped(
    lane: Lane, start: dict[str, int | str], wrong: str
) -> None:
    lane.append({"0.0": 10, "1.0": 10})
    assert lane.scale("0.0", parts=1) == ["2.1"]
    lane.append({"2.1": 10})
    lane.truncate("1.0=8, 2.1=7")

    def plan(start: Any) -> int:
        slices, _ = lane.database.snapshot(lambda c: plan_of(c, lane.name, start, None, "skip"))
        return sum(one.end_row - one.first_row for one in slices)

    assert plan({"0.0": 1, "1.0": 9}) == 4
    with raises(wrong):
        plan(start)


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        (
            pa.table({"key": ["a"], "at": pa.array([1_001], pa.timestamp("ns"))}),
            "bad_rows 'at' timestamp_ntz microseconds quarantine",
        ),
        (
            pa.table({"key": ["a"], "x": pa.array([{}], pa.struct([]))}),
            "column_type_unsupported 'x' struct<>",
        ),
        (
            {"key": ["a"]},
            "frame_unsupported dict",
        ),
    ],
)
def test_rows_that_can_not_be_appended_are_refused_in_one_sentence(
    lane: Lane, settings: Settings, rows: Any, wrong: str
) -> None:
    with raises(wrong):
        shared(settings).append(str(lane.name), rows, writer_id="w", batch_id="x")
    assert lane.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0
    whole = pa.table({"key": ["a"], "at": pa.array([2_000], pa.timestamp("ns"))})
    shared(settings).append(str(lane.name), whole, writer_id="w", batch_id="y")
    assert shared(settings).read(str(lane.name))["at"].cast("int64").to_pylist() == [2]


def test_a_column_that_only_spark_can_read_is_named() -> None:
    fields = [new_field("v", "interval year to month")]
    with raises("column_type_unsupported v interval"):
        to_arrow(fields)


def test_what_is_read_and_counted_between_two_times_is_the_same_later(
    lane: Lane, settings: Settings
) -> None:
    times = [lane.value("SELECT clock_timestamp()")]
    for batch in ("one", "two", "three"):
        fill(lane, settings, batch)
        times.append(lane.value("SELECT clock_timestamp()"))
    hour = {"since": times[1].isoformat(), "until": times[2]}
    read = shared(settings).read(str(lane.name), **hour)
    clocks = lane.value("SELECT array_agg(clock ORDER BY clock) FROM transaction")
    assert set(read["_clock"].to_pylist()) == {clocks[1]}
    assert read.num_rows == shared(settings).count(str(lane.name), **hour) == 20
    fill(lane, settings, "four")
    lane.scale("0.0")
    assert shared(settings).read(str(lane.name), **hour).equals(read)
    assert shared(settings).count(str(lane.name), since=times[2]) == 40
    tail: dict[str, int | str] = {**lane.tail()}
    with raises("argument_invalid until"):
        shared(settings).read(str(lane.name), end=tail, until=times[2])
    lane.truncate(", ".join(f"{name}={offset}" for name, offset in tail.items()))
    with pytest.warns(weir.TruncatedWarning) as warned:
        assert shared(settings).read(str(lane.name), **hour).num_rows == 0
    assert warned[0].filename == __file__, "the line that asked"


def test_a_part_between_two_cuts_is_read_exactly_and_what_is_gone_of_it_is_said(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database, segments=1)
    store, name = shared(settings), str(lane.name)

    def put(batch: str, first: int, count: int) -> None:
        numbers = range(first, first + count)
        rows = pa.table({"key": [f"key {n}" for n in numbers], "n": numbers})
        store.append(name, rows, writer_id="w", batch_id=batch)

    def numbers(**how: Any) -> list[int]:
        found: list[int] = store.read(name, **how)["n"].to_pylist()
        return found

    put("one", 0, 100)
    put("two", 100, 100)
    assert numbers(start={"0.0": 37}, end={"0.0": 141}) == list(range(37, 141))
    with raises("column_unknown 'x'"):
        store.read(name, columns=["x"])
    with raises("argument_invalid order 'none'"):
        store.read(name, order="none")
    lane.truncate("0.0=120")  # of the first file nothing is left, of the second a part
    assert numbers() == list(range(120, 200))
    assert numbers(start={"0.0": 120}, end={"0.0": 125}) == list(range(120, 125))
    for start, end, gone in ((37, 200, 83), (110, 130, 10), (5, 10, 5)):
        with raises(f"events_truncated {gone} events"):
            numbers(start={"0.0": start}, end={"0.0": end})
    # A program that kept its place is told so, too, when the metadata is pruned.
    lane.scale("0.0", parts=1)
    put("three", 200, 50)
    lane.truncate("1.1=0")
    assert prune(database, 0.0) != []
    ends: list[Any] = [None, {"0.0": 130}, {"1.1": 7}]
    for one in ends:
        with raises('events_truncated 0.0 {"1.1": 0} later'):
            numbers(start={"0.0": 125}, end=one)
    with raises("cut_invalid 9.0 because"):
        numbers(start={"9.0": 0})
    assert sorted(numbers(start={"1.1": 0})) == list(range(200, 250))


def test_times_in_the_form_that_spark_wrote_before_are_read(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database, segments=1)
    far = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)]
    rows = pa.table({"key": ["a", "b"], "at": pa.array(far, pa.timestamp("us", "UTC"))})
    shared(settings).append(str(lane.name), rows)
    [path] = Path(settings.warehouse).rglob("*.parquet")
    assert pq.read_schema(path).field("at").type.unit == "us", "as nanoseconds end in 2262"
    pq.write_table(pq.ParquetFile(path).read(), path, use_deprecated_int96_timestamps=True)
    found = shared(settings).read(str(lane.name))["at"].to_pylist()
    assert [at.replace(tzinfo=None) for at in found] == far


@pytest.mark.parametrize(
    ("value", "kind", "kept"),
    [
        (0.1, "decimal(38,30)", Decimal("0.1")), (1e21, "decimal(38,10)", Decimal(10**21)),
        (1.0, "decimal(10,0)", Decimal(1)), (1.005, "decimal(10,2)", None),
        (1 / 3, "decimal(38,10)", None), (float("nan"), "decimal(10,2)", None),
        (7, "decimal(3,2)", Decimal(7)), (10, "decimal(3,2)", None),
        (-(2**63), "decimal(19,0)", Decimal(-(2**63))),
        (Decimal("1.10"), "double", 1.1), (Decimal("0.12345678901234567890"), "double", None),
    ],
)  # fmt: skip
def test_a_number_gets_the_type_of_its_column_only_with_all_its_digits(
    value: object, kind: str, kept: object
) -> None:
    given = as_table([{"n": value}, {"n": None}])
    made = in_types(given, [new_field("n", kind)])
    if kept is None:
        assert made is given
    else:
        assert made is not given
        assert made["n"].to_pylist() == [kept, None]
