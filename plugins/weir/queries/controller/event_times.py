"""Which event times commits have. Made by `make queries` from sql/queries/controller/event_times.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

RANGES = text(
    """SELECT t.low, t.high, t.untimed, t.known
FROM unnest(CAST(:firsts AS bigint[]), CAST(:lasts AS bigint[])) WITH ORDINALITY AS w (first, last, n)
CROSS JOIN stream s
CROSS JOIN LATERAL (
    SELECT min(c.min_event_time) AS low, max(c.max_event_time) AS high,
        coalesce(sum(c.untimed), 0)::bigint AS untimed,
        coalesce(bool_and(c.clock > s.event_time_since AND c.untimed IS NOT NULL), false) AS known
    FROM transaction c WHERE c.stream_name = s.stream_name AND c.state = 'committed'
      AND clock_time(c.clock) BETWEEN clock_time(w.first) AND clock_time(w.last)) t
WHERE s.stream_id = :stream_id ORDER BY w.n"""
)


class TimeRange(NamedTuple):
    """A row of `ranges`."""

    low: int | None
    high: int | None
    untimed: int
    known: bool


def ranges(
    connection: Connection, *, firsts: Sequence[int], lasts: Sequence[int], stream_id: int
) -> list[TimeRange]:
    """Return the least and the greatest event time of the commits between pairs of clocks, how many of their events have none, and whether that is known: not of those before the event time was set."""
    result = connection.execute(
        RANGES, {"firsts": list(firsts), "lasts": list(lasts), "stream_id": stream_id}
    )
    return [TimeRange._make(row) for row in result]
