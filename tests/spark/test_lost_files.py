"""A file that Spark can't read is told with its cause and what to do, wherever Spark reads it."""

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tests.crash.jobs import write_config
from tests.raises import raises
from tests.spark.adjunct_world import WAYS, World
from tests.spark.installation import Installation
from tests.world.garbage import sweep
from tests.world.streams import unique
from weir.annex.recovery.lost_events import LostReport
from weir.annex.recovery.recover import recover
from weir.programs.opening import shared
from weir.spark.reads.source import register
from weir.spark.reads.streams import read as read_again

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
    with pytest.raises(PySparkException, match="warehouse_unreadable"):  # a worker can't ask why
        source.load(name).collect()
    query = (
        weir.spark.readStream.format("weir").option("config", str(write_config(weir.settings)))
        .load(name).writeStream.format("memory").queryName("lost")
        .trigger(availableNow=True).start()
    )  # fmt: skip
    with pytest.raises(PySparkException, match="warehouse_unreadable"):
        query.awaitTermination()
    file.write_bytes(content[:-20])  # it is there, and damaged
    with raises(f"file_missing damaged {name}"):
        weir.consumer(group, lambda e: e, "stream:s/results").run()
    file.write_bytes(content)
    assert weir.consumer(group, lambda e: e, "stream:s/results").run()["events"] == 1
    assert len(store.found(store.build())) == 1


def test_what_a_frame_lacked_when_it_was_computed_is_told_by_reading_again(
    weir: Installation,
) -> None:
    stream = weir.create("s/one", segments=1)
    rows = weir.spark.createDataFrame([("a", n) for n in range(5)], "k string, n long").coalesce(1)
    weir.append(stream, rows)
    weir.append(stream, rows)
    [file, _] = files(weir, str(stream))
    content = file.read_bytes()

    def read() -> DataFrame:
        return read_again(str(stream), spark=weir.spark, settings=weir.settings)

    def recover_says() -> list[LostReport]:
        return recover(weir.database, weir.settings.warehouse, request_id=unique("recover"))["lost"]

    frame = read()
    file.unlink()
    with pytest.raises(
        (PySparkException, Py4JJavaError), match=file.name
    ):  # in an action that is not Weir's
        frame.collect()
    with raises(f"file_missing 5 {stream} missing 0.0=5"):
        read()
    [lost] = recover_says()
    assert (lost["stream"], lost["events"]) == (str(stream), 5)
    file.write_bytes(content[:-20])
    Path(file.parent, f".{file.name}.crc").unlink(missing_ok=True)
    with pytest.raises((PySparkException, Py4JJavaError), match=file.name):
        frame.collect()
    with raises(f"file_missing 5 {stream} damaged"):
        shared(weir.settings).read(str(stream))
    file.write_bytes(content)
    frame = read()
    weir.truncate(stream, "0.0=5")
    sweep(weir.database, weir.settings.warehouse, 0.0)
    with pytest.raises((PySparkException, Py4JJavaError), match=file.name):
        frame.collect()
    assert read().count() == 5, "what is left, with nothing to mend"
    assert recover_says() == []
