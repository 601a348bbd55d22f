"""What Airflow knows of the tasks of readers, as a hint."""

from pathlib import Path

import pytest

from tests.crash.jobs import write_config
from tests.world.groups import Group
from tests.world.streams import Lane, run, unique
from weir.airflow.readers import ReaderTask, over
from weir.database.connection import Database
from weir.history.job_runs import RunId
from weir.settings import Settings

PLAIN = RunId("dag", "manual__2026-01-01T00:00:00+00:00", "task")
MAPPED = RunId("dag", "manual__2026-01-01T00:00:00+00:00", "task", 12)


@pytest.mark.parametrize("run_id", [PLAIN, MAPPED])
def test_a_task_is_known_by_the_name_of_its_reader(run_id: RunId) -> None:
    assert RunId.of(str(run_id)) == run_id


@pytest.mark.parametrize("name", ["reader", "a/b", "a/b/c/d", "a/b/c/3/4", "/b/c", "a/b/c/", ""])
def test_a_reader_that_is_no_task_is_none(name: str) -> None:
    assert RunId.of(name) is None


@pytest.mark.parametrize(
    ("state", "is_over"),
    [("running", False), ("restarting", False), ("up_for_retry", True), ("failed", True),
     ("success", True), ("removed", True), ("queued", True), ("scheduled", True), (None, True)],
)  # fmt: skip
def test_a_task_that_does_not_run_is_over(state: str | None, is_over: bool) -> None:
    """Whoever joined as its reader did so while it ran."""
    answer = {PLAIN.run_id: {"task": state, "task_1": "failed", "task_12": "running"}}
    assert over([PLAIN, MAPPED], answer) == ([PLAIN] if is_over else [])


def test_of_a_task_that_airflow_does_not_know_nothing_is_said() -> None:
    assert over([PLAIN, MAPPED], {}) == []
    assert over([PLAIN, MAPPED], {PLAIN.run_id: {"other": "failed", "task_1": "failed"}}) == []


def begun(database: Database, attempt: RunId) -> None:
    run(
        database,
        """INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job, arguments,
                                state)
        VALUES (:dag_id, :run_id, :task_id, :map_index, :try_number, 'process', '{}', 'running')""",
        **attempt.__dict__,
    )


def test_a_task_that_ends_gives_up_its_lease_but_not_that_of_its_next_try(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: Path = write_config(settings)
    monkeypatch.setenv("WEIR_CONFIG", str(config))
    lane = Lane.made(database, name=f"test/{unique('stream')}")
    lane.append({"0.0": 5})
    group = Group.made(lane)
    first, second = MAPPED, RunId(**{**MAPPED.__dict__, "try_number": 2})
    begun(database, first)
    reader = group.reader(str(first))
    reader.must_open()
    ReaderTask(group.name, first, settings).ended()
    [row] = group.rows("SELECT lease_expired FROM readers WHERE :g > 0")
    assert row.lease_expired
    again = group.reader(str(second))
    begun(database, second)
    assert again.must_open().attempt == 2
    ReaderTask(group.name, first, settings).ended()
    [row] = group.rows("SELECT lease_expired FROM readers WHERE :g > 0")
    assert not row.lease_expired, "an orphan of the first try says nothing of the second"
    ReaderTask(group.name, second, settings).ended()
    [row] = group.rows("SELECT lease_expired FROM readers WHERE :g > 0")
    assert row.lease_expired
    ReaderTask(group.name, PLAIN, settings).ended()  # one that never joined
