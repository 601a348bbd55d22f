"""The format `weir`: the same events as the native read, in batches and in a streaming query."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from tests.crash.jobs import write_config
from tests.released import only
from tests.spark.installation import Installation
from tests.world import questions as queries
from tests.world.streams import Lane
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.model.names import StreamName
from weir.retention.prune import prune
from weir.settings import Settings
from weir.spark.reads.source import WeirSource


def rows(weir: Installation, start: int, count: int) -> DataFrame:
    found = [(f"key {n % 7}", n) for n in range(start, start + count)]
    return weir.spark.createDataFrame(found, "k string, n long")


def fill(weir: Installation, stream: StreamName) -> None:
    weir.append(stream, rows(weir, 0, 100))
    weir.scale(stream, ["0.0"], parts=2)
    weir.append(stream, rows(weir, 100, 100))


def test_the_format_reads_what_the_native_way_reads(weir: Installation, config: str) -> None:
    stream = weir.create(segments=2)
    fill(weir, stream)
    frame = weir.spark.read.format("weir").option("config", config).load(str(stream))
    native = weir.frame(stream)
    assert frame.schema == native.schema
    assert sorted(frame.collect()) == sorted(native.collect())
    part = (
        weir.spark.read.format("weir")
        .option("config", config)
        .option("start", json.dumps({"0.0": 10, "1.0": 0}))
        .option("end", json.dumps({"0.0": 20, "1.0": 5}))
        .load(str(stream))
    )
    assert sorted((r._segment, r._offset) for r in part.collect()) == [
        *((0, n) for n in range(10, 20)), *((1, n) for n in range(5)),
    ]  # fmt: skip


def micro_batches(
    weir: Installation, config: str, stream: StreamName, folder: Path
) -> DataStreamWriter:
    """A streaming query of sixty events at a time, that remembers where it is."""
    source = weir.spark.readStream.format("weir")
    source = source.options(config=config, maxEventsPerTrigger="60")
    checkpoint = str(folder / "checkpoint")
    return source.load(str(stream)).writeStream.option("checkpointLocation", checkpoint)


def test_a_streaming_query_reads_each_event_once_in_micro_batches(
    weir: Installation, config: str, tmp_path: Path
) -> None:
    stream = weir.create(segments=2)
    fill(weir, stream)
    batches: list[list[tuple[str, int]]] = []

    def run() -> None:
        query = (
            micro_batches(weir, config, stream, tmp_path)
            .foreachBatch(lambda frame, _: batches.append([(r.k, r.n) for r in frame.collect()]))
            .start()
        )
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    run()
    read = [event for batch in batches for event in batch]
    assert sorted(n for _, n in read) == list(range(200))
    assert len([batch for batch in batches if batch]) >= 3
    assert max(map(len, batches)) <= 100
    for key in {k for k, _ in read}:
        of_key = [n for k, n in read if k == key]
        assert of_key == sorted(of_key), "a key's events came out of order"
    batches.clear()
    weir.append(stream, rows(weir, 200, 10))
    run()
    assert sorted(n for batch in batches for _, n in batch) == list(range(200, 210))


@pytest.mark.release
def test_a_query_of_what_is_available_now_reads_it_in_micro_batches_and_ends(
    weir: Installation, config: str, tmp_path: Path
) -> None:
    stream = weir.create(segments=2)
    fill(weir, stream)
    batches: list[list[int]] = []

    def publish(frame: DataFrame, _: int) -> None:
        if not batches:
            weir.scale(stream, ["1.0"], parts=2)
            weir.append(stream, rows(weir, 200, 100))  # the query does not run after these
        batches.append([row.n for row in frame.collect()])

    def run() -> list[int]:
        query = (
            micro_batches(weir, config, stream, tmp_path)
            .foreachBatch(publish)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        return sorted(n for batch in batches for n in batch)

    assert run() == list(range(200))
    assert len(batches) >= 3
    assert max(map(len, batches)) <= 100
    assert run() == list(range(300))


@pytest.mark.parametrize("most", only(None, of=[None, 60]))
def test_a_query_that_fell_behind_the_head_says_what_it_lost_or_skips_it(
    weir: Installation, config: str, tmp_path: Path, most: int | None
) -> None:
    stream = weir.create(segments=1)
    weir.append(stream, rows(weir, 0, 10))
    read: list[int] = []

    def run(on_gap: str) -> list[int]:
        read.clear()
        source = weir.spark.readStream.format("weir").option("config", config)
        source = source.option("onGap", on_gap)
        if most is not None:
            source = source.option("maxEventsPerTrigger", most)
        query = (
            source.load(str(stream))
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .foreachBatch(lambda frame, _: read.extend(r.n for r in frame.collect()))
            .start()
        )
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return sorted(read)

    assert run("fail") == list(range(10))
    weir.append(stream, rows(weir, 10, 40))
    weir.append(stream, rows(weir, 50, 40))
    weir.truncate(stream, "0.0=55")  # of the first file nothing is left, of the second a part
    with pytest.raises(PySparkException, match="45 events of stream s/events after the cut"):
        run("fail")
    assert run("skip") == list(range(55, 90))
    weir.scale(stream, ["0.0"], parts=1)
    weir.append(stream, rows(weir, 90, 20))
    weir.truncate(stream, "1.1=5")
    assert prune(weir.database, 0.0) != []
    with pytest.raises(PySparkException, match=r"segment 0\.0 .* \[events_truncated\]"):
        run("fail")
    assert run("skip") == list(range(95, 110))


@pytest.mark.release
@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("start", "[1]", "[cut_invalid]"),
        ("start", "5", "[cut_invalid]"),
        ("start", '{"0.0": 11}', "InvalidInput: offset 11 does not exist in segment 0.0"),
        ("end", '{"9.0": 1}', "[cut_invalid]"),
        ("onGap", "ignore", "onGap is 'ignore'; it must be fail or skip. [argument_invalid]"),
        ("maxEventsPerTrigger", "0", "maxEventsPerTrigger is '0'; it must be a whole number"),
        ("maxEventsPerTrigger", "many", "maxEventsPerTrigger is 'many'; it must be a whole number"),
    ],
)
def test_an_option_that_is_none_is_said(
    weir: Installation, config: str, option: str, value: str, says: str
) -> None:
    stream = weir.create(segments=1)
    weir.append(stream, rows(weir, 0, 10))
    frame = weir.spark.read.format("weir").option("config", config).option(option, value)
    with pytest.raises(PySparkException) as refused:
        frame.load(str(stream)).collect()
    first, *rest = str(refused.value).splitlines()
    assert says in first
    assert [line for line in rest if "SQLSTATE" not in line] == []  # no traceback


@pytest.mark.release
def test_an_unknown_stream_is_said(weir: Installation, config: str) -> None:
    with pytest.raises(PySparkException) as refused:
        weir.spark.read.format("weir").option("config", config).load("s/nowhere")
    assert "NotFound: there is no stream s/nowhere" in str(refused.value).splitlines()[0]


def test_a_micro_batch_goes_on_over_many_epochs_up_to_its_budget(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database, segments=1)
    lane.append({"0.0": 2})
    for _ in range(29):
        [follows] = lane.scale(*lane.active(), parts=1)
        lane.append({follows: 2})
    given = {"path": str(lane.name), "config": str(write_config(settings))}

    def reading(most: int) -> DataSourceStreamReader:
        source = WeirSource({**given, "maxEventsPerTrigger": str(most)})
        return source.streamReader(StructType([]))

    few, many = reading(31), reading(1000)
    head = few.initialOffset()
    assert many.latestOffset(head, ReadMaxRows(1000)) == lane.tail()
    half = few.latestOffset(head, ReadMaxRows(31))
    sizes = database.transaction(lambda c: queries.size_between(c, lane.name, head, half))
    assert sizes.events == 31
    assert isinstance(many, SupportsTriggerAvailableNow)
    many.prepareForTriggerAvailableNow()
    lane.append({follows: 50})
    assert many.latestOffset(half, ReadMaxRows(1000)) == {follows: 2}


@pytest.mark.release
def test_the_format_reads_between_two_times_and_a_query_ends_there(
    weir: Installation, config: str, tmp_path: Path
) -> None:
    stream = weir.create(segments=2)
    weir.append(stream, rows(weir, 0, 50))
    since = weir.value("SELECT clock_timestamp()")
    fill(weir, stream)
    until = weir.value("SELECT clock_timestamp()")
    hour = {"config": config, "since": str(since), "until": until.isoformat()}
    batch = weir.spark.read.format("weir").options(**hour)
    first = sorted(row.n for row in batch.load(str(stream)).collect())
    assert first == list(range(200))
    weir.append(stream, rows(weir, 200, 10))
    assert sorted(row.n for row in batch.load(str(stream)).collect()) == first
    read: list[int] = []
    query = (
        weir.spark.readStream.format("weir")
        .options(**hour, maxEventsPerTrigger="60").load(str(stream))
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .foreachBatch(lambda frame, _: read.extend(row.n for row in frame.collect()))
        .trigger(availableNow=True)
        .start()
    )  # fmt: skip
    assert query.awaitTermination(60)
    assert sorted(read) == first
    with pytest.raises(PySparkException, match="'noon' is not a time"):
        batch.option("until", "noon").load(str(stream))


@pytest.mark.release
def test_files_that_no_row_of_a_filter_can_be_in_are_not_opened(
    weir: Installation, config: str
) -> None:
    stream = weir.create(segments=2, event_time="at")
    for n in range(1, 4):
        day = f"timestamp'2013-06-0{n} 12:00:00 UTC' AS at"
        weir.append(stream, rows(weir, 100 * n, 100).selectExpr("k", "n", day).coalesce(1))
    noon = [datetime(2013, 6, n, 12, tzinfo=UTC) for n in range(4)[1:]]
    first = int(weir.value("SELECT min(clock) FROM transaction WHERE clock IS NOT NULL"))
    source = WeirSource(CaseInsensitiveDict(path=str(stream), config=config))

    def opened(*filters: Filter) -> int:
        reader = source.reader(source.schema())
        assert list(reader.pushFilters(list(filters))) == list(filters), "Spark applies them, too"
        parts: list[Any] = list(reader.partitions())
        return sum(len(part.slices) for part in parts)

    assert opened() == 6
    assert opened(EqualTo(("k",), "key 3")) == 3
    assert opened(In(("k",), ("key 3",)), LessThan(("_offset",), 5)) == 1
    assert opened(GreaterThan(("at",), noon[1])) == 2
    assert opened(LessThanOrEqual(("at",), noon[0]), EqualTo(("_segment",), 1)) == 1
    assert opened(EqualTo(("_clock",), first)) == 2
    assert opened(Not(EqualTo(("_segment",), 0)), IsNotNull(("k",))) == 6
    assert opened(EqualTo(("n",), 105)) == 6
    assert opened(EqualTo(("_segment",), 7)) == 0
    later = {"event_time": "at + interval 1 day"}
    at = "if(n % 2 = 0, timestamp'9999-12-31', timestamp'2013-06-01') AS at"
    weir.append(stream, rows(weir, 0, 100).selectExpr("k", "n", at).coalesce(1))
    assert opened(GreaterThan(("at",), noon[1])) == 4, "what is no event time is in no bounds"
    update_stream(weir.database, stream, later, request_id="later")
    assert opened(GreaterThan(("at",), noon[1])) == 8, "what is known is of another meaning"

    native = weir.frame(stream).where("k = 'key 3' AND _offset >= 10 AND _offset < 14")
    wanted = sorted(native.collect())
    reader = weir.spark.read.format("weir").options(config=config, columns="n, _offset, k")
    frame = reader.load(str(stream)).where("k = 'key 3' AND _offset >= 10 AND _offset < 14")
    weir.spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for other in sorted(Path(weir.settings.warehouse).rglob("_weir_tx=[23]/**/*.parquet")):
            other.unlink()
        found = frame.collect()
    finally:
        weir.spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert frame.columns == ["n", "_offset", "k"]
    assert sorted((r.n, r._offset) for r in found) == sorted((r.n, r._offset) for r in wanted) != []


@pytest.mark.release
@pytest.mark.parametrize(
    ("limit", "most"), [("maxBytesPerTrigger", "1k"), ("maxFilesPerTrigger", "2")]
)
def test_a_micro_batch_has_at_most_so_many_bytes_or_files(
    weir: Installation, config: str, tmp_path: Path, limit: str, most: str
) -> None:
    stream = weir.create(segments=2)
    fill(weir, stream)
    weir.append(stream, rows(weir, 200, 100))
    batches: list[list[int]] = []
    source = weir.spark.readStream.format("weir").options(config=config, **{limit: most})
    query = (
        source.load(str(stream)).writeStream.trigger(availableNow=True)
        .foreachBatch(lambda frame, _: batches.append(sorted(r.n for r in frame.collect())))
        .option("checkpointLocation", str(tmp_path)).start()
    )  # fmt: skip
    assert query.awaitTermination(120)
    assert batches == [list(range(100)), list(range(100, 200)), list(range(200, 300))]
    tail = weir.database.snapshot(lambda c: queries.stream_info(c, stream).tail)
    assert query.lastProgress is not None
    assert json.loads(query.lastProgress.sources[0].latestOffset or "") == dict(tail)
