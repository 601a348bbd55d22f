"""Events of a key are read in the order (file as given, row in the file), however Spark splits."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.raises import raises
from tests.released import only
from tests.spark.installation import Installation
from weir.inputs.append import FilesOf, append_files
from weir.inputs.files import find_inputs
from weir.kernel.attempt import Attempt
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


@pytest.mark.release
def test_dataframe_is_read_in_the_order_of_its_partitions(weir: Installation) -> None:
    stream = weir.create(segments=3)
    frame = weir.spark.createDataFrame(
        [(f"key {n % 7}", n) for n in range(1_000)], "k string, n long"
    ).repartition(5)
    given = [row.n for row in frame.collect()]
    weir.append(stream, frame)
    facts = weir.check(stream, read=True)
    assert facts.sort_values("_weir_seq")["n"].tolist() == given


def test_files_whose_ranks_interleave_are_refused_and_nothing_is_committed(
    weir: Installation,
) -> None:
    stream = weir.create(segments=1)
    opened = weir.appender.begin_frame(stream, "test", "interleaving")
    assert isinstance(opened, Attempt)
    frame = weir.spark.range(100).selectExpr("cast(id as string) as k", "id as n")

    def commit_bent() -> None:
        with weir.appender.writing([opened]):
            (staged,) = weir.appender.stage_frame([opened], frame.repartition(2))
            one, other = sorted(staged.files, key=lambda f: f.first_seq)
            bent = replace(other, first_seq=one.last_seq)
            weir.appender.commit([replace(staged, files=(one, bent))])

    with raises("invariant_violated interleave"):
        commit_bent()
    assert weir.check(stream, read=True).empty
    assert weir.value("SELECT state FROM transactions") == "aborted"
    again = weir.appender.begin_frame(stream, "test", "interleaving")
    assert isinstance(again, Attempt)
    staged = weir.appender.stage_frame([again], frame)
    assert weir.appender.commit(staged).events == 100, "a retry begins anew"


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
