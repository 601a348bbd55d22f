"""What sessions do. Made by `make queries` from sql/queries/database/progress.sql."""

from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import Connection, text

SESSIONS = text(
    """SELECT a.pid, a.usename, a.client_port, a.state, a.wait_event_type, a.wait_event,
    clock_timestamp() - a.state_change AS since, pg_blocking_pids(a.pid) AS blocked_by,
    array(SELECT concat_ws(' ', l.mode, l.relation::regclass::text,
                           CASE WHEN NOT l.granted THEN '(waits)' END)
          FROM pg_locks l WHERE l.pid = a.pid ORDER BY l.granted, 1 LIMIT 20) AS locks,
    left(regexp_replace(a.query, '\\s+', ' ', 'g'), 200) AS query
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
ORDER BY a.state_change LIMIT 100"""
)


class Session(NamedTuple):
    """A row of `sessions`."""

    pid: int
    usename: str | None
    client_port: int | None
    state: str | None
    wait_event_type: str | None
    wait_event: str | None
    since: timedelta | None
    blocked_by: list[int]
    locks: list[str]
    query: str | None


def sessions(connection: Connection) -> list[Session]:
    """Return what the sessions of the database do, with their locks."""
    result = connection.execute(SESSIONS)
    return [Session._make(row) for row in result]
