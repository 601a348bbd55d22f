"""What writers state without an append. Made by `make queries` from sql/queries/controller/completeness.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

STATE_COMPLETENESS = text(
    """SELECT state_completeness(:scope, :name, :writer_id, CAST(:until AS bigint))"""
)


def state_completeness(
    connection: Connection, *, scope: str, name: str, writer_id: str, until: int
) -> str:
    """State what a writer has appended everything before; return what came of it."""
    result = connection.execute(
        STATE_COMPLETENESS, {"scope": scope, "name": name, "writer_id": writer_id, "until": until}
    )
    value: str = result.scalar_one()
    return value


STATE_UNMAPPED = text(
    """SELECT state_unmapped(:scope, :name, :task, :count, CAST(:until AS bigint))"""
)


def state_unmapped(
    connection: Connection, *, scope: str, name: str, task: str, count: int, until: int
) -> list[str] | None:
    """State it for writers of a mapped task that its run does not have; return them."""
    result = connection.execute(
        STATE_UNMAPPED, {"scope": scope, "name": name, "task": task, "count": count, "until": until}
    )
    value: list[str] | None = result.scalar_one()
    return value


COMPLETE_UNTIL = text("""SELECT complete_until FROM stream WHERE stream_id = :stream_id""")


def complete_until(connection: Connection, *, stream_id: int) -> int | None:
    """Return what a stream is complete to."""
    result = connection.execute(COMPLETE_UNTIL, {"stream_id": stream_id})
    value: int | None = result.scalar_one()
    return value


TAKE_BACK = text(
    """SELECT t.kind, t.since, t.until, t.airflow
FROM stream s, take_back(s, CAST(:until AS bigint)) t WHERE stream_id = :stream_id
ORDER BY t.airflow, t.kind, t.since, t.until"""
)


class TakenBack(NamedTuple):
    """A row of `take_back`."""

    kind: str
    since: int | None
    until: int
    airflow: str


def take_back(connection: Connection, *, until: int | None, stream_id: int) -> list[TakenBack]:
    """Make a locked stream complete to an earlier time, or to none; return what was announced."""
    result = connection.execute(TAKE_BACK, {"until": until, "stream_id": stream_id})
    return [TakenBack._make(row) for row in result]
