"""A streaming query of Spark as the reader of a group."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.query import StreamingQuery

from tests.crash.jobs import write_config
from tests.raises import raises
from tests.spark.installation import Installation, setting
from weir.annex.audit.run import audit
from weir.controller import queries
from weir.controller.seal import seal_stream
from weir.model.names import StreamName
from weir.reader_groups.checkpoints.periodic import checkpoint_all
from weir.reader_groups.groups.readers import reader_offline, readers_of
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.groups.update import update_reader_group
from weir.retention.delete_stream import delete_stream
from weir.retention.run import retain
from weir.spark import Reader


class Query:
    """A query of a group, with a checkpoint and what its sink was given: by number of the micro-
    batch, so that one that is repeated takes the place of the one before."""

    def __init__(self, weir: Installation, group: str, folder: Path, **options: Any) -> None:
        self.weir, self.group, self.options = weir, group, options
        self.checkpoint = folder
        self.config = str(write_config(weir.settings))
        self.sink: dict[int, list[int]] = {}
        self.given = 0  # how many events the sink was given, again those that were repeated
        self.fails = 0  # how many micro-batches fail after their sink was given them

    def start(self, **trigger: Any) -> StreamingQuery:
        source = self.weir.spark.readStream.format("weir").options(
            config=self.config, readerGroup=self.group, **self.options
        )
        writer = source.load().writeStream.foreachBatch(self._publish)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        return (writer.trigger(**trigger) if trigger else writer).start()

    def run(self) -> list[int]:
        """Run to the present tail, and return all that the sink has."""
        query = self.start(availableNow=True)
        assert query.awaitTermination(120)
        return self.read

    def _publish(self, frame: DataFrame, number: int) -> None:
        rows = [row.n for row in frame.collect()]
        self.sink[number] = rows
        self.given += len(rows)
        if self.fails:
            self.fails -= 1
            raise RuntimeError("the sink fails")

    @property
    def read(self) -> list[int]:
        """The events of the sink, by value."""
        return sorted(n for rows in self.sink.values() for n in rows)


@pytest.fixture
def stream(weir: Installation) -> StreamName:
    found = weir.create(segments=2)
    put(weir, found, 0, 100)
    return found


def put(weir: Installation, stream: StreamName, first: int, count: int) -> None:
    rows = [(f"key {n % 7}", n) for n in range(first, first + count)]
    weir.append(stream, weir.spark.createDataFrame(rows, "k string, n long"))


def lag(weir: Installation, group: str) -> int:
    return int(weir.value(f"SELECT unread_events FROM weir.lag WHERE reader_group = '{group}'"))


def test_a_query_reads_as_the_reader_of_its_group_and_goes_on_where_it_stopped(
    weir: Installation, stream: StreamName, tmp_path: Path
) -> None:
    group = weir.group(stream)
    query = Query(weir, group, tmp_path / "checkpoint", maxEventsPerTrigger=30)
    assert query.run() == list(range(100))
    assert len(query.sink) >= 2
    assert lag(weir, group) == 0, "the last micro-batch is committed, too"
    weir.scale(stream, ["0.0"], parts=2)
    put(weir, stream, 100, 50)
    assert lag(weir, group) == 50
    assert query.run() == list(range(150))
    assert query.given == 150
    [(batches, readers)] = weir.query(
        "SELECT count(*), count(DISTINCT reader_id) FROM reader_batch WHERE state = 'committed'"
    )
    assert (batches, readers) == (len(query.sink), 1)


def test_a_micro_batch_that_fails_is_repeated_with_the_same_events_and_counts_once(
    weir: Installation, stream: StreamName, tmp_path: Path
) -> None:
    group = weir.group(stream)
    query = Query(weir, group, tmp_path / "checkpoint", maxEventsPerTrigger=30)
    query.fails = 1
    with pytest.raises(StreamingQueryException, match="the sink fails"):
        query.run()
    before = query.sink[0]
    assert before
    assert lag(weir, group) == 100
    query.fails = 1
    with pytest.raises(StreamingQueryException, match="the sink fails"):
        query.run()
    assert query.sink == {0: before}
    put(weir, stream, 100, 10)
    assert query.run() == list(range(110))
    assert query.given == 110 + 2 * len(before)
    assert lag(weir, group) == 0
    assert audit(weir.database, everything=True).counter_examples == []
    attempts = weir.query("SELECT attempt FROM reader_batch ORDER BY batch_id LIMIT 1")
    assert attempts == [(3,)]


@pytest.mark.release
def test_a_query_is_the_only_reader_of_its_group_until_it_is_taken_offline(
    weir: Installation, stream: StreamName, tmp_path: Path
) -> None:
    group = weir.group(stream)
    first = Query(weir, group, tmp_path / "first", maxEventsPerTrigger=30)
    first.fails = 1
    with pytest.raises(StreamingQueryException, match="the sink fails"):
        first.run()
    begun = first.sink[0]
    (reader,) = weir.database.transaction(lambda c: readers_of(c, group))
    second = Query(weir, group, tmp_path / "second")
    with pytest.raises(
        StreamingQueryException, match=rf"a streaming query, '{reader}'.*\[group_has_readers\]"
    ):
        second.run()
    with raises("group_has_readers checkpoint"):
        weir.consumer(group, lambda e: e, "parquet:out").run()
    reader_offline(weir.database, group, reader, request_id="offline")
    assert second.run() == list(range(100)), "whatever the first one wrote is read again"
    assert second.sink[0] == begun
    assert lag(weir, group) == 0
    with pytest.raises(StreamingQueryException, match=f"belongs to reader '{reader}'"):
        first.run()
    third = weir.group(stream, name="third")
    with Reader(weir.spark, third, installation=weir.opened) as other:
        next(iter(other))
        with pytest.raises(
            StreamingQueryException, match=r"only reader of its group.*\[group_has_readers\]"
        ):
            Query(weir, third, tmp_path / "third").run()


@pytest.mark.release
def test_a_query_with_an_old_checkpoint_is_refused_and_changes_nothing(
    weir: Installation, stream: StreamName, tmp_path: Path
) -> None:
    group = weir.group(stream)
    query = Query(weir, group, tmp_path / "checkpoint", maxEventsPerTrigger=60)
    assert query.run() == list(range(100))
    shutil.copytree(query.checkpoint, tmp_path / "old")
    old = Query(weir, group, tmp_path / "old")
    put(weir, stream, 100, 10)
    assert query.run() == list(range(110))
    with pytest.raises(StreamingQueryException, match="of which the checkpoint knows nothing"):
        old.run()
    put(weir, stream, 110, 10)
    assert query.run() == list(range(120)), "the refused one has not fenced it"
    reset_reader_group(weir.database, group, "start", allow_repeat=True, request_id="reset")
    with pytest.raises(
        StreamingQueryException, match=r"the group was reset.*\[checkpoint_differs\]"
    ):
        query.run()
    assert Query(weir, group, tmp_path / "new").run() == list(range(120))
    assert audit(weir.database, everything=True).counter_examples == []


def kept(weir: Installation, stream: StreamName) -> int:
    """How many events are left after retention."""
    checkpoint_all(weir.database)
    retain(weir.database, [stream])
    return weir.frame(stream).count()


@pytest.mark.release
def test_retention_waits_for_a_query_that_has_stopped(weir: Installation, tmp_path: Path) -> None:
    stream = weir.create("s/consumed", segments=2, retention="consumed")
    put(weir, stream, 0, 100)
    group = weir.group(stream, subscriber=True)
    query = Query(weir, group, tmp_path / "checkpoint", maxEventsPerTrigger=60)
    query.fails = 1
    with pytest.raises(StreamingQueryException, match="the sink fails"):
        query.run()
    assert kept(weir, stream) == 100, "nothing of it is released"
    assert query.run() == list(range(100))
    assert kept(weir, stream) == 0
    for _ in range(2):  # idle, at the tail of a stream without events
        assert query.run() == list(range(100))
    put(weir, stream, 100, 5)
    assert query.run() == list(range(105))


@pytest.mark.release
def test_a_query_says_which_events_it_lost_and_which_stream_it_cannot_read(
    weir: Installation, stream: StreamName, tmp_path: Path
) -> None:
    group = weir.group(stream, on_gap="fail")
    query = Query(weir, group, tmp_path / "checkpoint")
    assert query.run() == list(range(100))
    put(weir, stream, 100, 20)
    tail = weir.database.snapshot(lambda c: queries.stream_info(c, stream).tail)
    weir.truncate(stream, ", ".join(f"{segment}={offset}" for segment, offset in tail.items()))
    with pytest.raises(StreamingQueryException, match="20 events of stream s/events"):
        query.run()
    update_reader_group(weir.database, group, on_gap="skip", request_id="skips")
    put(weir, stream, 120, 5)
    assert query.run() == [*range(100), *range(120, 125)]
    for everything in (False, True):
        assert audit(weir.database, everything=everything).counter_examples == []
    seal_stream(weir.database, stream, request_id="seal")
    delete_stream(weir.database, stream, unread_too=True, request_id="delete")
    weir.create()
    with pytest.raises(PySparkException, match="was deleted; create another reader group"):
        query.run()


@pytest.mark.release
def test_a_query_of_named_sources_goes_on_when_one_is_added_before_the_others(
    weir: Installation, stream: StreamName, tmp_path: Path
) -> None:
    other = weir.create("s/other", segments=2)
    put(weir, other, 1000, 10)
    config = str(write_config(weir.settings))
    given: list[Row] = []
    groups = {stream: weir.group(stream), other: weir.group(other, name="others")}

    def named(source: StreamName) -> DataFrame:
        options = {"config": config, "readerGroup": groups[source]}
        reader = weir.spark.readStream.format("weir").options(**options)
        return reader.name(groups[source]).load()

    def run(frame: DataFrame) -> list[int]:
        given.clear()
        writer = frame.writeStream.foreachBatch(lambda rows, _: given.extend(rows.collect()))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert writer.trigger(availableNow=True).start().awaitTermination(120)
        return sorted(row.n for row in given)

    evolves = {
        "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
        "spark.sql.streaming.offsetLog.formatVersion": "2",
    }
    with setting(weir.spark, evolves):
        assert run(named(stream)) == list(range(100))
        put(weir, stream, 100, 5)
        both = run(named(other).union(named(stream)))
        assert both == [*range(100, 105), *range(1000, 1010)]
    assert [lag(weir, group) for group in groups.values()] == [0, 0]


@pytest.mark.release
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"start": "tail"}, "start is given with readerGroup; leave start out"),
        ({"onGap": "skip"}, "onGap is given with readerGroup"),
        ({"readerGroup": "aligned"}, "[group_unsuitable]"),
        ({"readerGroup": "s/store"}, "[name_invalid]"),
        ({"readerGroup": "nobody"}, "there is no reader group nobody"),
        ({"path": "s/other"}, "reader group readers reads stream s/events, not s/other"),
        ({"maxBytesPerTrigger": "much"}, "maxBytesPerTrigger is 'much'; it must be a whole number"),
        ({"readerGroop": "readers"}, "has no option 'readergroop'; write readerGroup"),
    ],
)
def test_a_wrong_option_of_a_query_is_refused_with_one_sentence(
    weir: Installation, stream: StreamName, options: dict[str, str], says: str
) -> None:
    config = str(write_config(weir.settings))
    weir.group(stream, name="aligned", aligned=True)
    given = {"config": config, "readerGroup": weir.group(stream), **options}
    with pytest.raises(PySparkException, match=re.escape(says)):
        weir.spark.readStream.format("weir").options(**given).load()
