"""A file that Spark can't read is told with its cause and what to do, wherever Spark reads it."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tests.crash.jobs import write_config
from tests.raises import raises
from tests.spark.adjunct_world import WAYS, World
from tests.spark.installation import Installation
from weir.spark.source import register
from weir.spark.transaction import transaction

pytestmark = pytest.mark.release


def files(installation: Installation, stream: str) -> list[Path]:
    rows = installation.query("SELECT path FROM data_file WHERE stream_name = :s", s=stream)
    return [Path(installation.settings.warehouse, row.path) for row in rows]


def test_a_file_that_is_missing_is_told_by_every_way_to_read(weir: Installation) -> None:
    world = World.made(weir, segments=1)
    store = world.store(WAYS["whole"])
    weir.create("s/results")
    world.append([("a", 1, "x")])
    name = str(world.stream)
    group = weir.group(world.stream)
    other = weir.group(world.stream, name="others")
    [file] = files(weir, name)
    content = file.read_bytes()

    def deleting(events: DataFrame) -> DataFrame:
        file.unlink()
        return events

    with raises(f"file_missing 1 {name}"):  # deleted after the plan
        weir.consumer(other, deleting, "stream:s/results").run()
    for read in (
        lambda: weir.frame(world.stream),
        lambda: weir.consumer(group, lambda e: e, "stream:s/results").run(),
        store.build,
    ):
        with raises(f"file_missing 1 {name} 0.0=1"):
            read()
    register(weir.spark)
    source = weir.spark.read.format("weir").option("config", str(write_config(weir.settings)))
    with pytest.raises(PySparkException, match="file_missing"):
        source.load(name).collect()
    query = (
        weir.spark.readStream.format("weir").option("config", str(write_config(weir.settings)))
        .load(name).writeStream.format("memory").queryName("lost")
        .trigger(availableNow=True).start()
    )  # fmt: skip
    with pytest.raises(PySparkException, match="file_missing"):
        query.awaitTermination()
    file.write_bytes(content[:-20])  # it is there, and damaged
    with raises(f"file_missing damaged {name}"):
        weir.consumer(group, lambda e: e, "stream:s/results").run()
    file.write_bytes(content)
    assert weir.consumer(group, lambda e: e, "stream:s/results").run()["events"] == 1
    assert len(store.found(store.build())) == 1


def test_files_of_an_open_append_that_somebody_deletes_stop_the_commit(weir: Installation) -> None:
    stream = weir.create("s/one")
    frame = weir.spark.createDataFrame([("a", 1), ("b", 2)], "k string, n long")
    with (
        raises("written_files_gone s/one"),
        transaction(weir.appender, writer_id="w", batch_id="1") as whole,
    ):
        whole.append(stream, frame)
        for file in Path(weir.settings.warehouse).rglob("*.parquet"):
            file.unlink()
    assert weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0
    weir.append(stream, frame, batch="2")
    assert len(weir.read(stream)) == 2
