"""What the pages show of publications. Made by `make queries` from sql/annex/publication/queries/tables.sql."""

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, text

PUBLICATIONS = text(
    """SELECT stream, format, problem, behind_events, behind_for, published_until, published_at, publishing, metadata_location
FROM publications
WHERE stream = ANY(ARRAY(
    SELECT s.stream_name FROM stream s WHERE s.publish <> 'none' AND s.state <> 'deleted'
    AND CASE :stream WHEN '' THEN s.stream_name > :after ELSE s.stream_name = :stream END
    ORDER BY s.stream_name LIMIT :most))
ORDER BY stream"""
)


class PublicationShown(NamedTuple):
    """A stream that is published."""

    stream: str
    format: str
    problem: str | None
    behind_events: int
    behind_for: timedelta | None
    published_until: datetime | None
    published_at: datetime | None
    publishing: bool
    metadata_location: str | None


def publications(
    connection: Connection, *, stream: str, after: str, most: int
) -> list[PublicationShown]:
    """Return the streams that are published as tables, by name."""
    result = connection.execute(PUBLICATIONS, {"stream": stream, "after": after, "most": most})
    return [PublicationShown._make(row) for row in result]
