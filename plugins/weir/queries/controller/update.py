"""Update a stream. Made by `make queries` from sql/queries/controller/update.sql."""

from sqlalchemy import Connection, text

STORE = text(
    """UPDATE stream SET (routing_key, on_missing_key, on_bad_rows, on_new_column, retention, retain_min_age,
    retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every, publish,
    refuse_erased, scaling, min_segments, target_rate, scale_factor, max_segments,
    scale_cooldown, event_time, event_time_ahead, event_time_back, tags, owner) = (
    SELECT routing_key, on_missing_key, on_bad_rows, on_new_column, retention, retain_min_age,
    retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every, publish,
    refuse_erased, scaling, min_segments, target_rate, scale_factor, max_segments,
    scale_cooldown, event_time, event_time_ahead, event_time_back, tags, owner FROM jsonb_populate_record(CAST(NULL AS stream), CAST(:settings AS jsonb)))
WHERE stream_id = :stream_id"""
)


def store(connection: Connection, *, settings: str, stream_id: int) -> None:
    """Store the settings of a stream, given as JSON."""
    result = connection.execute(STORE, {"settings": settings, "stream_id": stream_id})
    result.close()


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
