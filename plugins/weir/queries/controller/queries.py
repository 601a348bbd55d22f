"""Questions about a stream (semantics 8). Made by `make queries` from sql/queries/controller/queries.sql."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

SEGMENTS_BETWEEN = text(
    """SELECT segment, segment_id, key_low, key_high, from_offset, to_offset
FROM segments_between(:stream, CAST(:start AS jsonb), CAST(:end AS jsonb))"""
)


class Between(NamedTuple):
    """A row of `segments_between`."""

    segment: str
    segment_id: int
    key_low: float
    key_high: float
    from_offset: int
    to_offset: int


def segments_between(
    connection: Connection, *, stream: str, start: str | None, end: str | None
) -> list[Between]:
    """Return what to read from one cut (null: the head) to another (null: the tail)."""
    result = connection.execute(SEGMENTS_BETWEEN, {"stream": stream, "start": start, "end": end})
    return [Between._make(row) for row in result]


STREAM_CUT_AT = text("""SELECT stream_cut_at(:stream, CAST(:at AS timestamptz))""")


def stream_cut_at(connection: Connection, *, stream: str, at: datetime) -> dict[str, int | str]:
    """Return the cut that was the tail at a time, or the head if that is later (semantics 8.4)."""
    result = connection.execute(STREAM_CUT_AT, {"stream": stream, "at": at})
    value: dict[str, int | str] = result.scalar_one()
    return value


COUNT_BETWEEN = text(
    """SELECT count_between(:stream, CAST(:since AS timestamptz), CAST(:until AS timestamptz))"""
)


def count_between(
    connection: Connection, *, stream: str, since: datetime | None, until: datetime | None
) -> int:
    """Close the later time, and return how many events that can be read were committed between them."""
    result = connection.execute(COUNT_BETWEEN, {"stream": stream, "since": since, "until": until})
    value: int = result.scalar_one()
    return value


STREAM_INFO = text("""SELECT head, tail FROM streams WHERE stream = :stream""")


class StreamInfo(NamedTuple):
    """A row of `stream_info`."""

    head: dict[str, int | str]
    tail: dict[str, int | str]


def stream_info(connection: Connection, *, stream: str) -> StreamInfo | None:
    """Return the ends of a stream."""
    result = connection.execute(STREAM_INFO, {"stream": stream})
    row = result.one_or_none()
    return None if row is None else StreamInfo._make(row)
