"""Appends with Spark's own verbs: `df.write.format("weir")` and `df.writeStream.format("weir")`."""

import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tests.spark.installation import Installation
from weir.controller.seal import seal_stream
from weir.model.names import StreamName
from weir.retention.delete_stream import delete_stream
from weir.spark.reads.source import register


def fails(says: str) -> pytest.RaisesExc[PySparkException]:
    """Expect an error of Spark that has Weir's sentence with these words, in this order."""
    words = ".*".join(map(re.escape, says.split()))
    return pytest.RaisesExc(PySparkException, match=re.compile(words, re.DOTALL))


def rows(weir: Installation, start: int, count: int, tasks: int = 3) -> DataFrame:
    frame = weir.spark.range(start, start + count, 1, tasks)
    return frame.selectExpr("concat('key ', id % 7) AS k", "id AS n")


def save(frame: DataFrame, config: str, stream: StreamName, batch: str = "1", **more: str) -> None:
    options = {"config": config, "writerId": "nightly", "batchId": batch, **more}
    frame.write.format("weir").mode("append").options(**options).save(str(stream))


def test_a_write_appends_what_append_would_in_the_same_order(
    weir: Installation, config: str
) -> None:
    for key, checked in ("k", "k"), ("upper(k)", None):
        stream, other = (weir.create(f"s/{name}{len(key)}", key, 3) for name in "ab")
        save(rows(weir, 0, 100), config, stream)
        weir.append(other, rows(weir, 0, 100))
        facts, wanted = weir.check(stream, checked), weir.check(other, checked)
        order = ["k", "n", "_segment", "_offset", "_weir_seq"]
        pd.testing.assert_frame_equal(facts[order], wanted[order])
    assert weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0


@pytest.mark.release
def test_an_identity_is_appended_once_and_is_that_of_append_frame(
    weir: Installation, config: str
) -> None:
    stream = weir.create()
    save(rows(weir, 0, 10), config, stream)
    save(rows(weir, 0, 20), config, stream)
    frame = rows(weir, 0, 10)
    done = weir.appender.append_frame(stream, frame, writer_id="nightly", batch_id="1")
    assert done.repeated
    save(rows(weir, 10, 10), config, stream, batch="2")
    assert sorted(weir.check(stream)["n"]) == list(range(20))


@pytest.mark.release
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"batchId": "1"}, "no writerId"),
        ({"writerId": "w"}, "no batchId"),
    ],
)
def test_a_write_without_identity_is_refused_with_what_to_give(
    weir: Installation, config: str, options: dict[str, str], says: str
) -> None:
    stream = weir.create()
    write = rows(weir, 0, 3).write.format("weir").mode("append").option("config", config)
    with fails(f"{says} batchId [argument_missing]"):
        write.options(**options).save(str(stream))


@pytest.mark.release
def test_a_thread_that_registers_the_format_finds_it_for_writes(
    weir: Installation, config: str
) -> None:
    stream = weir.create()

    def write() -> None:
        register(weir.spark)
        save(rows(weir, 0, 10), config, stream)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(write).result()
    assert sorted(weir.check(stream)["n"]) == list(range(10))


@pytest.mark.release
def test_an_overwrite_is_refused(weir: Installation, config: str) -> None:
    stream = weir.create()
    write = rows(weir, 0, 3).write.format("weir").mode("overwrite").option("config", config)
    with fails("s/events only appended to mode append [argument_invalid]"):
        write.options(writerId="w", batchId="1").save(str(stream))


def test_a_task_that_fails_and_is_tried_again_adds_nothing_twice(
    weir: Installation, config: str, tmp_path: Path
) -> None:
    stream = weir.create(segments=2)
    mark = str(tmp_path / "failed once")

    def once(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield batch
            if 5 in set(batch["n"]) and not Path(mark).exists():
                Path(mark).touch()
                raise ValueError("a machine that is lost")

    frame = rows(weir, 0, 100).mapInPandas(once, "k string, n long")
    with fails("a machine that is lost"):  # this master tries no task again
        save(frame, config, stream)
    assert weir.check(stream).empty
    assert weir.value("SELECT count(*) FROM garbage WHERE reason = 'aborted'") == 1
    save(frame, config, stream)
    assert sorted(weir.check(stream)["n"]) == list(range(100))


def query(weir: Installation, config: str, stream: StreamName, folder: Path, **more: str) -> None:
    """Run a query from Parquet files to a stream, until it has written all that is there."""
    source = weir.spark.readStream.schema("k string, n long").parquet(str(folder / "in"))
    options = {"config": config, "writerId": "late", "checkpointLocation": str(folder / "check")}
    write = source.writeStream.format("weir").options(**{**options, **more})
    running = write.trigger(availableNow=True).start(str(stream))
    try:
        running.awaitTermination()
    finally:
        running.stop()


def test_a_query_appends_each_micro_batch_once(
    weir: Installation, config: str, tmp_path: Path
) -> None:
    stream = weir.create(segments=3)
    rows(weir, 0, 50).write.parquet(str(tmp_path / "in"))
    query(weir, config, stream, tmp_path)
    rows(weir, 50, 50).write.mode("append").parquet(str(tmp_path / "in"))
    query(weir, config, stream, tmp_path)
    assert sorted(weir.check(stream)["n"]) == list(range(100))
    found = weir.query("SELECT writer_id, batch_id FROM transaction ORDER BY transaction_number")
    assert [tuple(one) for one in found] == [("late", "micro-batch 0"), ("late", "micro-batch 1")]
    # As if the driver had ended after this commit and before that of Spark.
    for name in ("1", ".1.crc"):
        Path(tmp_path, "check/commits", name).unlink()
    query(weir, config, stream, tmp_path)
    assert sorted(weir.check(stream)["n"]) == list(range(100))
    assert weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0


@pytest.mark.release
def test_a_checkpoint_that_is_new_or_old_is_refused_and_loses_nothing_silently(
    weir: Installation, config: str, tmp_path: Path
) -> None:
    stream = weir.create(segments=3)
    rows(weir, 0, 50).write.parquet(str(tmp_path / "in"))
    query(weir, config, stream, tmp_path)
    shutil.copytree(tmp_path / "check", tmp_path / "copy")
    rows(weir, 50, 50).write.mode("append").parquet(str(tmp_path / "in"))
    query(weir, config, stream, tmp_path)
    rows(weir, 100, 20).write.mode("append").parquet(str(tmp_path / "in"))
    with fails("late micro-batch 1 restored writerId [checkpoint_differs]"):
        query(weir, config, stream, tmp_path, checkpointLocation=str(tmp_path / "copy"))
    with fails("late another query micro-batch 0 writerId [checkpoint_differs]"):
        query(weir, config, stream, tmp_path, checkpointLocation=str(tmp_path / "new"))
    query(weir, config, stream, tmp_path)
    assert sorted(weir.check(stream)["n"]) == list(range(120))


@pytest.mark.release
def test_a_query_whose_stream_was_made_anew_is_refused_and_appends_no_later_part_of_it(
    weir: Installation, config: str, tmp_path: Path
) -> None:
    stream = weir.create()
    rows(weir, 0, 5).write.parquet(str(tmp_path / "in"))
    query(weir, config, stream, tmp_path)
    seal_stream(weir.database, stream, request_id="seal")
    delete_stream(weir.database, stream, unread_too=True, request_id="delete")
    weir.create()
    rows(weir, 5, 5).write.mode("append").parquet(str(tmp_path / "in"))
    with fails("late micro-batch 1 made anew new checkpoint [checkpoint_differs]"):
        query(weir, config, stream, tmp_path)
    assert weir.value("SELECT DISTINCT state FROM transaction") == "aborted"
    query(weir, config, stream, tmp_path, checkpointLocation=str(tmp_path / "new"))
    assert sorted(weir.check(stream)["n"]) == list(range(10))


@pytest.mark.release
def test_a_query_without_writer_id_or_with_a_batch_id_is_refused(
    weir: Installation, config: str, tmp_path: Path
) -> None:
    stream = weir.create()
    rows(weir, 0, 5).write.parquet(str(tmp_path / "in"))
    with fails("no writer id writerId [argument_missing]"):
        query(weir, config, stream, tmp_path, writerId="")
    with fails("batchId '7' leave it out"):
        query(weir, config, stream, tmp_path, batchId="7")
