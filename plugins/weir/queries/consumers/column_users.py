"""Who names the columns of a stream. Made by `make queries` from sql/queries/consumers/column_users.sql."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, text

GROUPS_OF = text(
    """SELECT g.name, g.consumer FROM reader_group g
JOIN reader_group_stream r USING (group_id)
WHERE r.stream_id = :stream_id AND NOT EXISTS (
    SELECT FROM adjunct_store a WHERE a.group_id = g.group_id)
ORDER BY g.name"""
)


class GroupOf(NamedTuple):
    """A row of `groups_of`."""

    name: str
    consumer: dict[str, Any] | None


def groups_of(connection: Connection, *, stream_id: int) -> list[GroupOf]:
    """Return the groups that read a stream, each with the consumer that is declared for it."""
    result = connection.execute(GROUPS_OF, {"stream_id": stream_id})
    return [GroupOf._make(row) for row in result]
