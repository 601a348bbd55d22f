"""Events of a key are read in the order (file as given, row in the file), however Spark splits."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.released import only
from tests.spark.installation import Installation
from weir.inputs.append import FilesOf, append_files
from weir.inputs.files import find_inputs
from weir.spark.appends import stage
from weir.spark.inputs import from_tasks
from weir.spark.inputs.from_tasks import read_in_tasks

KEYS = 40
# In the order given: neither that of the names nor that of the sizes.
SIZES = {"m-small": 300, "z-large": 28_000, "a-medium": 2_000}


def write(folder: Path, name: str, number: int, rows: int, format_: str) -> str:
    """A file whose rows say where they stand in it; large in bytes for its rows."""
    random = np.random.default_rng(number)
    table = pa.table(
        {
            "k": pa.array([f"key {i}" for i in random.integers(0, KEYS, rows)], pa.string()),
            "file": np.full(rows, number),
            "row": np.arange(rows),
            "payload": pa.array([random.bytes(120).hex() for _ in range(rows)], pa.string()),
        }
    )
    path = folder / f"{name}.{format_}"
    if format_ == "parquet":
        pq.write_table(table, path, row_group_size=2_000)
    elif format_ == "csv":
        pa.csv.write_csv(table, path)
    else:
        table.to_pandas().to_json(path, orient="records", lines=True)
    return path.name


def assert_input_order(events: pd.DataFrame, sizes: Sequence[int]) -> None:
    """Every row of every file once; those of a key in the order of the files and their rows."""
    assert len(events) == sum(sizes)
    place = events["file"].astype("int64") * 1_000_000 + events["row"].astype("int64")
    assert place.nunique() == sum(sizes)
    assert (place.groupby(events["k"]).diff().dropna() > 0).all()


@pytest.mark.parametrize("format_", only("json", of=["parquet", "csv", "json"]))
def test_files_of_very_different_size_are_read_in_the_order_given(
    weir: Installation, format_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = weir.create(segments=3)
    root = Path(weir.input)
    monkeypatch.setattr(from_tasks, "LEAST", 1 << 17)
    monkeypatch.setattr(from_tasks, "MOST", 1 << 20)
    paths = [write(root, name, i, rows, format_) for i, (name, rows) in enumerate(SIZES.items())]
    inputs = find_inputs(paths, weir.settings.input_roots, format_)
    tasks = read_in_tasks(weir.spark, inputs, None, weir.said.append, 4).count
    assert tasks > len(SIZES), "the large file was not split: nothing would be tested"
    append_files(weir.opened, FilesOf(stream, inputs), weir.appender.stage_files)
    facts = weir.check(stream)
    assert_input_order(facts, list(SIZES.values()))
    for order in ("segment", "stream"):
        assert_input_order(weir.read(stream, order, ["k", "file", "row"]), list(SIZES.values()))


@pytest.mark.release
@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_many_small_files_are_read_in_the_order_given(weir: Installation, format_: str) -> None:
    stream = weir.create(segments=5)
    random = np.random.default_rng(7)
    sizes = [0, *(int(n) for n in random.integers(0, 60, 60)), 0]
    names = [f"{name:03}" for name in random.permutation(len(sizes))]
    paths = [
        write(Path(weir.input), name, i, rows, format_)
        for i, (name, rows) in enumerate(zip(names, sizes, strict=True))
    ]
    committed = weir.ingest(stream, paths, format_)
    assert committed.events == sum(sizes)
    assert committed.files <= 5, "small files make small files"
    assert_input_order(weir.check(stream, read=True), sizes)


def test_a_csv_file_whose_keys_only_spark_computes_is_written_by_many_tasks(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark knows nothing of the size of what its tasks read, and would take it for little."""
    monkeypatch.setattr(from_tasks, "LEAST", 1 << 17)
    monkeypatch.setattr(from_tasks, "MOST", 1 << 20)
    monkeypatch.setattr(stage, "MANY_FILES", 1)
    monkeypatch.setattr(stage, "SMALL_FILE", 1 << 14)
    path = write(Path(weir.input), "large", 0, 20_000, "csv")
    for name, key in (("plain", "k"), ("computed", "upper(k)")):
        done = weir.ingest(weir.create(f"s/{name}", key, segments=2), [path], "csv")
        assert done.events == 20_000
        assert done.files > 2, "one task wrote all of it"
    monkeypatch.setattr(stage, "SMALL_FILE", 1 << 30)
    for name, key in (("few", "k"), ("few-computed", "upper(k)")):
        done = weir.ingest(weir.create(f"s/{name}", key, segments=2), [path], "csv")
        assert (done.events, done.files) == (20_000, 2), "tasks wrote small files"
