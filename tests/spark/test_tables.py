"""`weir.append` and `weir.read` without a JVM, beside Spark: the same streams and refusals."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raises import raises
from tests.spark.installation import Installation
from weir.programs.opening import shared
from weir.retention.prune import prune

KEYS = ["a", "", "ä", "x" * 100, "Ω" * 33, "key 7"] + [f"key {n}" for n in range(300)]


def table(start: int, count: int) -> pa.Table:
    return pa.table(
        {
            "k": [KEYS[n % len(KEYS)] for n in range(start, start + count)],
            "n": pa.array(range(start, start + count), pa.int64()),
        }
    )


def append(weir: Installation, stream: object, rows: pa.Table, batch: str) -> int:
    done = shared(weir.settings).append(str(stream), rows, writer_id="test", batch_id=batch)
    return 0 if done.repeated else done.events


def test_what_was_appended_without_a_jvm_is_read_by_spark_in_every_order(
    weir: Installation,
) -> None:
    stream = weir.create(segments=4)
    assert append(weir, stream, table(0, 1000), "one") == 1000
    assert append(weir, stream, table(0, 1000), "one") == 0
    weir.scale(stream, ["1.0"], parts=3)
    weir.append(stream, weir.spark.createDataFrame(table(1000, 500).to_pandas()))
    assert append(weir, stream, table(1500, 700), "two") == 700
    facts = weir.check(stream, read=True)
    assert sorted(facts["n"]) == list(range(2200))


def test_what_spark_appended_is_read_without_a_jvm(weir: Installation) -> None:
    stream = weir.create(segments=3)
    weir.append(stream, weir.spark.createDataFrame(table(0, 400).to_pandas()))
    append(weir, stream, table(400, 400), "two")
    facts = weir.facts(stream)
    read = shared(weir.settings).read(str(stream))
    places = zip(read["_segment"].to_pylist(), read["_offset"].to_pylist(), strict=True)
    assert list(places) == sorted(zip(facts["_segment"], facts["_offset"], strict=True))
    assert sorted(read["n"].to_pylist()) == list(range(800))
    ordered = shared(weir.settings).read(str(stream), order="stream", columns=["n"])
    assert ordered["n"].to_pylist() == list(range(800))
    assert ordered.column_names == ["n", "_segment", "_offset", "_clock"]


@pytest.mark.release
def test_a_part_between_two_cuts_is_read_exactly(weir: Installation) -> None:
    stream = weir.create(segments=1)
    append(weir, stream, table(0, 100), "one")
    append(weir, stream, table(100, 100), "two")
    part = shared(weir.settings).read(str(stream), start={"0.0": 37}, end={"0.0": 141})
    assert part["n"].to_pylist() == list(range(37, 141))
    assert part["_offset"].to_pylist() == list(range(37, 141))
    weir.truncate(stream, "0.0=150")
    assert shared(weir.settings).read(str(stream))["n"].to_pylist() == list(range(150, 200))


@pytest.mark.release
def test_what_was_truncated_is_said_with_its_count_and_never_left_out(weir: Installation) -> None:
    stream = weir.create(segments=1)
    append(weir, stream, table(0, 100), "one")
    append(weir, stream, table(100, 100), "two")
    weir.truncate(stream, "0.0=120")  # of the first file nothing is left, of the second a part
    with raises('events_truncated 83 events {"0.0": 37} {"0.0": 120}'):
        shared(weir.settings).read(str(stream), start={"0.0": 37})
    with raises("events_truncated 10 events"):
        shared(weir.settings).read(str(stream), start={"0.0": 110}, end={"0.0": 130})
    with raises("events_truncated 5 events"):
        shared(weir.settings).read(str(stream), start={"0.0": 5}, end={"0.0": 10})
    part = shared(weir.settings).read(str(stream), start={"0.0": 120}, end={"0.0": 125})
    assert part["n"].to_pylist() == list(range(120, 125))
    # A program that kept its place is told so, too, when the metadata is pruned.
    weir.scale(stream, ["0.0"], parts=1)
    append(weir, stream, table(200, 50), "three")
    weir.truncate(stream, "1.1=0")
    assert prune(weir.database, 0.0) != []
    ends: list[dict[str, int | str] | None] = [None, {"0.0": 130}, {"1.1": 7}]
    for end in ends:
        with raises('metadata_pruned 0.0 {"1.1": 0}'):
            shared(weir.settings).read(str(stream), start={"0.0": 125}, end=end)
    with raises("cut_segment_unknown 9.0"):
        shared(weir.settings).read(str(stream), start={"9.0": 0})
    read = shared(weir.settings).read(str(stream), start={"1.1": 0})
    assert sorted(read["n"].to_pylist()) == list(range(200, 250))


@pytest.mark.release
def test_what_it_can_not_do_is_said(weir: Installation) -> None:
    stream = weir.create()
    with raises("stream_not_found s/nowhere"):
        append(weir, "s/nowhere", table(0, 1), "x")
    with raises("bad_rows 1 key row 2 on_missing_key"):
        append(weir, stream, pa.table({"k": ["a", None], "n": [1, 2]}), "x")
    with raises("routing_key_column_missing s/events 'k' n"):
        append(weir, stream, pa.table({"n": [1]}), "x")
    with raises("column_type_unsupported 'n' halffloat"):
        append(weir, stream, pa.table({"k": ["a"], "n": pa.array([1], pa.float16())}), "x")
    by_share = weir.create("s/share", key="x")
    with raises("expression_not_computable s/share 'x' double"):
        append(weir, by_share, pa.table({"x": [0.5]}), "x")
    assert weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0
    append(weir, stream, table(0, 1), "fine")
    with raises("column_unknown 'x'"):
        shared(weir.settings).read(str(stream), columns=["x"])
    with raises("argument_invalid order 'none'"):
        shared(weir.settings).read(str(stream), order="none")


@pytest.mark.release
def test_rows_without_a_key_are_spread_as_spark_spreads_them(weir: Installation) -> None:
    one, two = (weir.create(name, on_missing_key="spread") for name in ("s/one", "s/two"))
    rows = pa.table({"k": pa.array([None] * 50, pa.string()), "n": range(50)})
    append(weir, one, rows, "x")
    frame = weir.spark.createDataFrame([(None, n) for n in range(50)], "k string, n long")
    weir.append(two, frame.coalesce(1))
    segments = [weir.facts(s).set_index("n")["_segment"].to_dict() for s in (one, two)]
    assert segments[0] == segments[1]


FAR = [
    dt.datetime(1, 1, 1),
    dt.datetime(1582, 10, 4),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
]


@pytest.mark.release
def test_times_beyond_what_nanoseconds_hold_come_back_as_they_went_in(weir: Installation) -> None:
    stream = weir.create(segments=1)
    rows = pa.table({"k": ["a", "b", "c"], "at": pa.array(FAR, pa.timestamp("us"))})
    pq.write_table(rows, f"{weir.input}/far.parquet")
    weir.ingest(stream, ["far.parquet"])
    assert shared(weir.settings).read(str(stream))["at"].to_pylist() == FAR
    (path,) = weir.query("SELECT path FROM data_file")
    kinds = pq.read_schema(f"{weir.settings.warehouse}/{path.path}")
    assert kinds.field("at").type == pa.timestamp("us")


@pytest.mark.release
def test_times_in_the_form_that_spark_wrote_before_are_read(weir: Installation) -> None:
    stream = weir.create(segments=1)
    frame = weir.spark.createDataFrame(
        [("a", FAR[0]), ("b", FAR[2])], "k string, at timestamp"
    ).coalesce(1)
    weir.append(stream, frame)
    (row,) = weir.query("SELECT path FROM data_file")
    path = Path(weir.settings.warehouse, row.path)
    before = weir.spark.newSession()
    before.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    before.read.parquet(str(path)).coalesce(1).write.parquet(f"{weir.input}/old")
    (written,) = Path(weir.input, "old").glob("*.parquet")
    path.write_bytes(written.read_bytes())
    assert pq.ParquetFile(path).schema.column(1).physical_type == "INT96"
    found = shared(weir.settings).read(str(stream))["at"].to_pylist()
    assert [at.replace(tzinfo=None) for at in found] == [FAR[0], FAR[2]]
