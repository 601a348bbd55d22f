"""The runs of Weir's jobs, the newest first: what each said last, read and wrote."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from weir.history.job_runs import RunId
from weir.operations.action import UPKEEP
from weir.operations.jobs import ACTIONS
from weir.pages.answering import Asked, Tagged, not_a_page, rows
from weir.pages.runs import Try

router = APIRouter(route_class=Tagged, tags=["runs"])

LOOKED_AT = 20_000  # runs that one answer looks through for those that are asked for
_KEY = ("started_at", "dag_id", "run_id", "task_id", "map_index", "try_number")
_ORDER = ", ".join(f"{one} DESC" for one in _KEY)
_PAST = f"""({", ".join(_KEY)}) < (CAST(:started_at AS timestamptz), CAST(:dag_id AS text),
    CAST(:run_id AS text), CAST(:task_id AS text), CAST(:map_index AS integer),
    CAST(:try_number AS integer))"""
# The inner limit bounds what is looked at; the outer one ends the search where the page is full.
_FOUND = """
SELECT dag_id, run_id, task_id, map_index, try_number, job, state, started_at, ended_at,
    left(coalesce(error, progress), 500) AS says, left(stream, 200) AS stream,
    left(reader_group, 200) AS reader_group,
    CASE WHEN events ~ '\\A[0-9]{{1,18}}\\Z' THEN events::bigint END AS events
FROM (SELECT *, coalesce(report ->> 'stream', arguments ->> 'stream') AS stream,
          coalesce(report ->> 'reader_group', arguments ->> 'reader_group') AS reader_group,
          report ->> 'events' AS events
      FROM weir.job_runs WHERE {past} AND (CAST(:dags AS text[]) IS NULL OR dag_id = ANY(:dags))
      ORDER BY {order} LIMIT {most}) looked_at
WHERE (:job = '' OR job = :job) AND job <> ALL(:but) AND (:state = '' OR state = :state)
  AND (:stream = '' OR stream = :stream OR reader_group IN (
      SELECT p.reader_group FROM weir.positions p WHERE p.stream = :stream))
  AND (:reader_group = '' OR reader_group = :reader_group)
ORDER BY {order} LIMIT :limit + 1"""
_LAST = """SELECT {key} FROM weir.job_runs
WHERE {past} AND (CAST(:dags AS text[]) IS NULL OR dag_id = ANY(:dags))
ORDER BY {order} OFFSET {most} - 1 LIMIT 1"""
# What the batches of a run read and wrote, the newest of very many.
_MOVED = """
SELECT p.run, b.*
FROM unnest(CAST(:runs AS text[])) AS p (run)
CROSS JOIN LATERAL (
    WITH m AS MATERIALIZED (
        SELECT n.reader_group, n.events, n.outputs FROM weir.batches n
        WHERE n.reader_id = p.run AND n.state = 'committed' LIMIT 200)
    SELECT min(m.reader_group) AS reader_group, count(*) AS batches,
        coalesce(sum(m.events), 0)::bigint AS events,
        array(SELECT DISTINCT (o ->> 'kind') || ' '
                  || coalesce(s.stream_name, o ->> 'root', o ->> 'output')
              FROM m o_m CROSS JOIN LATERAL jsonb_array_elements(o_m.outputs) o
              LEFT JOIN weir_internal.stream s ON o ->> 'kind' = 'stream'
                  AND s.stream_id = (o ->> 'stream_id')::bigint
              ORDER BY 1 LIMIT 10) AS outputs
    FROM m) b
WHERE b.batches > 0"""


class Output(BaseModel):
    """Where the batches of a run wrote: a stream, a table, or the folder of Parquet files."""

    kind: str
    name: str


class Found(Try):
    """A try of a task. `says`: its error, or the last line that it logged. `read`: events of the
    batches that it committed (of at most 200 of them); `events`: what its report says."""

    says: str | None
    stream: str | None
    reader_group: str | None
    events: int | None
    batches: int = 0
    read: int = 0
    wrote: list[Output] = Field(default=[])


class NewestRuns(BaseModel):
    """A page of runs. `next`: what to give as `after` for those that follow. `jobs`: the actions
    that there are. `looked_at`: how many runs the answer looked through at most."""

    runs: list[Found]
    next: str | None
    jobs: list[str]
    looked_at: int


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
    given = {
        "job": job, "state": state, "stream": stream, "reader_group": reader_group,
        "but": [] if upkeep else [name for name, one in ACTIONS.items() if one.subject == UPKEEP],
        "dags": None if request.state.dags is None else sorted(request.state.dags),
    }  # fmt: skip
    past = _PAST if after else "true"
    begin = _begin(after) if after else {}

    def read(connection: Connection) -> NewestRuns:
        found = rows(
            connection, _FOUND.format(past=past, order=_ORDER, most=LOOKED_AT), limit=limit,
            **given, **begin,
        )  # fmt: skip
        page, last = found[:limit], None
        if len(found) > limit:
            last = page[-1]
        elif job or state or stream or reader_group or not upkeep:
            statement = _LAST.format(key=", ".join(_KEY), past=past, order=_ORDER, most=LOOKED_AT)
            last = next(iter(rows(connection, statement, dags=given["dags"], **begin)), None)
        return NewestRuns(
            runs=_with_batches(connection, page),
            next=last and json.dumps([str(getattr(last, one)) for one in _KEY]),
            jobs=list(ACTIONS),
            looked_at=LOOKED_AT,
        )

    return asked.snapshot(read)


def _begin(after: str) -> dict[str, str]:
    """Return the parameters that say where a page begins. Raises InvalidInput."""
    try:
        begin = dict(zip(_KEY, map(str, json.loads(after)), strict=True))
        datetime.fromisoformat(begin["started_at"])
        if not -1 <= int(begin["map_index"]) < 2**31 > int(begin["try_number"]) >= 0:
            raise ValueError
    except (ValueError, TypeError):
        raise not_a_page(after) from None
    return begin


def _with_batches(connection: Connection, page: Iterable[Any]) -> list[Found]:
    made = [Found(**row._mapping) for row in page]
    names: dict[str, Found] = {}
    for one in made:  # batches belong to a task, whose last try is the first that is met
        names.setdefault(str(RunId(one.dag_id, one.run_id, one.task_id, one.map_index)), one)
    for row in rows(connection, _MOVED, runs=list(names)):
        one = names[row.run]
        one.batches, one.read = row.batches, row.events
        one.reader_group = one.reader_group or row.reader_group
        pairs = (output.partition(" ") for output in row.outputs if output)
        one.wrote = [Output(kind=kind, name=name) for kind, _, name in pairs]
    return made
