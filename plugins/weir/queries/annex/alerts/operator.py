"""What is wrong, and which of them a task has told. Made by `make queries` from sql/annex/alerts/queries/operator.sql."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

ALERTS = text(
    """SELECT kind || ' ' || subject AS key, stream, reader_group, kind AS alert, severity, since AS at, sentence AS message, advice
FROM weir.troubles WHERE NOT query @> jsonb_build_object('dag_id', CAST(:dag_id AS text), 'task_id', CAST(:task_id AS text))
ORDER BY since, subject, kind"""
)


class Alerts(NamedTuple):
    """A row of `alerts`."""

    key: str
    stream: str | None
    reader_group: str | None
    alert: str
    severity: str
    at: datetime | None
    message: str
    advice: str


def alerts(connection: Connection, *, dag_id: str, task_id: str) -> list[Alerts]:
    """Return what is wrong now; but what becomes of a task, it does not tell itself."""
    result = connection.execute(ALERTS, {"dag_id": dag_id, "task_id": task_id})
    return [Alerts._make(row) for row in result]


TOLD = text(
    """SELECT report FROM job_run
WHERE dag_id = :dag_id AND task_id = :task_id AND job = :job AND report IS NOT NULL
ORDER BY started_at DESC LIMIT 1"""
)


def told(connection: Connection, *, dag_id: str, task_id: str, job: str) -> Any | None:
    """Return what a task has told before: its state is the report of its last run, whatever became of that."""
    result = connection.execute(TOLD, {"dag_id": dag_id, "task_id": task_id, "job": job})
    value: Any | None = result.scalar_one_or_none()
    return value
