"""What batches read. Made by `make queries` from sql/queries/reader_groups/batches/read_plan.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.model.schema import Field

STREAMS = text(
    """SELECT s.stream_id, s.stream_name AS name, coalesce(c.fields, '[]') AS fields
FROM reader_group g JOIN reader_group_stream gs USING (group_id) JOIN stream s USING (stream_id)
LEFT JOIN LATERAL (
    SELECT o.fields FROM stream_schema o WHERE o.stream_id = s.stream_id
    ORDER BY o.version DESC LIMIT 1) c ON true
WHERE g.name = :group ORDER BY s.stream_id"""
)


class GroupColumns(NamedTuple):
    """A row of `streams`."""

    stream_id: int
    name: str
    fields: list[Field]


def streams(connection: Connection, *, group: str) -> list[GroupColumns]:
    """Return the streams of a group by id, also the deleted ones, each with its newest columns."""
    result = connection.execute(STREAMS, {"group": group})
    return [GroupColumns._make(row) for row in result]
