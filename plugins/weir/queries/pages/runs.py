"""What a run did. Made by `make queries` from sql/queries/pages/runs.sql."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel
from sqlalchemy import Connection, text

RUNS = text(
    """SELECT DISTINCT ON (task_id, map_index) dag_id, run_id, task_id, map_index, try_number, job, state,
    started_at, updated_at, ended_at, progress, error, arguments, report,
    started_by
FROM weir.job_runs
WHERE dag_id = :dag_id AND run_id = :run_id AND (:task_id = '' OR task_id = :task_id)
  AND (:task_id = '' OR map_index = :map_index)
ORDER BY task_id, map_index, try_number DESC LIMIT :most"""
)


class JobRun(BaseModel):
    """What a task of Weir's did in its last try."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int
    job: str
    state: str
    started_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    progress: str | None
    error: str | None
    arguments: dict[str, Any]
    report: dict[str, Any] | None
    started_by: str | None


def runs(
    connection: Connection, *, dag_id: str, run_id: str, task_id: str, map_index: int, most: int
) -> list[JobRun]:
    """Return the last try of each task of a run, or of one of them."""
    result = connection.execute(
        RUNS,
        {
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "map_index": map_index,
            "most": most,
        },
    )
    return [JobRun(**row._mapping) for row in result]


STEPS = text(
    """SELECT side, kind, name, name_segment AS segment, name_from AS from_offset, name_to AS to_offset,
    version, committed_at, reader_group, batch_id, function, function_version
FROM weir.lineage(:run, 'up', 0) WHERE side IS NOT NULL LIMIT :most"""
)


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


def steps(connection: Connection, *, run: str, most: int) -> list[Step]:
    """Return what a run read and wrote."""
    result = connection.execute(STEPS, {"run": run, "most": most})
    return [Step(**row._mapping) for row in result]
