"""What a run did: its state, its report, and what it read and wrote, by offsets."""

from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.errors import NotFound
from weir.history.job_runs import RunId
from weir.pages.answering import Asked, Tagged, rows

router = APIRouter(route_class=Tagged, tags=["runs"])

MOST = 1000  # tasks, and steps of one, that are shown

# The last try of each task.
_RUNS = f"""
SELECT DISTINCT ON (task_id, map_index) dag_id, run_id, task_id, map_index, try_number, job, state,
    started_at, updated_at, ended_at, progress, error, arguments, report
FROM weir.job_runs
WHERE dag_id = :dag_id AND run_id = :run_id AND (:task_id = '' OR task_id = :task_id)
  AND (:task_id = '' OR map_index = :map_index)
ORDER BY task_id, map_index, try_number DESC LIMIT {MOST}"""  # noqa: S608 - a constant
_STEPS = f"""
SELECT side, kind, name, name_segment AS segment, name_from AS from_offset, name_to AS to_offset,
    version, committed_at, reader_group, batch_id, function, function_version
FROM weir.lineage(:run, 'up', 0) WHERE side IS NOT NULL LIMIT {MOST}"""  # noqa: S608 - a constant


class Try(BaseModel):
    """A try of a task of Weir's."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int
    job: str
    state: str
    started_at: datetime
    ended_at: datetime | None


class JobRun(Try):
    """What a task did in its last try."""

    updated_at: datetime
    progress: str | None
    error: str | None
    arguments: dict[str, Any]
    report: dict[str, Any] | None


class Step(BaseModel):
    """One thing that it read or wrote, in one commit."""

    side: str
    kind: str
    name: str
    segment: str | None
    from_offset: int | None
    to_offset: int | None
    version: int | None
    committed_at: datetime
    reader_group: str | None
    batch_id: int | None
    function: str | None
    function_version: str | None


class Runs(BaseModel):
    """The tasks of a run; of one task also what it read and wrote (`more`: not all is here)."""

    runs: list[JobRun]
    steps: list[Step]
    more: bool


@router.get("/runs/{dag_id}")
def show_run(
    asked: Asked, dag_id: str, run_id: str, task_id: str = "", map_index: int = -1
) -> Runs:
    """Return what the tasks of a run did, or one task of it. Two statements."""
    run = RunId(dag_id, run_id, task_id, map_index)

    def read(connection: Connection) -> Runs:
        found = rows(connection, _RUNS, **{k: v for k, v in vars(run).items() if k != "try_number"})
        if not found:
            shown = str(run) if task_id else f"{dag_id}/{run_id}"
            raise NotFound(
                "run_not_found",
                f"Weir has no record of {shown}: it has not begun yet, or is none of Weir's.",
            )
        steps = rows(connection, _STEPS, run=str(run)) if task_id else []
        return Runs(
            runs=[JobRun(**row._mapping) for row in found],
            steps=[Step(**row._mapping) for row in steps],
            more=len(steps) == MOST,
        )

    return asked.snapshot(read)
