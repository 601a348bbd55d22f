"""Rows that do not become events: rows in = events + rejected rows, whatever the policy."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.installation import Installation
from weir.errors import BadRows
from weir.names import StreamName


def _keys(weir: Installation, name: str, keys: list[str | None]) -> str:
    pq.write_table(pa.table({"k": keys, "n": range(len(keys))}), f"{weir.input}/{name}")
    return name


def _rejected(weir: Installation, stream: StreamName) -> pd.DataFrame:
    return weir.read(stream.rejected).sort_values("place", ignore_index=True)


def test_rows_without_a_key_are_refused_with_count_and_example_and_nothing_is_left(
    weir: Installation,
) -> None:
    stream = weir.create()
    path = _keys(weir, "some.parquet", ["a", None, "b", None])
    with pytest.raises(BadRows, match=r"^2 of the rows have no routing key .*row 2.*\"n\":1"):
        weir.ingest(stream, [path])
    assert weir.read(stream).empty
    assert weir.value("SELECT state FROM transactions") == "aborted"
    assert weir.value("SELECT count(*) FROM garbage WHERE reason = 'aborted'") == 1


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
    assert list(rejected["row"]) == ['{"n":0}', '{"n":1}']
    assert set(rejected["reason"]) == {"missing routing key"}
    clocks = weir.query("SELECT count(*) FROM transactions WHERE state = 'committed'")
    assert clocks[0][0] == 2
    again = weir.ingest(stream, [first, second])
    assert again.repeated
    assert len(_rejected(weir, stream)) == 2


def test_malformed_csv_rows_follow_their_own_policy(weir: Installation) -> None:
    text = "k,n\na,1\nb,two\n,3\nc,4,5\nd,6\n"
    Path(weir.input, "rows.csv").write_text(text)
    options = {"sep": ",", "nullValue": ""}
    columns = [
        {"name": "k", "type": "string", "nullable": True, "metadata": {}},
        {"name": "n", "type": "long", "nullable": True, "metadata": {}},
    ]
    strict = weir.create("s/strict", on_missing_key="spread", fields=columns)
    with pytest.raises(BadRows, match=r"^2 of the rows do not fit"):
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


def test_rejected_rows_of_a_dataframe_name_who_appended_it(weir: Installation) -> None:
    stream = weir.create(on_missing_key="quarantine")
    done = weir.append(stream, [("a", 1), (None, 2)])
    assert (done.events, done.rejected) == (1, 1)
    assert list(_rejected(weir, stream)["source"]) == ["test"]
