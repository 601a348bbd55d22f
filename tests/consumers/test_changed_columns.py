"""Columns change while a batch is open: what a reader began with it goes on with, who takes over
has the columns of now, and each event counts once (semantics 5.5)."""

import json
from datetime import date, datetime
from typing import Any

import pyarrow as pa

import weir
from tests.consumers.test_failures import consumer
from tests.raises import raises
from tests.world.columns import column
from tests.world.streams import unique
from weir.controller.update import update_stream
from weir.model.column_changes import ColumnChanges
from weir.model.names import stream_name

PLACES = ["_segment", "_offset", "_clock"]


def change(store: weir.StreamStore, stream: str, **changes: Any) -> None:
    update_stream(
        store.database, stream_name(stream), {}, column_changes=ColumnChanges(**changes),
        request_id=unique("change"),
    )  # fmt: skip


def append(store: weir.StreamStore, *numbers: int) -> None:
    keys, cities = [f"key {n}" for n in numbers], ["x"] * len(numbers)
    store.append("s/in", pa.table({"k": keys, "n": pa.array(numbers, pa.int32()), "city": cities}))


def change_all(store: weir.StreamStore) -> None:
    change(
        store, "s/in", rename={"n": "m"}, widen=[column("n", "long")], drop=["city"],
        add=[column("n", "integer", "7")],
    )  # fmt: skip


def test_a_batch_goes_on_with_the_columns_it_began_with_and_the_next_has_those_of_now(
    store: weir.StreamStore,
) -> None:
    append(store, 1, 2)
    for batch in store.reader("g"):
        change_all(store)
        assert batch.events.column_names == ["k", "n", "city", *PLACES]
        assert sorted(batch.events["n"].to_pylist()) == [1, 2]
        batch.commit({"stream:s/out": batch.events.select(["k", "n"])})
    more = {"k": ["key 3"], "m": pa.array([1 << 40]), "n": pa.array([3], pa.int32())}
    store.append("s/in", pa.table(more))
    for batch in store.reader("g"):
        assert batch.events.column_names == ["k", "m", "n", *PLACES]
        batch.commit({"stream:s/out": batch.events.select(["k", "n"])})
    assert sorted(store.read("s/out")["n"].to_pylist()) == [1, 2, 3]


def test_who_takes_a_batch_over_after_the_change_has_the_columns_of_now(
    store: weir.StreamStore,
) -> None:
    append(store, 1, 2)
    for batch in store.reader("g", reader_id="one"):
        assert batch.size == 2
        break
    change_all(store)
    for batch in store.reader("g", reader_id="one"):
        assert batch.events.column_names == ["k", "m", "n", *PLACES]
        assert batch.events.schema.field("m").type == pa.int64()
        batch.commit({"stream:s/out": batch.events.select(["k", "m", "n"])})
    rows = sorted(store.read("s/out").select(["m", "n"]).to_pylist(), key=lambda row: row["m"])
    assert rows == [{"m": 1, "n": 7}, {"m": 2, "n": 7}]


def test_a_result_whose_columns_changed_before_its_commit_is_refused_and_written_again(
    store: weir.StreamStore,
) -> None:
    append(store, 1)
    store.append("s/out", [{"k": "before", "n": 0}])
    for batch in store.reader("g"):
        rows = batch.events.select(["k", "n"])
        batch.write("stream:s/out", rows)
        change(store, "s/out", rename={"n": "m"})
        with raises("schema_changed 'n' renamed append again"):
            batch.commit()
        break
    for batch in store.reader("g"):
        batch.commit({"stream:s/out": batch.events.select(["k", "n"]).rename_columns(["k", "m"])})
    assert sorted(store.read("s/out")["m"].to_pylist()) == [0, 1]


def test_an_event_is_not_rejected_as_a_text_of_a_type_that_its_column_no_longer_has(
    store: weir.StreamStore,
) -> None:
    # By the time at which it is rejected it would be read as a date and a time, which it is not.
    table = {"k": ["a", "b"], "d": [date(2024, 2, 29)] * 2, "f": pa.array([0.1] * 2, pa.float32())}
    store.append("s/in", pa.table(table))
    calls: list[pa.Schema] = []

    def fails(events: pa.Table) -> pa.Table:
        calls.append(events.schema)
        if len(calls) == 3:  # alone for the second time, so it would be rejected now
            wide = [column("d", "timestamp_ntz"), column("f", "double")]
            change(store, "s/in", widen=wide, rename={"d": "f", "f": "d"})
        raise ValueError("no")

    failing = consumer(store, fails, "stream:s/out", on_error="quarantine", order="stream")
    with raises("schema_changed 'f' s/in widened batch again"):
        failing.run()
    assert len(calls) == 3
    assert failing.run()["rejected"] == 2
    rows = [json.loads(row) for row in store.read("s/in.rejected")["row"].to_pylist()]
    wanted = {"d": "2024-02-29T00:00:00.000000", "f": 0.10000000149011612}  # the names in files
    assert [{**wanted, "k": row["k"]} for row in rows] == rows
    assert calls[-1].field("f").type == pa.timestamp("us")
    assert store.read("s/in")["f"].to_pylist() == [datetime(2024, 2, 29)] * 2
