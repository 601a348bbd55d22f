"""The job that records cuts proves them with Spark: one job for the new files of all streams."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.stream_cuts import StreamCuts
from tests.raises import raises
from tests.spark.installation import Installation
from weir.annex.verification import footers_in_tasks as footers
from weir.controller.ownership import check_warehouse_ownership
from weir.operations.action import Job
from weir.operations.jobs import ACTIONS
from weir.operations.runner import by_hand

pytestmark = pytest.mark.jvm


def test_new_files_of_all_streams_are_compared_by_executors_in_one_job_and_none_at_rest(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_warehouse_ownership(weir.database, weir.settings.warehouse)
    streams = [weir.create(f"s/{name}", segments=2) for name in "ab"]
    started: list[SparkSession] = []

    def start() -> SparkSession:
        started.append(weir.spark)
        return weir.spark

    action = ACTIONS["stream_cuts"]

    def run() -> str:
        job = Job("stream_cuts", by_hand("stream_cuts"), weir.settings, weir.database,
                  start_spark=start)  # fmt: skip
        return action.said(StreamCuts(), action.run(job, StreamCuts()))

    def not_here(*_: object) -> object:
        raise AssertionError("the driver itself looks")

    for stream in streams:
        weir.append(stream, [(f"key {n}", n) for n in range(20)])
    # Executors import their own.
    monkeypatch.setattr(footers, "look_here", not_here)
    tracker = weir.spark.sparkContext.statusTracker()
    before = {*tracker.getJobIdsForGroup()}
    files = weir.value("SELECT count(*) FROM data_file")
    said = f"the tails of 2 streams are recorded; {files} new files compared with the record"
    assert run() == said
    assert len({*tracker.getJobIdsForGroup()} - before) == 1
    assert len(started) == 1
    assert run() == "the tails of 0 streams are recorded; 0 new files compared with the record"
    assert len(started) == 1
    assert weir.query("SELECT stream FROM weir.retention_set WHERE proven_at IS NULL") == []
    weir.append(streams[0], [(f"key {n}", n) for n in range(20)])
    path = weir.value("SELECT max(path) FROM data_file WHERE stream_name = 's/a'")
    Path(weir.settings.warehouse, path).unlink()
    with raises(f"damage_found {path}"):
        run()
    assert weir.query("SELECT path, kind FROM weir.damage") == [(path, "missing")]
    assert "1 stream not proven, see weir.damage: s/a" in run()
