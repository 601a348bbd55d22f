"""Parquet, csv and json files as people have them: names, columns, types, and what is not there."""

import datetime as dt
import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raises import raises
from tests.spark.installation import PLACE, Installation
from weir.controller.transactions import Committed
from weir.inputs.files import find_inputs
from weir.kernel.text_options import TextOptions
from weir.model.names import StreamName

NAMES = ["with space", "per%20cent", "häuser", "日本", "star*", "query?", "[1]", "{a,b}", "a#b",
         "a=b", "back\\slash", "quote'\"d", "x+y&z", "new\nline", "day=2024-01-01"]  # fmt: skip


def parquet(weir: Installation, name: str, **columns: Any) -> str:
    """A Parquet file below the input root."""
    path = Path(weir.input) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return name


def text(weir: Installation, name: str, content: str) -> str:
    """A text file below the input root."""
    (Path(weir.input) / name).write_text(content)
    return name


def events(weir: Installation, stream: StreamName) -> list[tuple[Any, ...]]:
    """What the stream holds, in write order, without the places."""
    frame = weir.frame(stream, "stream").drop(*PLACE)
    return [tuple(row) for row in frame.collect()]


@pytest.mark.release
@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_files_and_folders_may_have_any_name(weir: Installation, format_: str) -> None:
    # Some of these names are patterns that fit others: each file must be read once.
    stream = weir.create(segments=2)
    paths = []
    for i, name in enumerate([*NAMES, "starling", "query1", "1", "a"]):
        folder = name.replace("=", "-")  # with it, a folder holds a column
        paths.append(f"{folder}/{name}.{format_}")
        (Path(weir.input) / folder).mkdir(exist_ok=True)
        if format_ == "parquet":
            parquet(weir, paths[-1], k=["x", "y"], n=[2 * i, 2 * i + 1])
        else:
            text(weir, paths[-1], f"k,n\nx,{2 * i}\ny,{2 * i + 1}\n")
    single = weir.ingest(stream, paths[:1], format_)
    assert single.events == 2
    many = weir.ingest(stream, paths[1:], format_)
    assert many.events == 2 * (len(paths) - 1)
    for one in (4, 5, 6, 7):  # alone, too: one file is read in another way than many
        again = weir.create(f"s/alone{one}")
        assert weir.ingest(again, [paths[one]], format_).events == 2
    assert [n for _, n in events(weir, stream)] == list(range(2 * len(paths)))
    assert {row.path for row in weir.query("SELECT DISTINCT path FROM transaction_input")} == set(
        paths
    )


@pytest.mark.release
def test_columns_may_have_any_name(weir: Installation) -> None:
    names = ["a.b", "with space", "back`tick", "UPPER", "Straße", "a,b;c{}()=", "select", "x\ny",
             "quote\"'d", "metadata", "segment"]  # fmt: skip
    stream = weir.create(key="`a.b`", segments=3)
    columns = {name: [f"{name} {i}" for i in range(5)] for name in names}
    weir.ingest(stream, [parquet(weir, "one.parquet", **columns)])
    weir.append(stream, weir.spark.createDataFrame([tuple(f"{n} 5" for n in names)], names))
    facts = weir.check(stream, key="a.b", read=True)
    assert facts[names].to_numpy().tolist() == [
        [f"{name} {int(v.rsplit(' ', 1)[1])}" for name in names] for v in facts["a.b"]
    ]
    header = ["a.b", "UPPER", "back`tick", "with space"]
    again = weir.create("s/csv", key="`a.b`")
    text(weir, "one.csv", ",".join(header) + "\n1,2,3,4\n")
    for _ in range(2):  # with the columns unknown, then known
        weir.ingest(again, ["one.csv"], "csv", again=f"{_}")
    assert weir.frame(again).columns == [*header, *PLACE]
    assert events(weir, again) == [(1, 2, 3, 4)] * 2


@pytest.mark.release
@pytest.mark.parametrize(
    "name", ["_weir_seq", "_weir_malformed", "_WEIR_x", "_segment", "_Offset", "_clock",
             "_metadata"],
)  # fmt: skip
def test_reserved_column_names_are_refused_whatever_the_input(
    weir: Installation, name: str
) -> None:
    stream = weir.create()
    wanted = f"column_name_reserved '{name}'"
    with raises(wanted):
        weir.ingest(stream, [parquet(weir, "x.parquet", **{"k": ["a"], name: [1]})])
    with raises(wanted):
        weir.ingest(stream, [text(weir, "x.csv", f"k,{name}\na,1\n")], "csv")
    with raises(wanted):
        weir.ingest(stream, [text(weir, "x.json", json.dumps({"k": "a", name: 1}))], "json")
    with raises(wanted):
        weir.append(stream, weir.spark.createDataFrame([("a", 1)], ["k", name]))
    assert weir.frame(stream).columns == PLACE


def test_types_come_back_as_they_went_in(weir: Installation) -> None:
    row = {
        "k": "a", "i": 7, "f": 1.5, "b": True, "raw": b"\x00\xff", "nothing": None,
        "day": dt.date(2024, 2, 29), "amount": Decimal("12345678901234567890.12"),
        "at": dt.datetime(2024, 2, 29, 12, 30, 0, 123456),
        "nested": {"x": [1, 2], "y": {"z": "deep"}}, "names": {"key": 1}, "list": [["p"], []],
    }  # fmt: skip
    types = {
        "k": pa.string(), "i": pa.int16(), "f": pa.float32(), "b": pa.bool_(), "raw": pa.binary(),
        "nothing": pa.int64(), "day": pa.date32(), "amount": pa.decimal128(22, 2),
        "at": pa.timestamp("us"),
        "nested": pa.struct({"x": pa.list_(pa.int64()), "y": pa.struct({"z": pa.string()})}),
        "names": pa.map_(pa.string(), pa.int32()), "list": pa.list_(pa.list_(pa.string())),
    }  # fmt: skip
    table = pa.table({name: pa.array([row[name]], kind) for name, kind in types.items()})
    pq.write_table(table, Path(weir.input) / "types.parquet")
    stream = weir.create()
    weir.ingest(stream, ["types.parquet"])
    weir.append(stream, weir.spark.read.parquet(f"{weir.input}/types.parquet"))
    for order in ("segment", "stream", "none"):
        for found in weir.frame(stream, order).drop(*PLACE).collect():
            assert found.asDict(recursive=True) == row


@pytest.mark.release
def test_columns_of_types_that_spark_cannot_write_are_refused_by_name(weir: Installation) -> None:
    stream = weir.create()
    for value, kind in (("TIME '10:00:00'", "time(6)"), ("make_interval(1)", "interval")):
        for column in (value, f"array({value})"):
            frame = weir.spark.range(1).selectExpr("'a' AS k", f"{column} AS z")
            with raises(f"column_type_unsupported 'z' {kind} string"):
                weir.append(stream, frame)


@pytest.mark.release
def test_routing_key_may_be_nested_and_rank_is_found_beside_nested_columns(
    weir: Installation,
) -> None:
    # A field inside a struct may be called anything, even what Weir calls its own column.
    stream = weir.create(key="who.name", segments=4)
    rows = weir.spark.range(100).selectExpr(
        "named_struct('_weir_seq', -id, 'name', concat('key ', id % 9)) AS who", "id AS n"
    )
    weir.append(stream, rows.repartition(3))
    facts = weir.facts(stream)
    assert sorted(facts["n"]) == list(range(100))
    assert (facts.groupby("_segment")["_weir_seq"].diff().dropna() > 0).all()


def test_file_without_a_column_has_nulls_there_and_a_file_with_another_adds_it(
    weir: Installation,
) -> None:
    stream = weir.create()
    parquet(weir, "1.parquet", k=["a"], n=[1])
    parquet(weir, "2.parquet", n=[2], k=["b"], x=["more"])  # in another order
    parquet(weir, "3.parquet", k=["c"])
    weir.ingest(stream, ["1.parquet", "2.parquet", "3.parquet"])
    assert events(weir, stream) == [("a", 1, None), ("b", 2, "more"), ("c", None, None)]
    weir.ingest(stream, [text(weir, "4.csv", "y,k\nlate,d\n")], "csv")
    weir.ingest(stream, [text(weir, "5.json", '{"k": "e", "z": {"q": 1}}\n')], "json")
    assert events(weir, stream)[-2:] == [
        ("d", None, None, "late", None), ("e", None, None, None, (1,)),
    ]  # fmt: skip
    assert weir.value("SELECT schema_version FROM stream") == 3


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"k": ["a"], "n": ["1"]}, "column_type_differs 'n' string long"),
        ({"k": ["a"], "n": [1.5]}, "column_type_differs 'n' double long"),
        ({"k": ["a"], "N": [1]}, "column_case_differs 'N' 'n'"),
        ({"x": [1], "y": [2]}, "columns_unknown x, y"),
        ({"n": [1]}, "routing_key_column_missing 'k'"),
        (
            {"k": ["a"], "t": pa.array([1], pa.time64("us"))},
            "column_type_unsupported 't' 'x.parquet' timestamp",
        ),
    ],
)
def test_columns_that_do_not_fit_are_refused_by_name_and_nothing_is_left_open(
    weir: Installation, columns: dict[str, Any], says: str
) -> None:
    stream = weir.create()
    weir.append(stream, [("a", 1)])
    with raises(says):
        weir.ingest(stream, [parquet(weir, "x.parquet", **columns)])
    assert weir.query("SELECT state FROM transaction ORDER BY 1") == [("aborted",), ("committed",)]
    assert len(weir.check(stream, read=True)) == 1


@pytest.mark.release
def test_files_of_one_append_must_agree_in_their_types(weir: Installation) -> None:
    stream = weir.create()
    parquet(weir, "1.parquet", k=["a"], n=[1])
    parquet(weir, "2.parquet", k=["a"], n=["1"])
    with raises("column_type_differs 'n' string '2.parquet' long '1.parquet'"):
        weir.ingest(stream, ["1.parquet", "2.parquet"])


@pytest.mark.release
@pytest.mark.parametrize(
    ("files", "says"),
    [
        (["a,b\n1,2\n", "a,c\n1,2\n"], "headers_differ '1.csv' (a, c)"),
        (["a,b\n1,2\n", ""], "header_missing '1.csv'"),
        (["a,b,a\n1,2,3\n"], "column_named_twice 'a'"),
        (["a,b,A\n1,2,3\n"], "column_named_twice"),
    ],
)
def test_csv_files_without_one_proper_header_are_refused(
    weir: Installation, files: list[str], says: str
) -> None:
    stream = weir.create(key="a")
    paths = [text(weir, f"{i}.csv", content) for i, content in enumerate(files)]
    with raises(says):
        weir.ingest(stream, paths, "csv")


@pytest.mark.release
def test_csv_is_read_as_it_is_commonly_written(weir: Installation) -> None:
    stream = weir.create()
    content = (
        "\ufeffk;n;at;note\r\n"
        'a;1;2024-03-01 10:00:00;"say ""hi""; all"\r\n'
        "b;NA;2024-03-01 11:00:00;back\\slash\r\n"
        'c;3;NA;"ends in \\"\r\n'
    )
    text(weir, "plain.csv", content)
    with gzip.open(Path(weir.input) / "packed.csv.gz", "wt", newline="") as file:
        file.write(content)
    weir.ingest(stream, ["plain.csv", "packed.csv.gz"], "csv", separator=";", null_value="NA")
    at = dt.datetime(2024, 3, 1, 10)
    hour = dt.timedelta(hours=1)
    once = [("a", 1, at, 'say "hi"; all'), ("b", None, at + hour, "back\\slash"),
            ("c", 3, None, "ends in \\")]  # fmt: skip
    assert events(weir, stream) == once * 2


@pytest.mark.release
def test_csv_may_be_separated_by_tabs_and_have_columns_without_a_name(weir: Installation) -> None:
    stream = weir.create()
    text(weir, "one.tsv", "\tk\tn\n0\ta\t1\n")
    for again in ("1", "2"):
        weir.ingest(stream, ["one.tsv"], "csv", again, separator="\\t")
    weir.ingest(stream, ["one.tsv"], "auto", "its name shows the tabs", separator=",")
    assert weir.frame(stream).columns == ["_c0", "k", "n", *PLACE]
    assert events(weir, stream) == [(0, "a", 1)] * 3


@pytest.mark.release
def test_times_without_a_zone_mean_utc_in_text_files(weir: Installation) -> None:
    stream = weir.create()
    text(weir, "one.csv", "k,at\na,2024-03-01 10:00:00\n")
    weir.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        weir.ingest(stream, ["one.csv"], "csv")
    finally:
        weir.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert events(weir, stream) == [("a", dt.datetime(2024, 3, 1, 10))]


@pytest.mark.release
@pytest.mark.parametrize("known", [False, True])
def test_files_and_frames_without_rows_are_appends_of_nothing(
    weir: Installation, known: bool
) -> None:
    stream = weir.create(segments=2)
    if known:
        weir.append(stream, [("a", 1)])
    empty = {"k": pa.array([], pa.string()), "n": pa.array([], pa.int64())}
    (Path(weir.input) / "e.parquet").parent.mkdir(exist_ok=True)
    # The types of an empty text file are not known by themselves: it fixes none.
    done = [weir.ingest(stream, [text(weir, "first.csv", "k,n\n")], "csv")]
    done.append(weir.ingest(stream, [parquet(weir, "e.parquet", **empty)]))
    done.append(weir.ingest(stream, [text(weir, "e.csv", "k,n\n")], "csv"))
    done.append(weir.append(stream, []))
    done.append(weir.append(stream, weir.spark.range(9).selectExpr("'x' k", "id n").where("n < 0")))
    assert [one.events for one in done] == [0] * len(done)
    assert [one.files for one in done] == [0] * len(done)
    assert len(weir.check(stream, read=True)) == int(known)
    assert weir.frame(stream).columns == ["k", "n", *PLACE]
    weir.append(stream, [("b", 2)])
    assert len(weir.check(stream, read=True)) == 1 + known


def test_same_files_again_append_nothing_and_changed_or_overlapping_ones_are_refused(
    weir: Installation,
) -> None:
    stream = weir.create()
    parquet(weir, "1.parquet", k=["a"], n=[1])
    parquet(weir, "2.parquet", k=["b"], n=[2])
    first = weir.ingest(stream, ["1.parquet", "2.parquet"])
    again = weir.ingest(stream, ["1.parquet", "2.parquet"])
    assert (again.repeated, again.events, again.clock) == (True, 2, first.clock)
    with raises("file_already_appended '2.parquet' s/events"):
        weir.ingest(stream, ["2.parquet"])
    assert isinstance(weir.ingest(stream, ["2.parquet"], again="on purpose"), Committed)
    parquet(weir, "1.parquet", k=["a", "c"], n=[1, 3])
    with raises("input_changed"):
        weir.ingest(stream, ["1.parquet", "2.parquet"])
    assert [n for _, n in events(weir, stream)] == [1, 2, 2]


@pytest.mark.release
def test_routing_key_that_spark_cannot_compute_is_refused_in_one_sentence(
    weir: Installation,
) -> None:
    stream = weir.create(key="n.part")
    with raises("expression_not_computable s/events 'n.part'") as refused:
        weir.append(stream, [("a", 1)])
    assert "\n" not in str(refused.value)


@pytest.mark.release
def test_a_file_that_is_still_being_written_is_appended_once_it_is_whole(
    weir: Installation,
) -> None:
    stream, file = weir.create(), Path(weir.input) / "growing.csv"
    file.write_text("k,n\na,1\n")
    inputs = find_inputs(["growing.csv"], weir.settings.input_roots, "csv", TextOptions())
    with file.open("a") as more:
        more.write("b,2\n")
    with raises("input_in_motion growing.csv"):
        weir.appender.append_files(stream, inputs)
    assert weir.query("SELECT state FROM transaction") == [("aborted",)]
    assert weir.ingest(stream, ["growing.csv"], "csv").events == 2
