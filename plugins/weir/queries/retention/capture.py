"""Fill the retention set. Made by `make queries` from sql/queries/retention/capture.sql."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

WAIT_FOR_OTHERS = text("""SELECT FROM installation FOR NO KEY UPDATE""")


def wait_for_others(connection: Connection) -> None:
    """If two runs overlap, let the second one wait, so that it sees the records of the first. No advisory lock: everybody who may log in can hold that of any number."""
    result = connection.execute(WAIT_FOR_OTHERS)
    result.close()


CAPTURE = text(
    """WITH moved AS MATERIALIZED (
    SELECT * FROM tails_to_record()
), seen AS (
    DELETE FROM capture_queue m USING moved w
    WHERE m.stream_id = w.stream_id AND w.turn
), made AS (
    INSERT INTO stream_cut (stream_id, stream_name, recorded_at, clock, cut, events, bytes)
    SELECT m.stream_id, m.stream_name, m.now, m.last_clock, c.cut, z.events, z.bytes
    FROM moved m
    CROSS JOIN LATERAL (SELECT tail_cut(m.stream_id) AS cut OFFSET 0) c
    CROSS JOIN LATERAL size_till(m.stream_id, c.cut) z
    WHERE m.turn AND m.state = 'active' AND m.cut IS DISTINCT FROM c.cut
    ON CONFLICT (stream_id, recorded_at) DO NOTHING
    RETURNING stream_id, stream_name, recorded_at, cut, events, bytes
), history AS (
    INSERT INTO stream_history (stream_id, grain, slot, recorded_at, events, bytes)
    SELECT m.stream_id, h.grain, h.slot, m.recorded_at, m.events, m.bytes
    FROM made m CROSS JOIN LATERAL history_slots(m.recorded_at) h
    ON CONFLICT (stream_id, grain, slot) DO UPDATE SET
        recorded_at = EXCLUDED.recorded_at, events = EXCLUDED.events, bytes = EXCLUDED.bytes
), due AS (
    INSERT INTO retention_queue (stream_id, due_at)
    SELECT stream_id, clock_timestamp() FROM made
)
SELECT stream_name AS stream, cut, events, bytes FROM made ORDER BY stream_id"""
)


class Captured(NamedTuple):
    """A row of `capture`."""

    stream: str
    cut: dict[str, int | str]
    events: int
    bytes: int


def capture(connection: Connection) -> list[Captured]:
    """Record the tail cut of each stream that changed since its last record, and whose turn it is."""
    result = connection.execute(CAPTURE)
    return [Captured._make(row) for row in result]


RECORDED_CUT = text("""SELECT cut FROM recorded_cut(:stream, CAST(:at AS timestamptz))""")


def recorded_cut(
    connection: Connection, *, stream: str, at: datetime
) -> dict[str, int | str] | None:
    """Return the newest cut of the retention set recorded at or before a time."""
    result = connection.execute(RECORDED_CUT, {"stream": stream, "at": at})
    value: dict[str, int | str] | None = result.scalar_one_or_none()
    return value
