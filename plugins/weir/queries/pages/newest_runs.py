"""The runs of Weir's jobs, the newest first. Made by `make queries` from sql/queries/pages/newest_runs.sql."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel
from sqlalchemy import Connection, text

FOUND = text(
    """SELECT dag_id, run_id, task_id, map_index, try_number, job, state, started_at, ended_at,
    left(coalesce(error, progress), 4000) AS says, left(started_by, 300) AS started_by, left(stream, 200) AS stream,
    left(reader_group, 200) AS reader_group,
    CASE WHEN events ~ '\\A[0-9]{1,18}\\Z' THEN events::bigint END AS events
FROM (SELECT *, coalesce(report ->> 'stream', arguments ->> 'stream') AS stream,
          coalesce(report ->> 'reader_group', arguments ->> 'reader_group') AS reader_group,
          report ->> 'events' AS events
      FROM weir.job_runs WHERE (started_at, dag_id, run_id, task_id, map_index, try_number) < (CAST(:started_at AS timestamptz),
    CAST(:dag_id AS text), CAST(:run_id AS text), CAST(:task_id AS text), CAST(:map_index AS integer),
    CAST(:try_number AS integer)) AND (CAST(:dags AS text[]) IS NULL OR dag_id = ANY(:dags)) ORDER BY started_at DESC, dag_id DESC, run_id DESC, task_id DESC, map_index DESC, try_number DESC LIMIT :most) looked_at
WHERE (:job = '' OR job = :job) AND job <> ALL(:but) AND (:state = '' OR state = :state)
  AND (:stream = '' OR stream = :stream OR reader_group IN (
      SELECT p.reader_group FROM weir.positions p WHERE p.stream = :stream))
  AND (:reader_group = '' OR reader_group = :reader_group)
ORDER BY started_at DESC, dag_id DESC, run_id DESC, task_id DESC, map_index DESC, try_number DESC LIMIT CAST(:limit AS bigint) + 1"""
)


class Try(BaseModel):
    """A try of a task. `says`: its error, or the last line that it logged. `events`: what its report says."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int
    job: str
    state: str
    started_at: datetime
    ended_at: datetime | None
    says: str | None
    started_by: str | None
    stream: str | None
    reader_group: str | None
    events: int | None


def found(
    connection: Connection,
    *,
    started_at: str,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int,
    try_number: int,
    dags: Sequence[str] | None,
    most: int,
    job: str,
    but: Sequence[str],
    state: str,
    stream: str,
    reader_group: str,
    limit: int,
) -> list[Try]:
    """Return those runs that are asked for, one more than `limit`, of the `most` that come first. The inner limit bounds what is looked at; the outer one ends the search where the page is full."""
    result = connection.execute(
        FOUND,
        {
            "started_at": started_at,
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "map_index": map_index,
            "try_number": try_number,
            "dags": None if dags is None else list(dags),
            "most": most,
            "job": job,
            "but": list(but),
            "state": state,
            "stream": stream,
            "reader_group": reader_group,
            "limit": limit,
        },
    )
    return [Try(**row._mapping) for row in result]


LAST = text(
    """SELECT started_at, dag_id, run_id, task_id, map_index, try_number FROM weir.job_runs
WHERE (started_at, dag_id, run_id, task_id, map_index, try_number) < (CAST(:started_at AS timestamptz),
    CAST(:dag_id AS text), CAST(:run_id AS text), CAST(:task_id AS text), CAST(:map_index AS integer),
    CAST(:try_number AS integer)) AND (CAST(:dags AS text[]) IS NULL OR dag_id = ANY(:dags)) ORDER BY started_at DESC, dag_id DESC, run_id DESC, task_id DESC, map_index DESC, try_number DESC OFFSET CAST(:most AS bigint) - 1 LIMIT 1"""
)


class Last(BaseModel):
    """A row of `last`."""

    started_at: datetime
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int


def last(
    connection: Connection,
    *,
    started_at: str,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int,
    try_number: int,
    dags: Sequence[str] | None,
    most: int,
) -> Last | None:
    """Return the last of the `most` runs that come first."""
    result = connection.execute(
        LAST,
        {
            "started_at": started_at,
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "map_index": map_index,
            "try_number": try_number,
            "dags": None if dags is None else list(dags),
            "most": most,
        },
    )
    row = result.one_or_none()
    return None if row is None else Last(**row._mapping)


MOVED = text(
    """SELECT p.run, b.*
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
)


class Moved(BaseModel):
    """A row of `moved`."""

    run: str
    reader_group: str | None
    batches: int
    events: int
    outputs: list[str | None]


def moved(connection: Connection, *, runs: Sequence[str]) -> list[Moved]:
    """Return what the batches of runs read and wrote, the newest of very many."""
    result = connection.execute(MOVED, {"runs": list(runs)})
    return [Moved(**row._mapping) for row in result]
