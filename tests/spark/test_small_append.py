"""What appends and reads in a session that runs ask of Spark and of Postgres."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.adjunct_world import WAYS, World
from tests.spark.installation import Installation
from tests.spark.test_wide_rows import counted
from tests.watching import count_statements

QUESTIONS = 400  # to the JVM


def jobs_of(weir: Installation, work: Callable[[], Any]) -> tuple[Any, int]:
    """What work returns, and how many jobs Spark ran for it."""
    scheduler: Any = weir.spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()
    done = work()
    return done, scheduler.numTotalJobs() - before


def test_an_append_is_one_job_three_statements_and_few_questions_and_a_file_per_segment(
    weir: Installation,
) -> None:
    frame = weir.spark.range(0, 1000, 1, 1).selectExpr("concat('k', id % 97) AS k", "id AS n")
    for segments in (1, 16):
        stream = weir.create(f"s/of{segments}", segments=segments)
        weir.append(stream, frame)  # which makes what later ones have
        statements = count_statements(weir.database)
        with counted(weir) as made:
            committed, jobs = jobs_of(weir, partial(weir.append, stream, frame))
        assert (jobs, committed.files, len(statements)) == (1, segments, 3), statements
        assert len(made) < QUESTIONS


def test_an_append_of_a_file_is_one_job_and_a_file(weir: Installation) -> None:
    stream = weir.create(segments=1)
    pq.write_table(pa.table({"k": ["a", "b"], "n": [1, 2]}), f"{weir.input}/one.parquet")
    committed, jobs = jobs_of(weir, lambda: weir.ingest(stream, ["one.parquet"]))
    assert (jobs, committed.files) == (1, 1)


def test_a_read_is_one_job_and_reads_each_file_once(weir: Installation) -> None:
    stream = weir.create(segments=1)
    for n in (0, 10):
        weir.append(stream, weir.spark.range(n, n + 10, 1, 1).selectExpr("'a' AS k", "id AS n"))
    for order in ("none", "segment", "stream"):
        frame, planned = jobs_of(weir, partial(weir.frame, stream, order))
        assert (planned, len(frame.inputFiles())) == (0, 2), order
        rows, read = jobs_of(weir, frame.collect)
        assert (sorted(row.n for row in rows), read) == (list(range(20)), 1), order


@pytest.mark.release
def test_a_build_has_as_many_jobs_and_statements_for_few_segments_as_for_many(
    weir: Installation,
) -> None:
    seen = []
    for segments in (1, 16):
        world = World.made(weir, segments=segments)
        store = world.store(WAYS["whole"])
        for value in (1, 2):  # the second build changes rows of the first
            world.append([(f"k{i}", value, "x") for i in range(40)])
            statements = count_statements(weir.database)
            _, jobs = jobs_of(weir, store.build)
            seen.append((jobs, len(statements)))
    assert seen[:2] == seen[2:], "whatever the number of segments"
    assert [jobs for jobs, _ in seen[:2]] == [3, 7]
