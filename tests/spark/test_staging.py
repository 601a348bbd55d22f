"""How rows become files: few of them, each in order, whatever the numbers of tasks and segments."""

from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.raises import raises
from tests.spark.installation import Installation
from weir.model.names import StreamName
from weir.spark.appends import stage as spark_stage
from weir.warehouse.paths import attempt_folder


def rows(weir: Installation, count: int, tasks: int) -> DataFrame:
    """Events of a hundred keys, in so many tasks."""
    return weir.spark.range(0, count, 1, tasks).select(
        F.concat(F.lit("key "), F.col("id") % 100).alias("k"), F.col("id").alias("n")
    )


def assert_in_order(weir: Installation, stream: StreamName, count: int) -> None:
    """Every row once, those of a key as they were given."""
    facts = weir.check(stream)
    assert sorted(facts["n"]) == list(range(count))
    assert (facts.groupby("k")["n"].diff().dropna() > 0).all()
    read = weir.read(stream)
    assert (read.groupby("k")["n"].diff().dropna() > 0).all()
    assert len(read) == count


def test_few_rows_of_many_tasks_and_segments_are_shuffled_into_few_files(
    weir: Installation,
) -> None:
    stream = weir.create(segments=12)
    committed = weir.append(stream, rows(weir, 4_000, tasks=40))
    assert committed.files <= 12, "520 files without it"
    assert_in_order(weir, stream, 4_000)


@pytest.mark.release
@pytest.mark.parametrize("known", [True, False])
def test_few_rows_of_very_many_tasks_are_shuffled_also_into_few_segments(
    weir: Installation, known: bool
) -> None:
    stream = weir.create(segments=7)
    frame = rows(weir, 3_000, tasks=100)
    if not known:  # rows from outside a plan, of which Spark can't tell how many there are
        frame = weir.spark.createDataFrame(frame.rdd, frame.schema)
    committed = weir.append(stream, frame)
    assert committed.files <= 14, "700 files without it"
    assert_in_order(weir, stream, 3_000)


@pytest.mark.release
def test_many_segments_are_written_by_few_tasks_without_a_shuffle(weir: Installation) -> None:
    stream = weir.create(segments=70)
    committed = weir.append(stream, rows(weir, 3_000, tasks=2))
    assert committed.files > 70, "they were not shuffled"
    assert_in_order(weir, stream, 3_000)


def test_file_that_is_missing_after_writing_stops_the_append(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(warehouse: str, folder: str, known: set[str]) -> None:
        (Path(warehouse) / min(known)).unlink()

    monkeypatch.setattr(spark_stage, "delete_left_over", lose)
    stream = weir.create(segments=2)
    with raises("written_files_gone 1 append again"):
        weir.append(stream, rows(weir, 100, tasks=1))
    assert weir.query("SELECT state FROM transaction") == [("aborted",)]
    assert weir.query("SELECT path FROM garbage") == [("1/_weir_tx=1/_weir_attempt=1/",)]


@pytest.mark.release
def test_rows_that_are_in_the_plan_itself_get_a_folder_per_task(weir: Installation) -> None:
    # Spark evaluates what it can of such a plan in the driver, where the number of every task is 0.
    stream = weir.create(segments=3)
    rows = pd.DataFrame({"k": [f"key {n % 100}" for n in range(500)], "n": range(500)})
    weir.append(stream, rows)
    folders = [f.path.rsplit("/", 1)[0] for f in weir.query("SELECT path FROM data_file")]
    assert len(folders) > 3, "one task alone wrote"
    assert len(folders) == len(set(folders))
    assert sorted(weir.check(stream)["n"]) == list(range(500))


@pytest.mark.release
def test_a_folder_in_which_something_lies_is_not_written_to(weir: Installation) -> None:
    stream = weir.create()
    weir.append(stream, rows(weir, 10, tasks=1))
    number = weir.value("SELECT max(transaction_number) FROM transaction")
    stream_id = weir.value("SELECT max(stream_id) FROM stream")
    folder = Path(weir.settings.warehouse) / attempt_folder(stream_id, number + 1, 1)
    folder.mkdir(parents=True)
    (folder / "forgotten.parquet").write_text("rows")
    with raises("database_restored weir recover nothing"):
        weir.append(stream, rows(weir, 10, tasks=1))
    assert [path.name for path in folder.iterdir()] == ["forgotten.parquet"]
