"""Event times as places in streams. Made by `make queries` from sql/queries/reader_groups/event_time_points.sql."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.queries import Cut

COMMITS_AT = text(
    """WITH commit_ AS NOT MATERIALIZED (
    SELECT s.stream_id, t.clock, t.min_event_time AS low, t.max_event_time AS high,
        t.clock <= s.event_time_since OR t.min_event_time IS NULL AS unknown
    FROM stream s JOIN transaction t ON t.stream_id = s.stream_id
    WHERE s.stream_id = ANY(:ids) AND t.state = 'committed' AND t.events > 0
), place AS (
    SELECT s.stream_id, s.stream_name, s.event_time, clock_time(coalesce(CASE
        WHEN :as_end THEN (
            SELECT max(c.clock) FROM commit_ c WHERE c.stream_id = s.stream_id
                AND (c.unknown OR c.low < :event_time))
        ELSE (
            SELECT max(b.clock) FROM commit_ b WHERE b.stream_id = s.stream_id
                AND b.clock < coalesce((
                    SELECT min(c.clock) FROM commit_ c WHERE c.stream_id = s.stream_id
                        AND (c.unknown OR c.high >= :event_time)), 9223372036854775807))
        END, 0)) AS at
    FROM stream s WHERE s.stream_id = ANY(:ids)
)
SELECT stream_id, event_time, at, stream_cut_at(stream_name, at) AS cut FROM place"""
)


class CommitPlace(NamedTuple):
    """A row of `commits_at`."""

    stream_id: int
    event_time: str | None
    at: datetime
    cut: Cut


def commits_at(
    connection: Connection, *, ids: Sequence[int], as_end: bool, event_time: int
) -> list[CommitPlace]:
    """Return where an event time lies in streams: the first commit of which an event may be at or after the time, and so the last one before it; or the last one of which an event may be before the time. Without one, the place is before all."""
    result = connection.execute(
        COMMITS_AT, {"ids": list(ids), "as_end": as_end, "event_time": event_time}
    )
    return [CommitPlace._make(row) for row in result]


BETWEEN = text(
    """SELECT c.s AS stream_id, u.events
FROM jsonb_to_recordset(CAST(:cuts AS jsonb)) AS c (s bigint, start jsonb, past jsonb)
JOIN stream s ON s.stream_id = c.s
CROSS JOIN LATERAL unread_from(c.s, c.start, s.head, nullif(c.past, 'null')) u"""
)


class Between(NamedTuple):
    """A row of `between`."""

    stream_id: int
    events: int


def between(connection: Connection, *, cuts: str) -> list[Between]:
    """Return how many events lie between cuts of streams."""
    result = connection.execute(BETWEEN, {"cuts": cuts})
    return [Between._make(row) for row in result]
