"""Split points from real files: the loads that were appended, whatever segments they lie in."""

import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from tests.spark.installation import Installation
from tests.spark.xxh64 import position
from weir.controller.update import update_stream
from weir.kernel.attempt import Attempt
from weir.model.names import StreamName
from weir.model.segment import Segment
from weir.model.split_points import Found, HotSegment
from weir.spark.reads import split_points as module
from weir.spark.reads.split_points import find_split_points


def hot(
    weir: Installation, stream: StreamName, *names: str, pieces: int = 4, rate: float = 400.0,
    since: int = 0, unit: str = "events",
) -> list[HotSegment]:  # fmt: skip
    """The active segments of a stream, or those named; their target is 100 per second."""
    rows = weir.query(
        """SELECT stream_id, segment_id, key_low, key_high FROM segment
        JOIN stream s USING (stream_id) WHERE s.stream_name = :s AND sealed_epoch IS NULL
        ORDER BY key_low""",
        s=str(stream),
    )
    found = [HotSegment(row[0], Segment(*row[1:]), pieces, rate, 100, unit, since) for row in rows]
    return [one for one in found if not names or one.segment.name in names]


def find(weir: Installation, segments: Sequence[HotSegment]) -> Found:
    return find_split_points(weir.spark, weir.database, weir.settings, segments)


def shares(weir: Installation, one: HotSegment, points: Sequence[float]) -> list[float]:
    """What each piece holds of all events of the stream in the segment, by their places."""
    name = weir.value("SELECT stream_name FROM stream WHERE stream_id = :s", s=one.stream_id)
    keys = [row.k for row in weir.spark.createDataFrame(
        weir.facts(StreamName(*name.split("/")))[["k"]]).collect()]  # fmt: skip
    places = [position(key) for key in keys]
    inside = [p for p in places if one.segment.key_low <= p < one.segment.key_high]
    bounds = [one.segment.key_low, *points, one.segment.key_high]
    return [sum(a <= p < b for p in inside) / len(inside) for a, b in pairwise(bounds)]


def test_skewed_segments_of_several_streams_are_cut_into_equal_loads(weir: Installation) -> None:
    one, two = weir.create("s/one", segments=2), weir.create("s/two", key="upper(k)", segments=1)
    skewed = [(f"KEY {int(i**0.5)}", i) for i in range(4000)]
    for stream in (one, two):
        weir.append(stream, skewed[:3000])
        weir.append(stream, skewed[3000:])
    segments = [*hot(weir, one), *hot(weir, two, pieces=3)]
    found = find(weir, segments)
    assert found.failed == {}
    assert len(found.points) == 3
    for segment in segments:
        points = found.points[segment.stream_id, segment.segment.segment_id]
        assert len(points.points) == segment.pieces - 1
        held = shares(weir, segment, points.points)
        # 64 keys, the heaviest with 3 %: no piece is further from its share than a key.
        assert max(held) < 1 / segment.pieces + 0.07
        assert held == pytest.approx(points.shares, abs=1e-9)
        assert points.hot_keys == ()


@pytest.mark.release
def test_events_without_a_key_count_where_their_ranks_have_spread_them(weir: Installation) -> None:
    stream = weir.create(segments=1, on_missing_key="spread")
    weir.append(stream, [(None if i % 4 else "key", i) for i in range(4000)])
    (segment,) = hot(weir, stream, rate=200.0)
    (found,) = find(weir, [segment]).points.values()
    assert found.hot_keys == ()
    assert len(found.points) == 3
    assert max(found.shares) < 0.3
    # A key that is hot beside them is named, they are not.
    (found,) = find(weir, hot(weir, stream, rate=800.0)).points.values()
    assert [(one.key, one.share) for one in found.hot_keys] == [("key", 0.25)]


@pytest.mark.release
def test_events_without_a_key_do_not_count_in_a_stream_that_no_longer_spreads_them(
    weir: Installation,
) -> None:
    stream = weir.create(segments=1, on_missing_key="spread")
    weir.append(stream, [(f"key {i % 100}", i) for i in range(1000)])
    (before,) = find(weir, hot(weir, stream, rate=200.0)).points.values()
    weir.append(stream, [(None, i) for i in range(1000)])
    update_stream(weir.database, stream, {"on_missing_key": "fail"}, request_id="fail")
    (after,) = find(weir, hot(weir, stream, rate=200.0)).points.values()
    assert after == before


@pytest.mark.release
def test_copies_of_a_roll_have_the_load_of_their_originals(weir: Installation) -> None:
    stream = weir.create(segments=1)
    opened = weir.appender.begin_frame(stream, "test", "early")
    assert isinstance(opened, Attempt)
    weir.scale(stream, ["0.0"], parts=2)
    weir.append(stream, [(f"key {i % 100}", i) for i in range(1000)])
    before = find(weir, hot(weir, stream))
    rows = weir.spark.createDataFrame([("late", i) for i in range(1000)], "k string, n long")
    attempts = [opened]
    with weir.appender.writing(attempts):
        weir.appender.commit(weir.appender.stage_frame(attempts, rows))
    after = find(weir, hot(weir, stream))
    (low, high) = hot(weir, stream)
    assert low.segment.epoch > 1, "nothing was rolled"
    mine, other = (low, high) if position("late") < 0.5 else (high, low)
    copy = after.points[mine.stream_id, mine.segment.segment_id]
    assert [one.key for one in copy.hot_keys] == ["late"]
    share = 1000 / (1000 + round(shares_of(weir, stream, mine)))
    assert copy.hot_keys[0].share == pytest.approx(share)
    # The other copy has no file of its own, and the points of its original.
    originals = [one for (_, number), one in before.points.items()
                 if number & 0xFFFFFFFF == other.segment.number]  # fmt: skip
    assert [after.points[other.stream_id, other.segment.segment_id]] == originals


def shares_of(weir: Installation, stream: StreamName, one: HotSegment) -> int:
    """How many events in the segment are not of the key `late`."""
    places = [position(key) for key in weir.facts(stream)["k"] if key != "late"]
    return sum(one.segment.key_low <= place < one.segment.key_high for place in places)


@pytest.mark.release
def test_only_what_was_appended_since_counts(weir: Installation) -> None:
    stream = weir.create(segments=1)
    weir.append(stream, [("old", i) for i in range(1000)])
    since = weir.value("SELECT max(clock) FROM time_index")
    (found,) = find(weir, hot(weir, stream, since=since)).points.values()
    assert (found.points, found.shares) == ((0.25, 0.5, 0.75), ()), "equal ranges without data"
    weir.append(stream, [(f"key {i}", i) for i in range(100)])
    (found,) = find(weir, hot(weir, stream, since=since)).points.values()
    assert found.hot_keys == ()
    assert max(found.shares) < 0.26


@pytest.mark.release
def test_bytes_weigh_an_event_by_the_events_of_its_file(weir: Installation) -> None:
    stream = weir.create(segments=1)
    small = [("small", i) for i in range(1000)]
    weir.append(stream, small)
    wide = weir.spark.range(1000).select(
        F.lit("large").alias("k"),
        F.concat_ws("", *[F.sha2(F.concat("id", F.lit(str(i))).cast("string"), 512)
                          for i in range(8)]).alias("text"),
    )  # fmt: skip
    weir.append(stream, wide)
    (events,) = find(weir, hot(weir, stream)).points.values()
    assert [one.share for one in events.hot_keys] == [0.5, 0.5]
    (found,) = find(weir, hot(weir, stream, unit="bytes")).points.values()
    assert [one.key for one in found.hot_keys] == ["large"]
    assert found.hot_keys[0].share > 0.9


@pytest.mark.release
def test_of_many_events_a_sample_is_counted_and_says_nearly_the_same(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = weir.create(segments=2)
    rows = weir.spark.range(0, 40_000, 1, 2).select(
        F.when(F.col("id") % 3 == 0, "hot").otherwise(F.concat(F.lit("key "), "id")).alias("k"),
        F.col("id").alias("n"),
    )
    weir.append(stream, rows)
    segments = hot(weir, stream)
    exact = find(weir, segments)
    monkeypatch.setattr(module, "SAMPLED", 2_000)
    monkeypatch.setattr(module, "SAMPLED_AT_LEAST", 1_000)
    sampled = find(weir, segments)
    assert sampled != exact
    assert sampled == find(weir, segments), "the same files give the same sample"
    for name, one in exact.points.items():
        assert [key.key for key in sampled.points[name].hot_keys] == [k.key for k in one.hot_keys]
        for key, other in zip(one.hot_keys, sampled.points[name].hot_keys, strict=True):
            assert other.share == pytest.approx(key.share, abs=0.06)  # four standard errors
        assert len(sampled.points[name].points) == len(one.points)
    for segment in segments:
        held = shares(
            weir, segment, sampled.points[segment.stream_id, segment.segment.segment_id].points
        )
        wanted = exact.points[segment.stream_id, segment.segment.segment_id].shares
        assert max(held) < max(wanted) + 0.06


@pytest.mark.release
def test_a_stream_whose_files_are_gone_or_damaged_fails_alone(weir: Installation) -> None:
    names = ("gone", "damaged", "well", "old")
    streams = [weir.create(f"s/{name}", segments=1) for name in names]
    for stream in streams:
        weir.append(stream, [(f"key {i}", i) for i in range(100)])
    gone, damaged, well, old = (hot(weir, stream)[0] for stream in streams)
    weir.query("UPDATE stream SET routing_key = 'reverse(k)' WHERE stream_id = :s RETURNING 1",
               s=old.stream_id)  # fmt: skip
    shutil.rmtree(Path(weir.settings.warehouse, str(gone.stream_id)))
    for path in Path(weir.settings.warehouse, str(damaged.stream_id)).rglob("*.parquet"):
        path.write_bytes(b"PAR1 was here, and it is no more, PAR1")
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    found = find(weir, [gone, damaged, well, old])
    assert [stream for stream, _ in found.points] == [well.stream_id]
    assert "the routing key of stream s/old is 'reverse(k)'" in found.failed.pop(old.stream_id)
    assert set(found.failed) == {gone.stream_id, damaged.stream_id}
    for stream_id, sentence in found.failed.items():
        name = "s/gone" if stream_id == gone.stream_id else "s/damaged"
        assert sentence.startswith(f"the recent events of stream {name} can't be read")
        assert "\n" not in sentence


@pytest.mark.release
def test_files_that_only_a_jvm_reaches_are_read_by_the_driver(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = weir.create(segments=1)
    weir.append(stream, [(f"key {i % 70}", i) for i in range(1000)])
    by_tasks = find(weir, hot(weir, stream))
    monkeypatch.setattr(module, "only_by_jvm", lambda _: True)
    assert find(weir, hot(weir, stream)) == by_tasks


@pytest.mark.release
def test_nothing_is_read_when_nothing_is_hot(weir: Installation) -> None:
    assert find(weir, []) == Found({}, {})
