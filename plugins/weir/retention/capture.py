"""The retention set: recorded tail cuts, from which truncation points are chosen."""

from typing import Any

from sqlalchemy import text

from weir.storage import Database


def capture(database: Database) -> list[dict[str, Any]]:
    """Record the tail cut of every stream that moved since its last record (the retention set)."""
    rows = database.transaction(
        lambda c: c.execute(
            text(
                """INSERT INTO stream_cut (stream_id, recorded_at, clock, cut, events, bytes)
                SELECT s.stream_id, clock_timestamp(), s.last_clock, c.cut, z.events, z.bytes
                FROM stream s
                CROSS JOIN LATERAL (SELECT tail_cut(s.stream_id) AS cut) c
                CROSS JOIN LATERAL size_till(s.stream_id, c.cut) z
                LEFT JOIN LATERAL (SELECT l.cut, l.recorded_at FROM stream_cut l
                    WHERE l.stream_id = s.stream_id ORDER BY l.recorded_at DESC LIMIT 1) l ON true
                WHERE s.state = 'active' AND l.cut IS DISTINCT FROM c.cut
                  AND (l.recorded_at IS NULL OR clock_timestamp() > l.recorded_at)
                RETURNING stream_id, cut, events, bytes"""
            )
        ).all()
    )
    return [
        {"stream_id": r.stream_id, "cut": r.cut, "events": r.events, "bytes": r.bytes} for r in rows
    ]
