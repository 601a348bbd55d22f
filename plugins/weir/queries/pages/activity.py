"""How much was committed lately. Made by `make queries` from sql/queries/pages/activity.sql."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel
from sqlalchemy import Connection, text

NEWEST_COMMITS = text(
    """SELECT p.stream, r.clocks, r.events
FROM unnest(CAST(:names AS text[])) AS p (stream)
CROSS JOIN LATERAL (
    SELECT array_agg(t.clock ORDER BY t.clock) AS clocks,
           array_agg(t.events ORDER BY t.clock) AS events
    FROM (SELECT t.clock, t.events FROM weir.transactions t
          WHERE t.stream = p.stream AND t.clock > :since
          ORDER BY t.clock DESC LIMIT :most) t) r
WHERE r.clocks IS NOT NULL"""
)


class NewestCommits(BaseModel):
    """A row of `newest_commits`."""

    stream: str
    clocks: list[datetime]
    events: list[int]


def newest_commits(
    connection: Connection, *, names: Sequence[str], since: datetime, most: int
) -> list[NewestCommits]:
    """Return the newest commits of each stream after a time, oldest first."""
    result = connection.execute(
        NEWEST_COMMITS, {"names": list(names), "since": since, "most": most}
    )
    return [NewestCommits(**row._mapping) for row in result]
