"""What a program does wrong with a reader and its batches is said in one sentence."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weir
from tests.committed_folders import committed_folders
from tests.consumers.test_reader import ALL, append, found, sinks
from tests.raises import raises
from weir.consumers import batch_outputs


@pytest.mark.parametrize(
    ("option", "given"),
    [
        ("batch_bytes", "x"), ("batch_events", 1.5), ("batch_files", None), ("batch_events", True),
        ("expected_readers", 0), ("expected_readers", "2"), ("label", 5), ("order", 5),
        ("adjuncts", 5), ("adjuncts", "s/store"), ("manager", 5),
    ],
)  # fmt: skip
def test_an_option_of_another_kind_is_refused(
    store: weir.StreamStore, option: str, given: Any
) -> None:
    with raises(f"argument_invalid {option} {str(given).removesuffix('/store')}"):
        store.reader("g", **{option: given})


@pytest.mark.parametrize(
    ("results", "error"),
    [
        ({None: [{"k": "a"}]}, "output_invalid None"),
        ({"s/out": [{"k": "a"}]}, "output_invalid s/out"),
        ([{"k": "a"}], "argument_invalid builtins.list"),
        ("stream:s/out", "argument_invalid builtins.str"),
    ],
)
def test_results_without_their_outputs_are_refused(
    store: weir.StreamStore, results: Any, error: str
) -> None:
    append(store, range(2))
    with store.reader("g") as reader, raises(error):
        next(reader).commit(results)
    assert found(store, "SELECT state FROM reader_batch") == [("open",)]


def test_a_reader_is_in_one_block_at_a_time(store: weir.StreamStore) -> None:
    append(store, range(2))
    with store.reader("g") as reader:
        batch = next(reader)
        with raises("reader_misused g under"), reader:
            pass
        batch.commit()
    with reader:
        assert list(reader) == []


def test_a_batch_that_is_over_is_neither_split_nor_rejected(store: weir.StreamStore) -> None:
    append(store, range(4))
    with store.reader("g") as reader:
        batch = next(reader)
        batch.commit()
        with raises("reader_misused 1 over"):
            batch.split(ValueError("late"))
        with raises("reader_misused 1 over"):
            batch.reject(ValueError("late"))
        with raises("reader_misused 1 over"):
            batch.write("parquet:p", batch.events)  # would overwrite what counts
    append(store, range(4))
    with store.reader("g") as reader:
        late = next(reader)
    with raises("reader_misused 2 inside"):  # what it wrote was given up at the end of the block
        late.commit()
    for late in store.reader("g"):
        late.commit()
    assert found(store, "SELECT state FROM reader_batch") == [("committed",)] * 2


@pytest.mark.usefixtures("results")
@pytest.mark.parametrize("order", [1, -1], ids=["last", "first"])
def test_of_results_of_which_one_is_wrong_none_counts_as_written(
    store: weir.StreamStore, order: int
) -> None:
    append(store, range(20))
    good, wrong = (ALL[0], *ALL[2:]), ALL[1]
    with store.reader("g") as reader:
        batch = next(reader)
        results = {**dict.fromkeys(good, batch.events), wrong: pa.table({"other": [1]})}
        for _ in range(2):
            with raises("column_unknown other"):
                batch.commit({name: results[name] for name in list(results)[::order]})
        batch.commit({**results, wrong: batch.events})
    assert sinks(store)[:3] == [list(range(20))] * 3
    assert found(store, "SELECT state FROM transaction WHERE state = 'open'") == []


def test_an_output_whose_failed_files_remain_is_written_to_another_folder(
    store: weir.StreamStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(store, range(2))
    output, rows = "parquet:p partition_by=k", pa.table({"k": ["a", "b"], "n": [1, 2]})
    too_long = pa.table({"k": ["a", "b" * 300], "n": [1, 2]})  # for the name of a folder
    monkeypatch.setattr(batch_outputs, "delete_here", lambda files: {0: "the disk is read-only"})
    with store.reader("g") as reader:
        batch = next(reader)
        for _ in range(2):
            with raises("output_not_writable"):
                batch.commit({output: too_long})
        [folder] = batch.commit({output: rows})["parquet"]
    root = Path(store.settings.output_roots[0])
    assert len(list(root.rglob("k=a/*.parquet"))) == 3
    assert [f"{root}/{one}" for one in committed_folders(store.database, "g", "p")] == [folder]
    counted = [pq.ParquetFile(one).read() for one in Path(folder).rglob("*.parquet")]
    assert sorted(n for one in counted for n in one["n"].to_pylist()) == [1, 2]


def test_a_partitioned_output_without_rows_adds_no_folder(store: weir.StreamStore) -> None:
    for n, rows in ((1, []), (2, ["a"])):
        append(store, range(n))
        with store.reader("g") as reader:
            for batch in reader:
                result = pa.table(
                    {"k": pa.array(rows, pa.string()), "n": pa.array([n] * len(rows), pa.int64())}
                )
                batch.commit({"parquet:p partition_by=k": result, "parquet:q": result})
    folders = [committed_folders(store.database, "g", name) for name in ("p", "q")]
    assert [len(some) for some in folders] == [1, 2]
    root = Path(store.settings.output_roots[0])
    assert [pq.read_table(root / one).column_names for one in folders[1]] == [["k", "n"]] * 2


@pytest.mark.parametrize("keys", [pa.nulls(2), pa.array([None, None], pa.string())])
def test_rows_none_of_which_has_a_key_are_said_to_lack_it(
    store: weir.StreamStore, keys: pa.Array
) -> None:
    with raises("bad_rows 2 k"):
        store.append("s/in", pa.table({"k": keys, "n": [1, 2]}))
    store.update_stream("s/in", on_missing_key="spread")
    assert store.append("s/in", pa.table({"k": keys, "n": [1, 2]})).events == 2


def test_what_is_no_cut_no_name_and_no_stream_is_said(store: weir.StreamStore) -> None:
    wrong: Any = 5
    append(store, range(2))
    with raises("cut_invalid 5"):
        store.read("s/in", start=wrong)
    with raises("cut_invalid 0.0"):
        store.read("s/in", end=["0.0"])  # type: ignore[arg-type]
    with raises("argument_invalid name 5"):
        store.checkpoint_reader_group("g", wrong)
    with raises("stream_not_found"):
        store.lineage(wrong)
