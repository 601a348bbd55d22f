"""When data was there. Made by `make queries` from sql/annex/partitions/queries/deadlines.sql."""

from datetime import datetime

from sqlalchemy import Connection, text

COMPLETE_AT = text(
    """SELECT CASE WHEN s.complete_until >= :until THEN coalesce(
    (SELECT min(clock_time(t.clock)) FROM transaction t
     WHERE t.stream_name = s.stream_name AND t.complete_until >= :until
       AND t.clock > coalesce((
           SELECT o.clock FROM transaction o WHERE o.stream_name = s.stream_name
           AND o.state = 'committed' AND coalesce(o.complete_until, :until - 1) < :until
           ORDER BY clock_time(o.clock) DESC LIMIT 1), 0)),
    (SELECT max(w.stated_at) FROM stream_writer w WHERE w.stream_id = s.stream_id)) END AS at
FROM stream s WHERE s.stream_name = :name AND s.state <> 'deleted'"""
)


def complete_at(connection: Connection, *, until: int, name: str) -> datetime | None:
    """Return when a stream was complete to an event time: by its first commit that has made it so, or else by the last statement."""
    result = connection.execute(COMPLETE_AT, {"until": until, "name": name})
    value: datetime | None = result.scalar_one_or_none()
    return value


READ_AT = text(
    """SELECT min(b.committed_at) AS at FROM reader_batch b
WHERE b.group_name = :name AND b.state = 'committed' AND b.complete_until >= :until"""
)


def read_at(connection: Connection, *, name: str, until: int) -> datetime | None:
    """Return when a reader group had read everything up to an event time."""
    result = connection.execute(READ_AT, {"name": name, "until": until})
    value: datetime | None = result.scalar_one()
    return value
