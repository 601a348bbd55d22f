"""Rows that do not become events: rows in = events + rejected rows, whatever the policy."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raises import raises
from tests.spark.installation import Installation
from weir.model.names import StreamName


def _keys(weir: Installation, name: str, keys: list[str | None]) -> str:
    pq.write_table(pa.table({"k": keys, "n": range(len(keys))}), f"{weir.input}/{name}")
    return name


def _rejected(weir: Installation, stream: StreamName) -> pd.DataFrame:
    return weir.read(stream.rejected).sort_values("place", ignore_index=True)


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


@pytest.mark.release
def test_example_of_a_row_of_a_dataframe_names_its_place_in_its_partition(
    weir: Installation,
) -> None:
    stream = weir.create()
    frame = weir.spark.range(10).selectExpr("IF(id = 7, NULL, 'a') AS k", "id AS n")
    with raises('bad_rows 1 key (row 3: {"k":null,"n":7})'):
        weir.append(stream, frame.repartitionByRange(2, "n"))


@pytest.mark.release
def test_all_rows_may_be_rejected_and_later_ones_follow_in_the_same_stream(
    weir: Installation,
) -> None:
    stream = weir.create(on_missing_key="quarantine", segments=3)
    assert weir.append(stream, [(None, n) for n in range(5)]).rejected == 5
    assert weir.append(stream, [(None, n) for n in range(5, 8)]).events == 0
    assert weir.check(stream).empty
    rejected = weir.check(stream.rejected, key=None, read=True)
    assert set(rejected["source"]) == {"test"}, "who appended them"
    assert [row.split(":")[2] for row in rejected["row"]] == [f"{n}}}" for n in range(8)]
