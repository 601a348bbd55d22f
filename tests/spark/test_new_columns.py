"""Each door of a stream follows its setting for new columns: csv, JSON and Parquet files,
DataFrames, several appends in one transaction, tables, and consumers (semantics 12.4)."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raises import raises
from tests.spark.installation import Installation
from weir.controller.update import update_stream
from weir.model.names import StreamName
from weir.programs.opening import shared
from weir.spark.appends.transaction import transaction

FIELDS = [
    {"name": name, "type": kind, "nullable": True, "metadata": {}}
    for name, kind in (("k", "string"), ("amount", "long"))
]
ROW = {"k": "a", "amuont": 1}
DOORS = ("csv", "json", "parquet", "frame", "transaction", "table")


def put(weir: Installation, door: str, stream: StreamName) -> Any:
    """Append the misspelt row through a door."""
    name = stream.name + "." + door
    file = Path(weir.input) / name
    if door == "table":
        table = pa.Table.from_pylist([ROW])
        return shared(weir.settings).append(str(stream), table, writer_id="w", batch_id=name)
    if door in ("frame", "transaction"):
        frame = weir.spark.createDataFrame([tuple(ROW.values())], "k string, amuont long")
        if door == "frame":
            return weir.append(stream, frame)
        with transaction(weir.appender, writer_id="w", batch_id=name) as both:
            both.append(stream, frame)
        return both.committed[0]
    if door == "csv":
        file.write_text("k,amuont\na,1\n")
    elif door == "json":
        file.write_text(json.dumps(ROW) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist([ROW]), file)
    return weir.ingest(stream, [name], door)


def test_each_door_refuses_new_columns_or_adds_them_with_a_word(
    weir: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    strict, grows = weir.create("s/strict", segments=1, fields=FIELDS), []
    for door in DOORS:
        with raises("column_unknown 'amuont' s/strict 'amount' on_new_column"):
            put(weir, door, strict)
        grows.append(weir.create(f"s/{door}", segments=1, fields=FIELDS, on_new_column="add"))
        caplog.clear()
        done = put(weir, door, grows[-1])
        assert (done.added_columns, done.missing_columns) == (("amuont",), ("amount",)), door
        [warned] = [one.getMessage() for one in caplog.records if one.name == "weir.columns"][:1]
        assert "is it a misspelt 'amount'" in warned, door
    assert weir.frame(strict).collect() == []
    for stream in grows:
        assert weir.frame(stream).select("k", "amount", "amuont").collect() == [("a", None, 1)]


@pytest.mark.release
def test_what_a_consumer_writes_is_refused_and_stays_open_until_the_column_is_there(
    weir: Installation,
) -> None:
    source, target = weir.create("s/in"), weir.create("s/out", segments=1, fields=FIELDS)
    weir.append(source, [("a", 1)])
    group = weir.group(source)
    consumer = weir.consumer(
        group, lambda rows: rows.selectExpr("k", "n AS amuont"), "stream:s/out"
    )
    with raises("column_unknown 'amuont' s/out 'amount'"):
        consumer.run()
    update_stream(weir.database, target, {"on_new_column": "add"}, request_id="add")
    assert consumer.run()["events"] == 1
    assert weir.frame(target).select("k", "amount", "amuont").collect() == [("a", None, 1)]
