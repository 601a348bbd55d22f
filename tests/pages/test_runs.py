"""What a run did, as JSON: its tasks, and what one of them read and wrote, by offsets."""

from fastapi.testclient import TestClient

from tests.pages.conftest import told
from tests.world.groups import Group, spans
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.history.job_runs import RunId, record_end, record_start

RUN = RunId("dag", "manual__2026-01-01T00:00:00+00:00", "read", 3)


def test_a_task_says_what_it_read_by_offsets(client: TestClient, database: Database) -> None:
    lane = Lane.made(database)
    lane.append({"0.0": 5, "1.0": 5})
    group = Group.made(lane)
    database.transaction(lambda c: record_start(c, RUN, "process", {"reader_group": group.name}))
    reader = group.reader(str(RUN))
    batch = reader.must_open()
    reader.commit(batch)
    database.transaction(lambda c: record_end(c, RUN, "succeeded", report={"events": 10}))
    found = told(client, "runs/dag", run_id=RUN.run_id, task_id="read", map_index=3)
    [run] = found["runs"]
    assert (run["state"], run["report"], run["error"]) == ("succeeded", {"events": 10}, None)
    assert sorted((s["segment"], s["from_offset"], s["to_offset"]) for s in found["steps"]) == (
        sorted(spans(batch))
    )
    assert {(s["side"], s["name"], s["reader_group"]) for s in found["steps"]} == {
        ("read", str(lane.name), group.name)
    }
    assert found["more"] is False


def test_a_run_shows_the_last_try_of_each_task(client: TestClient, database: Database) -> None:
    def record(task: str, index: int, number: int, state: str, error: str | None = None) -> None:
        run = RunId("dag", RUN.run_id, task, index, number)
        database.transaction(lambda c: record_start(c, run, "scale_stream", {}))
        database.transaction(lambda c: record_end(c, run, state, error=error))

    record("a", -1, 1, "failed", "it broke")
    record("a", -1, 2, "succeeded")
    record("b", 0, 1, "succeeded")
    record("b", 1, 1, "failed", "<i>no</i>")
    found = told(client, "runs/dag", run_id=RUN.run_id)
    assert [(r["task_id"], r["map_index"], r["try_number"], r["state"]) for r in found["runs"]] == [
        ("a", -1, 2, "succeeded"), ("b", 0, 1, "succeeded"), ("b", 1, 1, "failed"),
    ]  # fmt: skip
    assert found["runs"][2]["error"] == "<i>no</i>"
    assert found["steps"] == []
    [only] = told(client, "runs/dag", run_id=RUN.run_id, task_id="b", map_index=1)["runs"]
    assert only["map_index"] == 1
