"""Files are put together, and the old ones swept, in the middle of what Spark does with them: each
event is there once, and old files stay as long as something that protects them uses them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

import weir as library
import weir.spark
from tests.compaction.world import EVER
from tests.spark.adjunct_world import EVENTS, LONG, WAYS, World, reading
from tests.spark.installation import Installation, parquet_rows
from tests.world.garbage import sweep
from weir.adjunct.expiry import expire_versions
from weir.compaction.run import compact
from weir.model.names import StreamName
from weir.programs.opening import shared
from weir.spark.adjuncts import writer
from weir.spark.reads.frames import frame_of as frame_of_slices

pytestmark = pytest.mark.release
OTHER = "s/other"


def files(weir_: Installation, *streams: StreamName) -> set[str]:
    """Return the files that streams have now."""
    rows = weir_.query(
        "SELECT path FROM data_file WHERE stream_name = ANY (:s)", s=[str(s) for s in streams]
    )
    return {row.path for row in rows}


def there(weir_: Installation, paths: set[str]) -> set[str]:
    return {path for path in paths if Path(weir_.settings.warehouse, path).exists()}


def swept(weir_: Installation, compacted_grace: float = 0.0) -> None:
    sweep(weir_.database, weir_.settings.warehouse, 0.0, compacted_grace=compacted_grace)


def replaced(weir_: Installation, *streams: StreamName, grace: float = 0.0) -> set[str]:
    """Put the files of streams together, and sweep what is not protected; return those before."""
    before = files(weir_, *streams)
    compact(weir_.database, weir_.settings, EVER, streams, thorough=True)
    assert not before & files(weir_, *streams), "each file was replaced"
    swept(weir_, grace)
    return before


@pytest.fixture
def append(weir: Installation) -> Callable[..., None]:
    """Return what appends `count` times five events to a stream, without Spark."""
    numbers: dict[str, int] = {}

    def append(stream: StreamName, count: int = 6) -> None:
        for _ in range(count):
            begin = numbers.get(str(stream), 0)
            rows = range(begin, begin + 5)
            table = pa.table({"k": [f"key {n % 4}" for n in rows], "n": list(rows)})
            shared(weir.settings).append(str(stream), table, writer_id="w", batch_id=str(begin))
            numbers[str(stream)] = begin + 5

    return append


def all_rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def test_a_batch_keeps_its_files_and_its_version_of_a_store_until_it_ends(
    weir: Installation, append: Callable[..., None]
) -> None:
    world = World.beside_events(weir)
    other = weir.create(OTHER, segments=2)
    for stream in (EVENTS, other):
        append(stream)
    for n in range(3):
        world.append([("key 1", n, "u"), ("key 2", n, "u")])
    store = world.store(WAYS["whole"], history=LONG, keep_versions=1)
    append(EVENTS)
    weir.group(EVENTS, other, name="aligned", aligned=True)
    read_by = {path.split("/")[0] for path in files(weir, EVENTS, other)}
    delivered: list[tuple[str, int]] = []
    with reading(weir, store, group="aligned", order="stream") as reader:
        batch = next(reader)
        frames = {
            "events": batch.events_of(str(EVENTS)), "other": batch.events_of(OTHER),
            "merged": batch.merged(), "values": batch.adjunct(store.name),
            "as of": batch.enrich(
                batch.events_of(str(EVENTS)), store.name, "k", as_of=True, prefix="v_"
            ),
        }  # fmt: skip
        before = {what: all_rows(frame) for what, frame in frames.items()}
        assert len({row.v_n for row in frames["as of"].collect()}) > 1
        for stream in (EVENTS, other):
            append(stream, 1)
        world.append([("key 1", 100, "u")])
        old = replaced(weir, EVENTS, other, world.stream)
        store.build()
        expire_versions(weir.database)
        swept(weir)
        assert there(weir, old) >= {path for path in old if path.split("/")[0] in read_by}
        fresh = {
            "events": batch.events_of(str(EVENTS)), "other": batch.events_of(OTHER),
            "merged": batch.merged(), "values": batch.adjunct(store.name),
        }  # fmt: skip
        for what, frame in [*frames.items(), *fresh.items()]:
            assert all_rows(frame) == before[what], what
        delivered += [(row._stream, row.n) for row in fresh["merged"].collect()]
        batch.commit()
        swept(weir)
        assert there(weir, old) == set()
    with reading(weir, store, group="aligned", order="stream") as reader:
        for batch in reader:
            delivered += [(row._stream, row.n) for row in batch.merged().collect()]
            batch.commit()
    wanted = [(str(EVENTS), n) for n in range(65)] + [(OTHER, n) for n in range(35)]
    assert sorted(delivered) == sorted(wanted)


def test_a_build_reads_the_files_that_it_began_with(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.made(weir)
    store = world.store(WAYS["deletes"], history=LONG)
    world.append([("a", 1, "u"), ("b", 2, "u")])
    store.build()
    for n in range(4):
        world.append([("a", n, "u"), ("c", n, "d" if n % 2 else "u"), ("b", n, "d")])
    read, seen = frame_of_slices, list[set[str]]()

    def frame_of(*given: Any, **how: Any) -> DataFrame:
        seen.append(replaced(weir, world.stream))  # after the plan, before the first file is read
        return read(*given, **how)

    with monkeypatch.context() as patch:
        patch.setattr(writer, "frame_of", frame_of)
        version = store.build()
    [old] = seen
    assert there(weir, old) == old
    assert store.found(version) == store.expected() != {}
    swept(weir)
    assert there(weir, old) == set()


def test_a_consumer_writes_each_event_once_though_each_batch_s_files_are_replaced(
    weir: Installation, append: Callable[..., None]
) -> None:
    stream = weir.create("s/in", segments=2)
    append(stream, 12)
    weir.group(stream)
    olds: list[set[str]] = []

    def function(events: DataFrame) -> DataFrame:
        if len(olds) < 3:
            append(stream, 3)
            olds.append(replaced(weir, stream))
            assert there(weir, olds[-1]) == olds[-1]
        return events.select("k", "n")

    for _ in range(2):  # the second run reads what was appended during the first one
        weir.consumer("readers", function, "parquet:copy", batch_events=25).run()
    assert len(olds) == 3
    swept(weir)
    assert there(weir, set().union(*olds)) == set()
    assert parquet_rows(weir, "readers", "copy") == list(range(5 * 21))


def test_a_streaming_query_reads_each_event_once_and_reads_again_what_was_swept(
    weir: Installation, append: Callable[..., None], config: str, tmp_path: Path
) -> None:
    stream = weir.create("s/in", segments=2)
    append(stream, 12)
    batches: dict[int, list[int]] = {}
    graces = iter([weir.settings.compacted_grace, 0.0])  # of sweeps in the middle of a micro-batch

    def publish(frame: DataFrame, number: int) -> None:
        grace = next(graces, None)
        if grace is not None:
            append(stream, 3)
            old = replaced(weir, stream, grace=grace)
            assert there(weir, old) == (old if grace else set())
        batches[number] = sorted(row.n for row in frame.collect())

    def run() -> None:
        source = weir.spark.readStream.format("weir").options(
            config=config, maxEventsPerTrigger="25"
        )
        query = (
            source.load(str(stream))
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .foreachBatch(publish)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    with pytest.raises(PySparkException, match=r"read again\. \[file_swept\]"):
        run()
    assert list(batches) == [0]
    first = batches[0]
    run()
    assert batches[0] == first
    assert sorted(n for batch in batches.values() for n in batch) == list(range(5 * 18))


def test_a_plain_read_has_a_grace_period_and_then_says_that_it_is_to_be_read_again(
    weir: Installation, append: Callable[..., None]
) -> None:
    streams = [weir.create(name, segments=2) for name in ("s/one", "s/two")]
    for _ in range(4):
        for stream in streams:
            append(stream, 2)
    names = [str(stream) for stream in streams]

    def read() -> DataFrame:
        return library.spark.read(names, spark=weir.spark, settings=weir.settings, order="stream")

    frame = read()
    before = [tuple(row) for row in frame.collect()]
    assert len(before) == 80
    old = replaced(weir, *streams, grace=weir.settings.compacted_grace)
    assert there(weir, old) == old
    assert [tuple(row) for row in frame.collect()] == before
    swept(weir)
    assert there(weir, old) == set()
    with pytest.raises(Py4JJavaError, match="FILE_NOT_EXIST"):  # never fewer rows
        frame.collect()
    assert [tuple(row) for row in read().collect()] == before
