"""Fill the retention set: the recorded tail cuts from which retention chooses where to truncate."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.retention_queue import queueing
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.model.names import StreamName

_CAPTURE = text(
    f"""WITH moved AS MATERIALIZED (
        SELECT s.stream_id, s.stream_name, s.last_clock, s.state, l.cut, s.state <> 'active'
            OR l.recorded_at IS NULL
            OR n.now > l.recorded_at + coalesce(s.cuts_every, 0) * interval '1 second'
            AS turn, n.now
        FROM (SELECT DISTINCT stream_id FROM capture_queue) m
        JOIN stream s USING (stream_id)
        CROSS JOIN LATERAL (SELECT clock_timestamp() AS now OFFSET 0) n
        LEFT JOIN LATERAL (
            SELECT r.cut, r.recorded_at FROM stream_cut r
            WHERE r.stream_id = s.stream_id ORDER BY r.recorded_at DESC LIMIT 1) l
            ON true
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
        RETURNING stream_id, stream_name, cut, events, bytes
    ), due AS (
        {queueing("made")}
    )
    SELECT stream_name AS stream, cut, events, bytes FROM made ORDER BY stream_id"""  # noqa: S608 - constants
)


def capture(database: Database) -> list[dict[str, Any]]:
    """Record the tail cut of each stream that changed since its last record. Return the records:
    `stream`, `cut`, and the `events` and `bytes` before it.

    One statement reads all segments of a stream, so that a record is the tail of one moment. A
    record is strictly later than the one before it, by at least the stream's `cuts_every` seconds.
    The next run records what changes during this one. Late or repeated runs change nothing.
    """

    def work(connection: Connection) -> list[Any]:
        # If two runs overlap, the second one waits, and then sees the records of the first. No
        # advisory lock: everybody who may log in can hold that of any number.
        connection.execute(text("SELECT FROM installation FOR NO KEY UPDATE"))
        return list(connection.execute(_CAPTURE))

    return [
        {"stream": r.stream, "cut": r.cut, "events": r.events, "bytes": r.bytes}
        for r in commit_once(database, work)
    ]


def recorded_cut(
    connection: Connection, stream: StreamName, at: datetime
) -> dict[str, int | str] | None:
    """Return the newest cut of the retention set recorded at or before a time; None if there is
    none.
    """
    found: dict[str, int | str] | None = connection.execute(
        text("SELECT cut FROM recorded_cut(:stream, :at)"), {"stream": str(stream), "at": at}
    ).scalar_one_or_none()
    return found
