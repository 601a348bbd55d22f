"""What an answer lacks because it was truncated: the last truncation is null if it is not recorded. Made by `make queries` from sql/queries/controller/missing.sql."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

BETWEEN = text(
    """SELECT events, truncated_at, reason FROM truncated_between(
    :stream, CAST(:since AS timestamptz), CAST(:until AS timestamptz))"""
)


class Between(NamedTuple):
    """A row of `between`."""

    events: int
    truncated_at: datetime | None
    reason: str | None


def between(
    connection: Connection, *, stream: str, since: datetime | None, until: datetime | None
) -> Between:
    """Return what was truncated of what was committed after a time and up to another."""
    result = connection.execute(BETWEEN, {"stream": stream, "since": since, "until": until})
    row = result.one()
    return Between._make(row)


WITHIN = text(
    """SELECT stream_name AS stream, p.events, p.truncated_at, p.reason FROM stream
CROSS JOIN LATERAL size_till(stream_id, head) z
CROSS JOIN LATERAL truncated_part(stream_id,
    CASE WHEN CAST(:start_cut AS jsonb) IS NOT NULL
        THEN truncated_from(stream_id, CAST(:start_cut AS jsonb))
    WHEN CAST(:start AS timestamptz) IS NOT NULL
        THEN truncated_after(stream_id, time_clock(CAST(:start AS timestamptz))) END,
    CASE WHEN CAST(:end_cut AS jsonb) IS NOT NULL
        THEN truncated_from(stream_id, CAST(:end_cut AS jsonb))
    WHEN CAST(:end AS timestamptz) IS NOT NULL
        THEN truncated_after(stream_id, time_clock(CAST(:end AS timestamptz))) ELSE 0 END) p
WHERE stream_id = :stream_id AND z.events > 0"""
)


class Within(NamedTuple):
    """A row of `within`."""

    stream: str
    events: int
    truncated_at: datetime | None
    reason: str | None


def within(
    connection: Connection,
    *,
    start_cut: str | None,
    start: datetime | None,
    end_cut: str | None,
    end: datetime | None,
    stream_id: int,
) -> Within | None:
    """Return what was truncated between two points of a stream, each a cut or a time."""
    result = connection.execute(
        WITHIN,
        {
            "start_cut": start_cut,
            "start": start,
            "end_cut": end_cut,
            "end": end,
            "stream_id": stream_id,
        },
    )
    row = result.one_or_none()
    return None if row is None else Within._make(row)


TRUNCATIONS = text(
    """SELECT head, truncated_at, reason FROM weir.truncations
WHERE stream = :stream ORDER BY truncated_at DESC LIMIT 1000"""
)


class Truncation(NamedTuple):
    """A row of `truncations`."""

    head: dict[str, int | str]
    truncated_at: datetime
    reason: str


def truncations(connection: Connection, *, stream: str) -> list[Truncation]:
    """Return the last truncations of a stream, 1,000 at most, the newest first."""
    result = connection.execute(TRUNCATIONS, {"stream": stream})
    return [Truncation._make(row) for row in result]
