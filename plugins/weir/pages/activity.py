"""How much was committed lately, in as many equal parts of a time as a small picture shows."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from pydantic import BaseModel

PARTS = 24
MOST = 100  # commits that are looked at of a stream, the newest
WINDOWS = tuple(timedelta(hours=hours) for hours in (1, 6, 24, 168))

# The newest commits of each stream after a time, the longest window ago, oldest first.
NEWEST = f"""SELECT p.stream, r.clocks, r.events
FROM unnest(CAST(:names AS text[])) AS p (stream)
CROSS JOIN LATERAL (
    SELECT array_agg(t.clock ORDER BY t.clock) AS clocks,
           array_agg(t.events ORDER BY t.clock) AS events
    FROM (SELECT t.clock, t.events FROM weir.transactions t
          WHERE t.stream = p.stream AND t.clock > :since
          ORDER BY t.clock DESC LIMIT {MOST}) t) r
WHERE r.clocks IS NOT NULL"""  # noqa: S608 - a constant


class Activity(BaseModel):
    """Events that were committed in each part of a time, oldest first."""

    since: datetime
    until: datetime
    events: list[int]


def activity_of(clocks: Sequence[datetime], events: Sequence[int], now: datetime) -> Activity:
    """Return how the newest commits are spread over the window that fits them: the smallest with
    all of them, or, if there are more than were looked at, the largest that they fill."""
    age = now - clocks[0] if clocks else timedelta()
    if len(clocks) < MOST:
        window = next((one for one in WINDOWS if age <= one), WINDOWS[-1])
    else:
        window = max((one for one in WINDOWS if one <= age), default=max(age, timedelta(seconds=1)))
    since, found = now - window, [0] * PARTS
    for clock, number in zip(clocks, events, strict=True):
        if clock > since:
            found[min(int((clock - since) / window * PARTS), PARTS - 1)] += number
    return Activity(since=since, until=now, events=found)
