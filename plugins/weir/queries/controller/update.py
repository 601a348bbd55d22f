"""Update a stream. Made by `make queries` from sql/queries/controller/update.sql."""

from sqlalchemy import Connection, text

BEGIN_EVENT_TIME = text(
    """WITH gone AS (DELETE FROM stream_writer WHERE stream_id = :stream_id)
UPDATE stream SET event_time_since = :clock, complete_until = NULL, newest_event_time = NULL,
    late_events = 0, ahead_events = 0, behind_events = 0
WHERE stream_id = :stream_id"""
)


def begin_event_time(connection: Connection, *, stream_id: int, clock: int) -> None:
    """Delete what writers have stated, because it was about event times of another meaning."""
    result = connection.execute(BEGIN_EVENT_TIME, {"stream_id": stream_id, "clock": clock})
    result.close()
