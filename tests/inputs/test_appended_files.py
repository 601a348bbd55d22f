"""Files as people have them are appended whole: names, columns, options, and rows that do not
become events. Tasks of Spark read them with the same code (tests/spark/test_ingest_engines.py)."""

import ast
import gzip
import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.chance import random_for
from tests.inputs.conftest import Files
from tests.raises import raises
from tests.world.columns import column
from weir.arrow.ingest import stage_files
from weir.controller.transactions import Committed
from weir.controller.update import update_stream
from weir.errors import InvalidInput
from weir.inputs.append import FilesOf, append_files
from weir.inputs.files import find_inputs
from weir.kernel.text_options import TextOptions
from weir.model.column_changes import ColumnChanges
from weir.operations.column_settings import renames

NAMES = ["with space", "per%20cent", "häuser", "日本", "star*", "query?", "[1]", "{a,b}", "a#b",
         "a=b", "back\\slash", "quote'\"d", "x+y&z", "new\nline", "day=2024-01-01"]  # fmt: skip
TWO = [
    {"name": "k", "type": "string", "nullable": True, "metadata": {}},
    {"name": "n", "type": "long", "nullable": True, "metadata": {}},
]


@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_files_and_folders_may_have_any_name(files: Files, format_: str) -> None:
    # Some of these names are patterns that fit others: each file must be read once.
    stream, paths = files.create(), list[str]()
    for i, name in enumerate([*NAMES, "starling", "query1", "1", "a"]):
        folder = name.replace("=", "-")  # with it, a folder holds a column
        csv = f"k,n\nx,{2 * i}\ny,{2 * i + 1}\n"
        content = csv if format_ == "csv" else {"k": ["x", "y"], "n": [2 * i, 2 * i + 1]}
        paths.append(files.put(f"{folder}/{name}.{format_}", content))
    assert files.ingest(stream, *paths).events == 2 * len(paths)
    assert [n for _, n in files.events(stream)] == list(range(2 * len(paths)))
    named = files.query("SELECT DISTINCT path FROM transaction_input")
    assert {path for (path,) in named} == set(paths)


@pytest.mark.parametrize(
    "name", ["_weir_seq", "_weir_malformed", "_WEIR_x", "_segment", "_Offset", "_clock",
             "_metadata"],
)  # fmt: skip
def test_reserved_column_names_are_refused_whatever_the_input(files: Files, name: str) -> None:
    stream = files.create()
    for ending, content in (
        ("parquet", {"k": ["a"], name: [1]}), ("csv", f"k,{name}\na,1\n"),
        ("json", json.dumps({"k": "a", name: 1})),
    ):  # fmt: skip
        with raises(f"columns_invalid '{name}'"):
            files.ingest(stream, files.put(f"x.{ending}", content))


def test_a_file_without_a_column_has_nulls_there_and_a_file_with_another_adds_it(
    files: Files,
) -> None:
    stream = files.create()
    files.put("1.parquet", {"k": ["a"], "n": [1]})
    files.put("2.parquet", {"n": [2], "k": ["b"], "x": ["more"]})  # in another order
    files.put("3.parquet", {"k": ["c"]})
    files.ingest(stream, "1.parquet", "2.parquet", "3.parquet")
    assert files.events(stream) == [("a", 1, None), ("b", 2, "more"), ("c", None, None)]
    files.ingest(stream, files.put("4.csv", "y,k\nlate,d\n"))
    files.ingest(stream, files.put("5.json", '{"k": "e", "z": {"q": 1}}\n'))
    assert files.events(stream)[-2:] == [
        ("d", None, None, "late", None), ("e", None, None, None, {"q": 1}),
    ]  # fmt: skip
    assert files.query("SELECT schema_version FROM stream") == [(3,)]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"k": ["a"], "n": ["1"]}, "column_type_differs 'n' string long"),
        ({"k": ["a"], "n": [1.5]}, "column_type_differs 'n' double long"),
        ({"k": ["a"], "N": [1]}, "columns_invalid 'N' 'n' case"),
        ({"x": [1], "y": [2]}, "column_unknown x, y"),
        ({"n": [1]}, "column_missing routing 'k'"),
        (
            {"k": ["a"], "t": pa.array([1], pa.time64("us"))},
            "column_type_unsupported 't' 'x.parquet' timestamp",
        ),
    ],
)
def test_columns_that_do_not_fit_are_refused_by_name_and_nothing_is_left_open(
    files: Files, columns: dict[str, Any], says: str
) -> None:
    stream = files.create(fields=TWO)
    with raises(says):
        files.ingest(stream, files.put("x.parquet", columns))
    assert files.query("SELECT state FROM transaction") == [("aborted",)]
    assert files.events(stream) == []


WHOLE: list[tuple[str, Any, Any]] = [  # a file of whole numbers, and the same with a decimal
    ("csv", "k,n\na,7\nb,-9223372036854775808\n", "k,n\nc,8\nd,1.50\n"),
    ("json", '{"k":"a","n":7}\n{"k":"b","n":-9223372036854775808}\n',
     '{"k":"c","n":8}\n{"k":"d","n":1.50}\n'),
    ("parquet", {"k": ["a", "b"], "n": [7, -(2**63)]},
     {"k": ["c", "d"], "n": pa.array(["8", "1.50"]).cast(pa.decimal128(5, 2))}),
]  # fmt: skip


@pytest.mark.parametrize(("format_", "whole", "decimal"), WHOLE)
def test_a_decimal_in_a_column_of_whole_numbers_is_refused_with_the_way_to_take_it(
    files: Files, format_: str, whole: Any, decimal: Any
) -> None:
    stream = files.create(on_new_column="add")
    files.ingest(stream, files.put(f"1.{format_}", whole))
    second = files.put(f"2.{format_}", decimal)
    with pytest.raises(InvalidInput, match=r"widen_columns='n decimal\(22,2\)'"):
        files.ingest(stream, second)
    widen = ColumnChanges(widen=[column("n", "decimal(22,2)")])
    update_stream(files.database, stream, {}, column_changes=widen, request_id="widen")
    files.ingest(stream, second)
    files.ingest(stream, files.put(f"3.{format_}", whole))  # whole numbers fit as before
    there = [("a", Decimal("7.00")), ("b", Decimal("-9223372036854775808.00"))]
    assert files.events(stream) == [
        *there, ("c", Decimal("8.00")), ("d", Decimal("1.50")), *there
    ]  # fmt: skip


DAYS: list[tuple[str, Any, Any]] = [  # a file of dates, and the same with a time
    ("csv", "k,d\na,2024-01-01\n", "k,d\nb,2024-01-01 02:00:00\n"),
    ("json", '{"k":"a","d":"2024-01-01"}', '{"k":"b","d":"2024-01-01 02:00:00"}'),
    ("parquet", {"k": ["a"], "d": [date(2024, 1, 1)]},
     {"k": ["b"], "d": [datetime(2024, 1, 1, 2)]}),
]  # fmt: skip


@pytest.mark.parametrize(("format_", "days", "times"), DAYS)
def test_dates_fit_a_column_of_dates_that_has_times_now(
    files: Files, format_: str, days: Any, times: Any
) -> None:
    stream = files.create(fields=[column("k", "string"), column("d", "date")])
    files.ingest(stream, files.put(f"1.{format_}", days))
    second = files.put(f"2.{format_}", times)
    with pytest.raises(InvalidInput) as refused:
        files.ingest(stream, second)
    assert format_ != "parquet" or "widen_columns='d timestamp_ntz'" in str(refused.value)
    widen = ColumnChanges(widen=[column("d", "timestamp_ntz")])
    update_stream(files.database, stream, {}, column_changes=widen, request_id="widen")
    files.ingest(stream, second)
    files.ingest(stream, files.put(f"3.{format_}", days))
    day = ("a", datetime(2024, 1, 1))
    assert files.events(stream) == [day, ("b", datetime(2024, 1, 1, 2)), day]


RENAMED: list[tuple[str, Any]] = [
    ("csv", "key,n,x\na,7,1.5\nb,seven,2.5\n"),
    ("json", '{"key":"a","n":7,"x":1.5}\n{"key":"b","n":"seven","x":2.5}\n'),
    ("parquet", {"key": ["a"], "n": [7], "x": [1.5]}),
]


@pytest.mark.parametrize(("format_", "content"), RENAMED)
def test_a_file_says_which_of_its_columns_the_stream_calls_otherwise(
    files: Files, format_: str, content: Any
) -> None:
    fields = [column("k", "string"), column("x", "long"), column("n", "double")]
    stream = files.create(fields=fields, on_bad_rows="quarantine")
    path, rename = files.put(f"1.{format_}", content), {"key": "k", "n": "x", "x": "n"}
    first = files.ingest(stream, path, rename=rename)
    assert files.events(stream) == [("a", 7, 1.5)]
    if first.rejected:  # in the words of the stream, except the row itself
        assert files.rejected(stream, "column", "text") == [("x", "seven")]
    again = files.ingest(stream, path, rename=dict(reversed(rename.items())))
    assert again.transaction_number == first.transaction_number, "the same names are the same file"
    with raises("input_changed"):
        files.ingest(stream, path, rename={"key": "k"})


@pytest.mark.parametrize(
    ("rename", "options", "says"),
    [
        ({"key": "k", "m": "n"}, {}, "column_unknown 'm' key, n"),
        ({"key": "k", "n": "N"}, {}, "column_unknown 'n' 'N' k, n"),
        ({"key": "n"}, {}, "columns_invalid 'key' 'n' 'n'"),
        ({"key": "k", "n": "K"}, {}, "argument_invalid two 'k'"),
        ({"key": "k"}, {"header": False}, "arguments_conflict header"),
        ({"ke\u0301y": "k"}, {}, "column_unknown 'ke\u0301y' key, n"),
    ],
)
def test_names_that_the_file_or_the_stream_lacks_or_that_are_given_twice_are_refused(
    files: Files, rename: dict[str, str], options: dict[str, Any], says: str
) -> None:
    stream = files.create(fields=TWO)
    with raises(says):
        files.ingest(stream, files.put("1.csv", "key,n\na,1\n"), rename=rename, **options)
    assert files.events(stream) == []


# A file of which one column is called otherwise, or nearly so, settings of its stream, and what is
# said of it.
OTHERWISE: list[tuple[str, dict[str, Any], str]] = [
    ("k,temp_max\na,1\n", {}, "column_unknown 'temp_max' temp_max -> tmax"),
    ("id,tmax\na,1\n", {"on_new_column": "add"}, "column_missing 'k' id -> k"),
    ("k,at\na,1\n", {"on_new_column": "add", "event_time": "tmax"}, "column_missing at -> tmax"),
    ("k,TMAX\na,1\n", {}, "columns_invalid case TMAX -> tmax"),
    ("k, tmax\na,1\n", {}, "column_unknown ` tmax` -> tmax"),
    ("id,temp\na,1\n", {}, "column_unknown id -> COLUMN"),
    ("k,tma\u0301x\na,1\n", {}, "column_unknown tma\u0301x` -> tmax"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "options", "says"), OTHERWISE)
def test_a_file_with_other_names_is_refused_with_the_way_to_say_what_they_are(
    files: Files, content: str, options: dict[str, Any], says: str
) -> None:
    stream = files.create(fields=[column("k", "string"), column("tmax", "double")], **options)
    path = files.put("1.csv", content)
    with raises(says) as refused:
        files.ingest(stream, path)
    [said] = re.findall(r"otherwise, pass rename=(\[.*?\])", str(refused.value))
    if "COLUMN" not in said:
        files.ingest(stream, path, rename=renames(ast.literal_eval(said)))
        assert files.events(stream) == [("a", 1.0)]


def test_names_that_only_look_alike_are_told_apart(files: Files) -> None:
    whole, parts = "\u00e9t\u00e9", "e\u0301te\u0301"
    stream = files.create(fields=[column("k", "string"), column(whole, "double")])
    path = files.put("1.csv", f"k,{parts}\na,1\n")
    for rename, says in (
        ({}, r"'e\u0301te\u0301' only looks like '\xe9t\xe9'"),
        ({whole: whole}, r"'\xe9t\xe9' only looks like 'e\u0301te\u0301'"),
        ({parts: parts}, r"'e\u0301te\u0301' only looks like '\xe9t\xe9'"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(says)):
            files.ingest(stream, path, rename=rename)
    files.ingest(stream, path, rename={parts: whole})
    assert files.events(stream) == [("a", 1.0)]


def test_files_of_which_only_some_have_a_new_name_are_appended_separately(files: Files) -> None:
    stream = files.create(fields=TWO)
    paths = [files.put("1.json", '{"key":"a","n":1}'), files.put("2.json", '{"k":"b","n":2}')]
    with raises("columns_invalid 'k' 'key' separately"):
        files.ingest(stream, *paths, rename={"key": "k"})
    files.ingest(stream, paths[0], rename={"key": "k"})
    files.ingest(stream, paths[1])
    assert files.events(stream) == [("a", 1), ("b", 2)]


# The files, how they are written, and what is said of them.
REFUSED: list[tuple[list[str], dict[str, Any], str]] = [
    (["k,b\n1,2\n", "k,c\n1,2\n"], {}, "file_invalid '1.csv' (k, c) headers"),
    (["k,b\n1,2\n", ""], {}, "file_invalid file '1.csv'"),
    (["k,b,k\n1,2,3\n"], {}, "columns_invalid 'k' twice"),
    (["k,b,K\n1,2,3\n"], {}, "columns_invalid twice"),
    (["k\nä\n"], {"encoding": "ascii"}, "file_invalid '0.csv' US-ASCII file"),
    (["d,4,5\n"], {"header": False}, "column_unknown '0.csv' 3 2"),
]


@pytest.mark.parametrize(("texts", "options", "says"), REFUSED)
def test_csv_files_that_do_not_say_their_columns_are_refused(
    files: Files, texts: list[str], options: dict[str, Any], says: str
) -> None:
    if options.get("header", True):
        stream = files.create()
    else:
        two = [{**one, "name": f"_c{i}"} for i, one in enumerate(TWO)]
        stream = files.create(key="_c0", fields=two)
    paths = [files.put(f"{i}.csv", content) for i, content in enumerate(texts)]
    with raises(says):
        files.ingest(stream, *paths, **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"encoding": "utf-7"}, "argument_invalid encoding 'utf-7' windows-1252"),
        ({"decimal": ";"}, "argument_invalid decimal ';'"),
        ({"decimal": ",", "thousands": ","}, "argument_invalid decimal thousands ','"),
        ({"separator": "#", "comment": "#"}, "argument_invalid separator comment '#'"),
        ({"quote": "''"}, "argument_invalid quote"),
        ({"time_zone": "Berlin"}, "argument_invalid 'Berlin' Europe/Berlin"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(options: dict[str, str], says: str) -> None:
    with raises(says):
        TextOptions(**options)  # type: ignore[arg-type]


def test_csv_is_read_as_it_is_commonly_written(files: Files) -> None:
    stream = files.create()
    content = (
        '\ufeffk;n;at;note\r\na;1;2024-03-01 10:00:00;"say ""hi""; all"\r\nc;NA;NA;"ends in \\"\r\n'
    )
    files.put("plain.csv", content)
    files.put("packed.csv.gz", gzip.compress(content.encode()))
    files.ingest(stream, "plain.csv", "packed.csv.gz", separator=";", null_value="NA")
    at = datetime(2024, 3, 1, 10, tzinfo=UTC)
    once = [("a", 1, at, 'say "hi"; all'), ("c", None, None, "ends in \\")]
    assert files.events(stream) == once * 2


def test_csv_may_be_separated_by_tabs_and_have_columns_without_a_name(files: Files) -> None:
    stream, one = files.create(), files.put("one.tsv", "\tk\tn\n0\ta\t1\n")
    files.ingest(stream, one, separator="\\t")
    files.ingest(stream, one, again="its name shows the tabs", separator=",")
    assert files.table(stream).to_pydict() == {"_c0": [0, 0], "k": ["a", "a"], "n": [1, 1]}


def test_a_column_that_is_left_open_gets_its_type_when_a_value_comes(files: Files) -> None:
    stream = files.create()
    files.ingest(stream, files.put("1.csv", "k,n,later,never\na,1,,\n"))
    assert files.table(stream).column_names == ["k", "n"]
    assert any("later: left open" in line for line in files.said)
    files.ingest(stream, files.put("2.csv", "k,n,later,never\nd,2,7,\n"))
    files.ingest(stream, files.put("3.json", '{"k":"e","later":null,"never":null}\n'))
    assert files.events(stream) == [("a", 1, None), ("d", 2, 7), ("e", None, None)]


@pytest.mark.parametrize("known", [False, True])
def test_files_without_rows_are_appends_of_nothing(files: Files, known: bool) -> None:
    stream = files.create()
    if known:
        files.ingest(stream, files.put("a.parquet", {"k": ["a"], "n": [1]}))
    empty = {"k": pa.array([], pa.string()), "n": pa.array([], pa.int64())}
    # The types of an empty text file are not known by themselves: it fixes none.
    done = [files.ingest(stream, files.put(name, content)) for name, content in (
        ("first.csv", "k,n\n"), ("e.parquet", empty), ("e.csv", "k,n\n"))]  # fmt: skip
    assert [(one.events, one.files) for one in done] == [(0, 0)] * 3
    assert files.table(stream).to_pydict() == {"k": ["a"] * known, "n": [1] * known}


def test_same_files_again_append_nothing_and_changed_or_overlapping_ones_are_refused(
    files: Files,
) -> None:
    stream = files.create()
    files.put("1.parquet", {"k": ["a"], "n": [1]})
    files.put("2.parquet", {"k": ["b"], "n": [2]})
    first = files.ingest(stream, "1.parquet", "2.parquet")
    again = files.ingest(stream, "1.parquet", "2.parquet")
    assert (again.repeated, again.events, again.clock) == (True, 2, first.clock)
    with raises("file_already_appended '2.parquet' s/events"):
        files.ingest(stream, "2.parquet")
    assert isinstance(files.ingest(stream, "2.parquet", again="on purpose"), Committed)
    files.put("1.parquet", {"k": ["a", "c"], "n": [1, 3]})
    with raises("input_changed"):
        files.ingest(stream, "1.parquet", "2.parquet")
    assert [n for _, n in files.events(stream)] == [1, 2, 2]


def test_a_file_that_is_still_being_written_is_appended_once_it_is_whole(files: Files) -> None:
    stream = files.create()
    files.put("growing.csv", "k,n\na,1\n")
    inputs = find_inputs(["growing.csv"], files.settings.input_roots, "csv", TextOptions())
    files.put("growing.csv", "k,n\na,1\nb,2\n")
    with raises("file_unreadable growing.csv append"):
        append_files(files.app, FilesOf(stream, inputs), lambda i, a: stage_files(files.app, i, a))
    assert files.query("SELECT state FROM transaction") == [("aborted",)]
    assert files.ingest(stream, "growing.csv").events == 2


def test_values_of_later_files_are_kept_or_named_with_column_text_and_type(files: Files) -> None:
    first = "k,n,v,p,at,flag\na,90210,3.9,1.50,2026-01-01 00:00:00,true\n"
    stream = files.create(on_bad_rows="quarantine")
    files.ingest(stream, files.put("first.csv", first))
    wrong = [("n", "00501", "long"), ("n", " 5", "long"), ("n", "1e3", "long"),
             ("v", "3.10", "double"), ("v", "1e400", "double"), ("p", "1.5", "decimal(18,2)"),
             ("at", "08:15", "timestamp"), ("flag", "TRUE", "boolean")]  # fmt: skip
    good = {"k": "x", "n": "1", "v": "0.5", "p": "2.00", "at": "2026-01-02 00:00:00", "flag": ""}
    rows = [",".join({**good, column: text}.values()) for column, text, _ in wrong]
    files.put("2.csv", "\n".join(["k,n,v,p,at,flag", ",".join(good.values()), *rows]) + "\n")
    done = files.ingest(stream, "2.csv")
    assert (done.events, done.rejected) == (1, len(wrong))
    assert files.rejected(stream, "column", "text", "type", "row", "source", "place") == [
        (*one, row, "2.csv", place)
        for place, (one, row) in enumerate(zip(wrong, rows, strict=True), start=1)
    ]
    strict = files.create("s/strict")
    files.ingest(strict, "first.csv", again="strict")
    with raises("bad_rows 8 '2.csv' 2 column 'n' '00501' long become 501 on_bad_rows"):
        files.ingest(strict, "2.csv", again="strict")


def test_rows_of_text_files_are_events_or_rejected_and_none_is_lost(files: Files) -> None:
    made, lines, good = random_for("rows"), list[str](), list[int]()
    bad, keyless = 0, 0
    for n in range(3_000):
        kind = made.random()
        if kind < 0.7:
            lines.append(json.dumps({"k": f"key {made.randrange(9)}", "n": n}))
            good.append(n)
        elif kind < 0.8:
            lines.append(json.dumps({"n": n}))
            keyless += 1
        else:
            lines.append('{"k": "x", "n": "not a number"}' if kind < 0.9 else '{"k": "x", "n": ')
            bad += 1
    paths = [files.put(f"{i}.json", "\n".join(lines[i * 1000 :][:1000])) for i in (2, 0, 1)]
    stream = files.create(
        on_missing_key="quarantine", on_bad_rows="quarantine", segments=5, fields=TWO
    )
    done = files.ingest(stream, *paths)
    assert (done.events, done.rejected) == (len(good), bad + keyless)
    assert sorted(n for _, n in files.events(stream)) == good
    rejected = files.rejected(stream, "reason", "source")
    assert [reason for reason, _ in rejected].count("missing routing key") == keyless
    assert list(dict.fromkeys(source for _, source in rejected)) == paths
    assert files.query("SELECT FROM garbage WHERE reason = 'rejected'")  # as they lay beside


def test_rows_of_both_kinds_follow_a_policy_each_and_are_refused_at_once(files: Files) -> None:
    rows = files.put("rows.csv", "k,n\na,1\nb,two\n,3\nc,4,5\nd,6\n")
    stream = files.create(fields=TWO)
    with raises("bad_rows 2 fit two and 1 routing key on_bad_rows quarantine on_missing_key"):
        files.ingest(stream, rows)
    assert files.query("SELECT state FROM transaction") == [("aborted",)]
    spread = files.create("s/spread", fields=TWO, on_missing_key="spread")
    with raises("bad_rows 2 schema s/spread update_stream on_bad_rows"):
        files.ingest(spread, rows)  # a malformed row has no key, but is none to spread
    kept = files.create("s/kept", fields=TWO, on_missing_key="quarantine", on_bad_rows="quarantine")
    done = files.ingest(kept, rows)
    assert (done.events, done.rejected) == (2, 3)
    assert files.events(kept) == [("a", 1), ("d", 6)]
    assert files.rejected(kept, "row", "reason", "place") == [
        ("b,two", "does not fit the schema", 1),
        ('{"k":null,"n":3}', "missing routing key", 2),
        ("c,4,5", "does not fit the schema", 3),
    ]


def test_a_value_in_a_column_without_a_type_is_named_with_its_reason(files: Files) -> None:
    rows = pa.table({"k": ["a", "b"], "tags": pa.array([None, []], pa.list_(pa.null()))})
    with raises("bad_rows 1 column 'tags' '[]' declare row"):
        files.ingest(files.create(), files.put("open.parquet", rows))


def test_files_of_one_append_must_agree_in_their_types(files: Files) -> None:
    files.put("1.parquet", {"k": ["a"], "n": [1]})
    files.put("2.parquet", {"k": ["a"], "n": ["1"]})
    with raises("column_type_differs 'n' string '2.parquet' long '1.parquet'") as refused:
        files.ingest(files.create(), "1.parquet", "2.parquet")
    assert isinstance(refused.value, InvalidInput)
