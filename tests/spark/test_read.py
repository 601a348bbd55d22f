"""Reading: every event with its segment, offset and clock, in the order that was asked for."""

import random
from typing import Any, NamedTuple

import pandas as pd
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.chance import random_for
from tests.raises import raises
from tests.released import only
from tests.spark.installation import PLACE, Installation, setting, to_pandas
from weir.controller.read_plan import Slices, plan_of_bounds
from weir.kernel import stage
from weir.kernel.attempt import Attempt
from weir.model.names import StreamName
from weir.spark.reads import tasks
from weir.spark.reads.frames import frame_of

ORDERS = ("segment", "stream", "none")


def rows(seed: int, count: int) -> list[tuple[str, int]]:
    """Events of thirty keys; `n` tells them apart."""
    made = random.Random(seed)
    return [(f"key {made.randrange(30)}", seed * 100_000 + i) for i in range(count)]


def history(weir: Installation) -> tuple[StreamName, dict[str, list[int]]]:
    """A stream that was split, rolled and merged; and per key what was appended, in order."""
    stream = weir.create(segments=2)
    committed: list[tuple[str, int]] = []

    def append(seed: int, count: int) -> None:
        committed.extend(rows(seed, count))
        weir.append(stream, rows(seed, count))

    append(1, 200)
    append(2, 50)
    late = weir.appender.begin_frame(stream, "test", "late")
    assert isinstance(late, Attempt)
    weir.scale(stream, ["0.0"], parts=3)
    append(3, 200)
    staged = weir.appender.stage_frame(
        [late], weir.spark.createDataFrame(rows(4, 100), "k string, n long")
    )
    assert weir.appender.commit(staged).rolled
    committed.extend(rows(4, 100))
    append(5, 100)
    weir.scale(stream, ["1.0", "4.1"], parts=1)
    append(6, 150)
    per_key: dict[str, list[int]] = {}
    for key, n in committed:
        per_key.setdefault(key, []).append(n)
    return stream, per_key


def tasks_of(frame: DataFrame) -> pd.DataFrame:
    """The rows, each with the task that reads it and its place in that task."""
    frame = frame.withColumn("task", F.spark_partition_id())
    found = to_pandas(frame.withColumn("at", F.monotonically_increasing_id()))
    assert found["at"].is_monotonic_increasing
    return found


def test_events_have_their_place_in_every_order_after_a_split_a_roll_and_a_merge(
    weir: Installation,
) -> None:
    stream, per_key = history(weir)
    assert weir.value("SELECT count(*) FROM epoch WHERE cause = 'roll'") == 2
    weir.check(stream, read=True)
    for order in ("segment", "stream"):
        read = weir.read(stream, order)
        assert read.groupby("k")["n"].agg(list).to_dict() == per_key, order


@pytest.mark.release
def test_segments_that_follow_one_another_are_in_one_task_predecessors_first(
    weir: Installation,
) -> None:
    stream, per_key = history(weir)
    read = tasks_of(weir.frame(stream, "segment"))
    for key, one in read.groupby("k"):
        assert isinstance(key, str)
        assert one["task"].nunique() == 1, "the events of a key are read by one task"
        assert one["n"].tolist() == per_key[key], "in the order in which they were written"
        assert one["_segment"].is_monotonic_increasing
    assert (read.groupby("_segment")["task"].nunique() == 1).all()


class Layout(NamedTuple):
    """How the files of a stream lie, and how they are read."""

    segments: int
    per_file: int  # rows of a file at most
    large: int  # rows of a file that is a task of its own
    row_group: int  # rows
    part: int  # of a file, in bytes, that Spark gives to one task
    gaps: bool  # whether some rows are rejected, so that ranks have gaps
    cut: int  # rows of the first segment that are truncated
    appends: int = 2


LAYOUTS = [
    Layout(1, 1_000_000, 100_000, 1 << 17, 1 << 20, False, 0),
    Layout(1, 100, 50, 1 << 17, 1 << 20, False, 0),
    Layout(1, 100, 50, 1 << 17, 1 << 20, True, 120),
    Layout(1, 70, 1_000, 1 << 17, 1 << 20, False, 75),
    Layout(1, 1_000, 200, 20, 3_000, False, 210),
    Layout(1, 900, 100, 20, 2_000, True, 0),
    Layout(3, 60, 50, 1 << 17, 1 << 20, True, 70),
    Layout(3, 25, 20, 1 << 17, 1 << 20, False, 30),
    Layout(3, 1_000, 50, 1 << 17, 1 << 20, False, 30, 1),
]


@pytest.mark.parametrize("layout", only(LAYOUTS[6], of=LAYOUTS), ids=str)
def test_order_places_and_rows_are_the_same_however_the_files_lie(
    weir: Installation, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "ROWS_PER_FILE", layout.per_file)
    monkeypatch.setattr(tasks, "_LARGE", layout.large)
    monkeypatch.setattr(stage, "GROUP_ROWS", layout.row_group)
    stream = weir.create(segments=layout.segments, on_missing_key="quarantine")
    given = []  # the rows of each append by the partitions of its frame, which are the order
    for seed in range(layout.appends):
        numbers = weir.spark.range(seed * 10_000, seed * 10_000 + 900, numPartitions=2)
        key = f"if({layout.gaps} AND id % 7 = 3, null, concat('key ', id * 31 % 30))"
        frame = numbers.selectExpr(f"{key} AS k", "id AS n", "sha(string(id)) AS text")
        weir.append(stream, frame)
        given += [n for n in range(seed * 10_000, seed * 10_000 + 900)
                  if not layout.gaps or n % 7 != 3]  # fmt: skip
    if layout.cut:
        weir.truncate(stream, ", ".join([f"0.0={layout.cut}", *(
            f"{i}.0=0" for i in range(1, layout.segments))]))  # fmt: skip
    facts = weir.facts(stream)
    first = facts["_segment"] == 0
    left = facts[~first | (facts["_offset"] >= layout.cut)]
    assert len(left) == len(given) - layout.cut
    columns = ["n", "k", "text", *PLACE]
    in_order = {
        "segment": left.sort_values(["_segment", "_offset"]),
        "stream": left.sort_values(["_clock", "_weir_seq"]),
        "none": left.sort_values(["_segment", "_offset"]),
    }
    kept = set(left["n"])
    assert in_order["stream"]["n"].tolist() == [n for n in given if n in kept]
    for order, wanted in in_order.items():
        with setting(weir.spark, {"spark.sql.files.maxPartitionBytes": str(layout.part)}):
            read = tasks_of(weir.frame(stream, order))
        at = read["task"]
        if order == "segment":  # the tasks of different segments are in any order
            read = read.sort_values("_segment", kind="stable")
        if order == "none":
            read = read.sort_values(["_segment", "_offset"])
        assert read[columns].to_numpy().tolist() == wanted[columns].to_numpy().tolist(), order
        if layout.segments == 1 and layout.large < 900:
            assert at.nunique() >= 2, "the tasks of one segment keep the cores busy"


@pytest.mark.release
def test_large_files_of_one_segment_are_read_in_even_tasks(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "ROWS_PER_FILE", 100)
    monkeypatch.setattr(tasks, "_LARGE", 50)
    stream = weir.create(segments=1)
    weir.append(stream, weir.spark.range(0, 600, numPartitions=2).selectExpr("'a' AS k", "id AS n"))

    def parts(order: str) -> int:
        return weir.frame(stream, order).rdd.getNumPartitions()

    assert parts("none") == 6, "Spark itself puts two files into each of three tasks"
    with setting(weir.spark, {"spark.sql.files.openCostInBytes": "1"}):
        assert [parts("stream"), parts("segment")] == [6, 6], "Spark itself cuts each file in two"
    with setting(weir.spark, {"spark.sql.files.minPartitionNum": "2"}):
        assert parts("none") < 6, "what somebody set for a session is kept"


@pytest.mark.release
@pytest.mark.parametrize("order", ["segment", "stream"])
def test_each_file_is_read_by_one_task_only(
    weir: Installation, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "ROWS_PER_FILE", 10)
    stream = weir.create(segments=2)
    for seed in range(3):
        weir.append(stream, weir.spark.createDataFrame(rows(seed, 90), "k string, n long"))
    facts = weir.facts(stream)
    assert facts["_file"].nunique() > 3 * 6, "several files in a folder"
    frame = weir.frame(stream, order)
    execution = frame._jdf.queryExecution()
    assert len(execution.executedPlan().executeCollect()) == 270
    scans = execution.executedPlan().collectLeaves()
    files = [
        scans.apply(i).metrics().apply("numFiles").value()
        for i in range(scans.size())
        if scans.apply(i).metrics().contains("numFiles")
    ]
    assert sum(files) == facts["_file"].nunique()
    assert len(files) >= 2, "by several tasks"
    weir.check_read(stream, facts, order)


def test_none_of_the_orders_needs_a_shuffle(weir: Installation) -> None:
    stream, _ = history(weir)
    for order in ORDERS:
        plan = weir.frame(stream, order)._jdf.queryExecution().executedPlan().toString()
        assert "Exchange" not in plan, order
        assert "Join" not in plan, order


@pytest.mark.release
def test_a_new_stream_reads_as_nothing_and_has_the_columns_that_were_declared(
    weir: Installation,
) -> None:
    bare = weir.create("s/bare")
    assert weir.frame(bare).columns == PLACE
    field = {"name": "k", "type": "string", "nullable": True, "metadata": {}}
    declared = weir.create("s/declared", fields=[field])
    for order in ORDERS:
        frame = weir.frame(declared, order)
        assert frame.dtypes == [("k", "string"), *((name, "bigint") for name in PLACE)]
        assert frame.collect() == []


@pytest.mark.release
def test_bounds_in_the_middle_of_files_are_exact(weir: Installation) -> None:
    stream, _ = history(weir)
    facts = weir.facts(stream)
    ends = facts.groupby("_segment")["_offset"].max() + 1
    made = random_for("bounds")
    for _ in range(4):
        bounds = []
        segment: Any
        for segment, end in ends.items():
            start, stop = sorted(made.randrange(end + 1) for _ in range(2))
            if start < stop:
                bounds.append((int(segment), start, stop))
        stream_id = weir.value("SELECT stream_id FROM stream")
        slices, fields = weir.database.transaction(
            lambda c: plan_of_bounds(c, stream_id, bounds)  # noqa: B023 - it runs at once
        )
        wanted = pd.concat(
            facts[(facts["_segment"] == s) & facts["_offset"].between(a, b - 1)]
            for s, a, b in bounds
        )
        for order in ORDERS:
            whole = Slices(str(stream), stream_id, slices, fields)
            frame = frame_of(weir.spark, weir.settings, whole, order=order)
            read = to_pandas(frame)
            assert sorted(zip(read["_segment"], read["_offset"], read["n"], strict=True)) == sorted(
                zip(wanted["_segment"], wanted["_offset"], wanted["n"], strict=True)
            )
            if order == "stream":
                assert read["_clock"].is_monotonic_increasing


@pytest.mark.release
def test_reading_refuses_an_order_that_is_not_one(weir: Installation) -> None:
    stream = weir.create()
    with raises("argument_invalid 'newest'"):
        weir.frame(stream, "newest")
