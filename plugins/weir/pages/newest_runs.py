"""The runs of Weir's jobs, the newest first: what each said last, read and wrote."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, TypedDict

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from weir.history.job_runs import RunId
from weir.operations.action import UPKEEP
from weir.operations.jobs import ACTIONS
from weir.pages.answering import Asked, Tagged, not_a_page
from weir.queries.pages import newest_runs as sql

router = APIRouter(route_class=Tagged, tags=["runs"])

LOOKED_AT = 20_000  # runs that one answer looks through for those that are asked for


class _Place(TypedDict):
    """The run after which a page begins."""

    started_at: str
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int


_FIRST: _Place = {
    "started_at": "infinity", "dag_id": "", "run_id": "", "task_id": "", "map_index": 0,
    "try_number": 0,
}  # fmt: skip


class Output(BaseModel):
    """Where the batches of a run wrote: a stream, a table, or the folder of Parquet files."""

    kind: str
    name: str


class Found(sql.Try):
    """A try of a task. `says`: its error, or the last line that it logged. `read`: events of the
    batches that it committed (of at most 200 of them); `events`: what its report says."""

    batches: int = 0
    read: int = 0
    wrote: list[Output] = Field(default=[])


class NewestRuns(BaseModel):
    """A page of runs. `next`: what to give as `after` for those that follow. `jobs`: the actions
    that there are. `looked_at`: how many runs the answer looked through at most. `logs`: as of a
    run."""

    runs: list[Found]
    next: str | None
    jobs: list[str]
    looked_at: int
    logs: str | None


@router.get("/runs")
def list_runs(
    asked: Asked,
    request: Request,
    job: Annotated[str, Query(description="an action, such as process")] = "",
    upkeep: Annotated[bool, Query(description="false: no runs of upkeep")] = True,
    state: Literal["", "submitted", "running", "succeeded", "failed", "killed"] = "",
    stream: Annotated[str, Query(description="runs that name it, or a group that reads it")] = "",
    reader_group: Annotated[str, Query(description="runs that name it")] = "",
    after: Annotated[str, Query(description="`next` of the page before")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> NewestRuns:
    """Return the runs that are asked for, the newest first, a page of them. At most three
    statements."""
    but = [] if upkeep else [name for name, one in ACTIONS.items() if one.subject == UPKEEP]
    dags = None if request.state.dags is None else sorted(request.state.dags)
    place = _place(after) if after else _FIRST

    def read(connection: Connection) -> NewestRuns:
        found = sql.found(
            connection, **place, dags=dags, job=job, but=but, state=state, stream=stream,
            reader_group=reader_group, most=LOOKED_AT, limit=limit,
        )  # fmt: skip
        page = found[:limit]
        last: sql.Try | sql.Last | None = page[-1] if len(found) > limit else None
        if last is None and (job or state or stream or reader_group or not upkeep):
            last = sql.last(connection, **place, dags=dags, most=LOOKED_AT)
        return NewestRuns(
            runs=_with_batches(connection, page),
            next=json.dumps([str(getattr(last, one)) for one in _FIRST]) if last else None,
            jobs=list(ACTIONS),
            looked_at=LOOKED_AT,
            logs=request.app.state.logs,
        )

    return asked.snapshot(read)


def _place(after: str) -> _Place:
    """Return where a page begins. Raises InvalidInput."""
    try:
        at, dag_id, run_id, task_id, map_index, try_number = map(str, json.loads(after))
        place: _Place = {
            "started_at": str(datetime.fromisoformat(at)), "dag_id": dag_id, "run_id": run_id,
            "task_id": task_id, "map_index": int(map_index), "try_number": int(try_number),
        }  # fmt: skip
        if "\0" in dag_id + run_id + task_id or not (
            -1 <= place["map_index"] < 2**31 > place["try_number"] >= 0
        ):
            raise ValueError
    except (ValueError, TypeError):
        raise not_a_page(after) from None
    return place


def _with_batches(connection: Connection, page: Iterable[sql.Try]) -> list[Found]:
    made = [Found(**vars(row)) for row in page]
    names: dict[str, Found] = {}
    for one in made:  # batches belong to a task, whose last try is the first that is met
        names.setdefault(str(RunId(one.dag_id, one.run_id, one.task_id, one.map_index)), one)
    for row in sql.moved(connection, runs=list(names)):
        one = names[row.run]
        one.batches, one.read = row.batches, row.events
        one.reader_group = one.reader_group or row.reader_group
        pairs = (output.partition(" ") for output in row.outputs if output)
        one.wrote = [Output(kind=kind, name=name) for kind, _, name in pairs]
    return made
