"""Groups whose checkpoints are due. Made by `make queries` from sql/queries/reader_groups/checkpoints/periodic.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

WAITING = text(
    """SELECT DISTINCT g.name FROM waiting_checkpoints() c JOIN reader_group g USING (group_id)
WHERE c.late OR c.lost OR NOT c.waits ORDER BY g.name"""
)


def waiting(connection: Connection) -> list[str]:
    """Return the groups that have checkpoints that wait no longer."""
    result = connection.execute(WAITING)
    return [row[0] for row in result]


MOVED = text(
    """SELECT group_id, name FROM reader_group WHERE moved_at > checkpointed_at
ORDER BY group_id"""
)


class Moved(NamedTuple):
    """A row of `moved`."""

    group_id: int
    name: str


def moved(connection: Connection) -> list[Moved]:
    """Return the groups that have moved since they were checkpointed."""
    result = connection.execute(MOVED)
    return [Moved._make(row) for row in result]


PRUNE = text(
    """DELETE FROM checkpoint c
WHERE created_at < clock_timestamp() - :age * interval '1 second'
AND CASE WHEN state = 'complete' THEN kind = 'automatic' AND EXISTS (
             SELECT FROM checkpoint n WHERE n.group_id = c.group_id
             AND n.state = 'complete' AND n.created_at > c.created_at)
         ELSE state <> 'waiting' END"""
)


def prune(connection: Connection, *, age: float) -> int:
    """Delete old checkpoints: automatic ones, but never the newest of a group, and those given up."""
    result = connection.execute(PRUNE, {"age": age})
    return result.rowcount
