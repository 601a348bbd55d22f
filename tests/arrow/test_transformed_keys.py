"""Routing keys and event times with transforms: the same by every door, and rows that fail."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

import weir
from tests.raises import raises
from tests.spark.xxh64 import position
from tests.world.columns import column, update
from tests.world.streams import Lane, run
from tests.world.streams import rows as query
from weir.database.connection import Database
from weir.programs.opening import shared
from weir.settings import Settings

NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)
ROWS = pa.table({
    "city": ["Köln", "KÖLN", "Bonn", "bonn", "Ulm"], "n": pa.array([7, 7, 8, 8, 9], pa.int32()),
    "ms": pa.array([1_709_208_000_000 + i for i in range(5)]),
})  # fmt: skip
KEY, TIME = "concat(lower(city), '-', n)", "timestamp_millis(ms)"
KEYS = ["köln-7", "köln-7", "bonn-8", "bonn-8", "ulm-9"]


@pytest.mark.parametrize("door", ["dictionaries", "arrow", "csv", "parquet"])
def test_every_door_without_a_jvm_computes_the_same(
    settings: Settings, database: Database, door: str
) -> None:
    with weir.open(settings=settings) as store:
        store.create_stream("s/in", routing_key=KEY, event_time=TIME, segments=16)
        folder = Path(settings.input_roots[0])
        pv.write_csv(ROWS, folder / "rows.csv")
        pq.write_table(ROWS, folder / "rows.parquet")
        if door in ("csv", "parquet"):
            store.ingest("s/in", [f"rows.{door}"], engine="pyarrow")
        else:
            store.append("s/in", ROWS.to_pylist() if door == "dictionaries" else ROWS)
        rows = store.read("s/in").sort_by("ms").to_pylist()
    ranges = {name: (low, high) for name, low, high in query(database, _RANGES)}
    for row, key in zip(rows, KEYS, strict=True):
        low, high = ranges[row["_segment"]]
        assert low <= position(key) < high, key
    found = query(database, "SELECT min_event_time, max_event_time FROM weir.transactions")
    assert list(map(tuple, found)) == [(NOON, NOON.replace(microsecond=4_000))]


_RANGES = "SELECT segment_id, key_low, key_high FROM segment"


def append(lane: Lane, settings: Settings, rows: Any) -> Any:
    return shared(settings).append(str(lane.name), rows)


def made(database: Database, key: str, **options: Any) -> Lane:
    lane = Lane.made(database, segments=4, **options)
    run(database, "UPDATE stream SET routing_key = :k WHERE stream_id = :s",
        k=key, s=lane.stream_id)  # fmt: skip
    return lane


def test_a_row_of_which_no_key_can_be_made_is_a_bad_row(
    database: Database, settings: Settings
) -> None:
    rows = [{"zip": zip_, "n": n} for n, zip_ in enumerate(["1", "x", None, "3"])]
    fail = made(database, "int(zip)", on_missing_key="quarantine")
    with raises("bad_rows 1 row 2 'int(zip)' 'x' not kept as a routing key"):
        append(fail, settings, rows)
    kept = made(database, "int(zip)", on_missing_key="spread", on_bad_rows="quarantine")
    done = append(kept, settings, rows)
    assert (done.events, done.rejected) == (3, 1), "what has no key is spread"
    [one] = shared(settings).read(f"{kept.name}.rejected").to_pylist()
    assert one["row"] == '{"zip":"x","n":1}'
    assert (one["column"], one["text"]) == ("int(zip)", "x")
    assert one["type"].startswith("a routing key, because")


def test_a_row_of_which_no_event_time_can_be_made_is_untimed(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database, event_time="to_timestamp(at, 'dd.MM.yyyy HH:mm')")
    texts = ["29.02.2024 12:00", "29.02.2023 12:00", None, "noon"]
    done = append(lane, settings, [{"key": str(i), "at": at} for i, at in enumerate(texts)])
    moment = NOON.timestamp() * 1e6
    assert (done.min_event_time, done.max_event_time, done.untimed) == (moment, moment, 3)
    late = append(lane, settings, [{"key": "a", "at": "29.02.2024 13:00"}])
    assert late.late == 0
    assert "_weir_event_time" not in shared(settings).read(str(lane.name)).column_names


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("d", pa.array([1, None], pa.decimal128(9, 2))),
        ("d", pa.array([datetime(2024, 1, 1), None], pa.timestamp("us"))),
        ("d", pa.array([datetime(2024, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC"))),
        ("d.x", pa.array([{"x": True}, None])),
        ("coalesce(d, 'x')", pa.array([None, None], pa.null())),
    ],
)
def test_keys_of_many_types_are_where_verification_expects_them(
    database: Database, settings: Settings, key: str, values: pa.Array
) -> None:
    lane = made(database, key, on_missing_key="spread")
    append(lane, settings, pa.table({"d": values, "n": [1, 2]}))
    append(lane, settings, pa.table({"d": values, "n": [3, 4]}))
    assert verified(settings) == (0, {})


def verified(settings: Settings) -> tuple[int, dict[str, int]]:
    """In how many files no keys were checked, and what is wrong."""
    with weir.open(settings=settings) as store:
        done = store.verify(engine="pyarrow")
    return done["keys_not_checked"], done["damage"]


def test_a_column_that_is_renamed_stays_in_a_key_and_an_event_time(
    database: Database, settings: Settings
) -> None:
    fields = [column("city", "string"), column("n", "integer"), column("ms", "long")]
    lane = made(database, KEY, event_time=TIME, fields=fields)
    append(lane, settings, ROWS)
    update(lane, rename={"city": "the city", "ms": "at"})
    [[key, time]] = lane.rows("SELECT routing_key, event_time FROM stream WHERE stream_id = :s")
    assert (key, time) == ("concat(lower(`the city`), '-', n)", "timestamp_millis(at)")
    append(lane, settings, ROWS.rename_columns(["the city", "n", "at"]))
    found = shared(settings).read(str(lane.name))
    places = zip(found["the city"].to_pylist(), found["_segment"].to_pylist(), strict=True)
    assert len({(city.lower(), segment) for city, segment in places}) == 3
    assert verified(settings) == (0, {})


def test_a_stream_with_another_expression_from_before_is_read_and_not_appended_to(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database)
    append(lane, settings, [{"key": "a"}])
    run(database, "UPDATE stream SET routing_key = 'upper(key) || 1' WHERE stream_id = :s",
        s=lane.stream_id)  # fmt: skip
    with raises("expression_invalid upper(key) || 1"):
        append(lane, settings, [{"key": "a"}])
    assert shared(settings).read(str(lane.name)).num_rows == 1
