"""How much was committed lately, in as many equal parts of a time as a small picture shows."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from pydantic import BaseModel
from sqlalchemy import Connection

from weir.queries.pages import activity as sql

PARTS = 24
MOST = 100  # commits that are looked at of a stream, the newest
WINDOWS = tuple(timedelta(hours=hours) for hours in (1, 6, 24, 168))


class Activity(BaseModel):
    """Events that were committed in each part of a time, oldest first."""

    since: datetime
    until: datetime
    events: list[int]


def newest_commits(
    connection: Connection, names: list[str], now: datetime
) -> list[sql.NewestCommits]:
    """Return the newest commits of streams within the longest window. One statement."""
    return sql.newest_commits(connection, names=names, since=now - WINDOWS[-1], most=MOST)


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
