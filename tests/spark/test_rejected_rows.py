"""Rows that do not become events: rows in = events + rejected rows, whatever the policy."""

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chance import random_for
from tests.raises import raises
from tests.spark.installation import Installation
from weir.model.names import StreamName


def _keys(weir: Installation, name: str, keys: list[str | None]) -> str:
    pq.write_table(pa.table({"k": keys, "n": range(len(keys))}), f"{weir.input}/{name}")
    return name


def _rejected(weir: Installation, stream: StreamName) -> pd.DataFrame:
    return weir.read(stream.rejected).sort_values("place", ignore_index=True)


@pytest.mark.release
def test_rows_without_a_key_are_refused_with_count_and_example_and_nothing_is_left(
    weir: Installation,
) -> None:
    stream = weir.create()
    path = _keys(weir, "some.parquet", ["a", None, "b", None])
    with raises('bad_rows 2 key row 2 "n":1 update_stream on_missing_key'):
        weir.ingest(stream, [path])
    assert weir.read(stream).empty
    assert weir.value("SELECT state FROM transactions") == "aborted"
    assert weir.value("SELECT count(*) FROM garbage WHERE reason = 'aborted'") == 1


@pytest.mark.release
def test_spread_keeps_every_row(weir: Installation) -> None:
    stream = weir.create(on_missing_key="spread")
    done = weir.ingest(stream, [_keys(weir, "f.parquet", [None, "a", None, None, "b"] * 20)])
    assert (done.events, done.rejected) == (100, 0)
    read = weir.read(stream)
    assert sorted(read["n"]) == list(range(100))
    assert read[read["k"].isna()]["_segment"].nunique() > 1


def test_quarantine_keeps_the_row_its_source_its_place_and_the_reason(weir: Installation) -> None:
    stream = weir.create(on_missing_key="quarantine")
    first = _keys(weir, "b.parquet", ["x", None, "y"])
    second = _keys(weir, "a.parquet", [None, "z"])
    done = weir.ingest(stream, [first, second])
    assert (done.events, done.rejected) == (3, 2)
    rejected = _rejected(weir, stream)
    assert list(zip(rejected["source"], rejected["place"], strict=True)) == [
        ("a.parquet", 0),
        ("b.parquet", 1),
    ]
    assert list(rejected["row"]) == ['{"k":null,"n":0}', '{"k":null,"n":1}']
    assert set(rejected["reason"]) == {"missing routing key"}
    clocks = weir.query("SELECT count(*) FROM transactions WHERE state = 'committed'")
    assert clocks[0][0] == 2
    again = weir.ingest(stream, [first, second])
    assert again.repeated
    assert len(_rejected(weir, stream)) == 2


def test_malformed_csv_rows_follow_their_own_policy(weir: Installation) -> None:
    text = "k,n\na,1\nb,two\n,3\nc,4,5\nd,6\n"
    Path(weir.input, "rows.csv").write_text(text)
    options = {"separator": ",", "null_value": ""}
    columns = [
        {"name": "k", "type": "string", "nullable": True, "metadata": {}},
        {"name": "n", "type": "long", "nullable": True, "metadata": {}},
    ]
    strict = weir.create("s/strict", on_missing_key="spread", fields=columns)
    with raises("bad_rows 2 schema s/strict update_stream on_bad_rows"):
        weir.ingest(strict, ["rows.csv"], "csv", **options)
    assert weir.read(strict).empty
    stream = weir.create(
        "s/kept", on_missing_key="quarantine", on_bad_rows="quarantine", fields=columns
    )
    done = weir.ingest(stream, ["rows.csv"], "csv", **options)
    assert (done.events, done.rejected) == (2, 3)
    assert sorted(weir.read(stream)["n"]) == [1, 6]
    rejected = _rejected(weir, stream)
    assert sorted(rejected["reason"]) == ["does not fit the schema"] * 2 + ["missing routing key"]
    assert {"b,two", "c,4,5"} < set(rejected["row"])


@pytest.mark.release
def test_rejected_rows_of_a_dataframe_name_who_appended_it(weir: Installation) -> None:
    stream = weir.create(on_missing_key="quarantine")
    done = weir.append(stream, [("a", 1), (None, 2)])
    assert (done.events, done.rejected) == (1, 1)
    assert list(_rejected(weir, stream)["source"]) == ["test"]


@pytest.mark.release
def test_example_of_a_row_of_a_dataframe_names_its_place_in_its_partition(
    weir: Installation,
) -> None:
    stream = weir.create()
    frame = weir.spark.range(10).selectExpr("IF(id = 7, NULL, 'a') AS k", "id AS n")
    with raises('bad_rows 1 key (row 3: {"k":null,"n":7})'):
        weir.append(stream, frame.repartitionByRange(2, "n"))


@pytest.mark.release
def test_empty_text_is_a_key_and_a_key_that_becomes_null_is_none(weir: Installation) -> None:
    stream = weir.create(key="concat(k, n)", on_missing_key="quarantine")
    done = weir.append(stream, [("", 1), ("none", None), (None, 3), ("some", 4)])
    assert (done.events, done.rejected) == (2, 2)
    assert sorted(weir.read(stream)["n"]) == [1, 4]


@pytest.mark.release
def test_all_rows_may_be_rejected_and_later_ones_follow_in_the_same_stream(
    weir: Installation,
) -> None:
    stream = weir.create(on_missing_key="quarantine", segments=3)
    assert weir.append(stream, [(None, n) for n in range(5)]).rejected == 5
    assert weir.append(stream, [(None, n) for n in range(5, 8)]).events == 0
    assert weir.check(stream).empty
    rejected = weir.check(stream.rejected, key=None, read=True)
    assert [row.split(":")[2] for row in rejected["row"]] == [f"{n}}}" for n in range(8)]


def test_rows_of_text_files_are_events_or_rejected_and_none_is_lost(weir: Installation) -> None:
    made = random_for("rows")
    lines, good, bad, keyless = [], [], 0, 0
    for n in range(3_000):
        kind = made.random()
        if kind < 0.7:
            lines.append(json.dumps({"k": f"key {made.randrange(9)}", "n": n}))
            good.append(n)
        elif kind < 0.8:
            lines.append(json.dumps({"n": n}))
            keyless += 1
        elif kind < 0.9:
            lines.append(json.dumps({"k": "x", "n": f"not a number {n}"}))
            bad += 1
        else:
            lines.append('{"k": "x", "n": ')
            bad += 1
    for i in range(3):
        Path(weir.input, f"{i}.json").write_text("\n".join(lines[i * 1000 : (i + 1) * 1000]))
    stream = weir.create(on_missing_key="quarantine", on_bad_rows="quarantine", segments=5)
    weir.append(stream, [("first", -1)])
    done = weir.ingest(stream, ["2.json", "0.json", "1.json"], "json")
    assert (done.events, done.rejected) == (len(good), bad + keyless)
    facts = weir.check(stream, read=True)
    assert sorted(facts["n"]) == [-1, *good]
    rejected = weir.read(stream.rejected, "stream")
    assert list(rejected["reason"]).count("missing routing key") == keyless
    assert list(rejected["source"].drop_duplicates()) == ["2.json", "0.json", "1.json"]
    text = set(rejected["row"])
    assert all(line in text or json.loads(line)["k"].startswith("key") for line in lines
               if '"k"' in line and "not" in line)  # fmt: skip
    garbage = weir.query("SELECT path FROM garbage WHERE reason = 'rejected'")
    assert garbage, "the rows as they lay beside the events are garbage now"


@pytest.mark.release
def test_malformed_row_is_refused_beside_rows_without_a_key_that_are_welcome(
    weir: Installation,
) -> None:
    # A malformed row has no key either, but it is not one that may be spread.
    Path(weir.input, "x.csv").write_text("n,k\n1,a\nx,\n2,\n")
    stream = weir.create(on_missing_key="spread")
    weir.append(stream, [("first", 0)])
    with raises("bad_rows 1 schema x.csv on_bad_rows"):
        weir.ingest(stream, ["x.csv"], "csv")
    assert len(weir.check(stream, read=True)) == 1


def test_rows_of_both_kinds_are_refused_at_once_and_one_command_quarantines_both(
    weir: Installation,
) -> None:
    Path(weir.input, "rows.csv").write_text("k,n\na,1\nb,two\n,3\nc,4\nd,six\n")
    columns = [
        {"name": "k", "type": "string", "nullable": True, "metadata": {}},
        {"name": "n", "type": "long", "nullable": True, "metadata": {}},
    ]
    stream = weir.create(fields=columns)
    with raises(
        "bad_rows 2 fit two and 1 routing key on_bad_rows quarantine on_missing_key quarantine"
    ):
        weir.ingest(stream, ["rows.csv"], "csv")
    other = weir.create("s/other", fields=columns, on_bad_rows="quarantine")
    done = weir.ingest(other, ["rows.csv"], "csv")
    assert (done.events, done.rejected) == (2, 3)


def test_a_value_in_a_column_without_a_type_is_named_with_its_reason(weir: Installation) -> None:
    rows = pa.table({"k": ["a", "b"], "tags": pa.array([None, []], pa.list_(pa.null()))})
    pq.write_table(rows, Path(weir.input, "open.parquet"))
    stream = weir.create()
    with raises("bad_rows 1 column 'tags' '[]' declare row"):
        weir.ingest(stream, ["open.parquet"])
