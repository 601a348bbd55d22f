"""The job of scaling by load where nothing is hot."""

import pytest

from spark_jobs import scale
from spark_jobs.scale import Scale
from tests.world.scaling import made, write
from weir.database.connection import Database
from weir.errors import Incomplete
from weir.history.job_runs import RunId
from weir.operations.action import Job
from weir.settings import Settings


def test_a_run_in_which_nothing_is_hot_starts_no_session_of_spark(
    database: Database, settings: Settings
) -> None:
    lane = made(database, 2)
    write(lane, {"0.0": 1.0, "1.0": 1.0})
    job = Job("scale", RunId("weir_scale", "run", "scale"), settings, database)
    [done] = scale.run(job, Scale())["decisions"]
    assert done["action"] == "merge"
    assert job._spark is None
    assert scale.run(job, Scale(dry_run=True))["decisions"][0]["rule"] == "too_young"
    assert job._spark is None


def test_a_stream_that_does_not_exist_is_no_reason_to_try_again(
    database: Database, settings: Settings
) -> None:
    job = Job("scale", RunId("weir_scale", "run", "scale"), settings, database)
    with pytest.raises(Incomplete) as failed:
        scale.run(job, Scale(streams=["test/nowhere"]))
    assert not failed.value.retryable
    assert "[stream_not_found]" in failed.value.sentence
