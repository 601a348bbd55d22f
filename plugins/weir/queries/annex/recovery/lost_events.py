"""Who has not read lost events. Made by `make queries` from sql/annex/recovery/queries/lost_events.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

POSITIONS = text(
    """SELECT g.name, p.next_offset, s.segment_id, s.key_low, s.key_high
FROM reader_group_segment p JOIN reader_group g USING (group_id)
JOIN segment s USING (stream_id, segment_id)
WHERE p.stream_id = :stream_id AND p.state <> 'completed'"""
)


class Positions(NamedTuple):
    """A row of `positions`."""

    name: str
    next_offset: int | None
    segment_id: int
    key_low: float
    key_high: float


def positions(connection: Connection, *, stream_id: int) -> list[Positions]:
    """Return where reader groups are in a stream."""
    result = connection.execute(POSITIONS, {"stream_id": stream_id})
    return [Positions._make(row) for row in result]
