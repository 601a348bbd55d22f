"""What a run did: its state, its report, and what it read and wrote, by offsets."""

from fastapi import APIRouter, Request
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.errors import NotFound
from weir.history.job_runs import RunId
from weir.pages.answering import Asked, Tagged
from weir.queries.pages import runs as sql

router = APIRouter(route_class=Tagged, tags=["runs"])

MOST = 1000  # tasks, and steps of one, that are shown


class Runs(BaseModel):
    """The tasks of a run; of one task also what it read and wrote (`more`: not all is here).
    `logs`: where the logs of tasks are, as an address beside the pages; none without Airflow."""

    runs: list[sql.JobRun]
    steps: list[sql.Step]
    more: bool
    logs: str | None


@router.get("/runs/{dag_id}")
def show_run(
    asked: Asked, request: Request, dag_id: str, run_id: str, task_id: str = "",
    map_index: int = -1,
) -> Runs:  # fmt: skip
    """Return what the tasks of a run did, or one task of it. Two statements."""
    run = RunId(dag_id, run_id, task_id, map_index)

    def read(connection: Connection) -> Runs:
        found = sql.runs(
            connection, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index,
            most=MOST,
        )  # fmt: skip
        if not found:
            shown = str(run) if task_id else f"{dag_id}/{run_id}"
            raise NotFound(
                "run_not_found",
                f"Weir has no record of {shown}: it has not begun yet, or is none of Weir's.",
            )
        steps = sql.steps(connection, run=str(run), most=MOST) if task_id else []
        return Runs(runs=found, steps=steps, more=len(steps) == MOST, logs=request.app.state.logs)

    return asked.snapshot(read)
