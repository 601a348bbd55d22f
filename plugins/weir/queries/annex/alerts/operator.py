"""The alerts of retention, and which of them a task has told. Made by `make queries` from sql/annex/alerts/queries/operator.sql."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

ALERTS = text(
    """SELECT stream, reader_group, alert, at, message FROM retention_alerts
ORDER BY at, stream, reader_group, alert"""
)


class Alerts(NamedTuple):
    """A row of `alerts`."""

    stream: str
    reader_group: str | None
    alert: str
    at: datetime
    message: str


def alerts(connection: Connection) -> list[Alerts]:
    """Return what somebody should look at now."""
    result = connection.execute(ALERTS)
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
