"""How far groups and streams are. Made by `make queries` from sql/queries/reader_groups/progress.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

WRITTEN = text("""SELECT CAST(:aim AS jsonb)::text""")


def written(connection: Connection, *, aim: str) -> str:
    """Return JSON as Postgres writes it."""
    result = connection.execute(WRITTEN, {"aim": aim})
    value: str = result.scalar_one()
    return value


PROGRESS_OF = text(
    """SELECT * FROM progress_of(CAST(:group AS text[]), CAST(:stream AS text[]),
CAST(:aim AS jsonb))"""
)


class Progress(NamedTuple):
    """A row of `progress_of`."""

    kind: str
    name: str
    events: int
    clock: int | None
    now: int
    event_time: str | None


def progress_of(
    connection: Connection, *, group: Sequence[str], stream: Sequence[str], aim: str
) -> list[Progress]:
    """Return how far things are; what does not exist is left out."""
    result = connection.execute(
        PROGRESS_OF, {"group": list(group), "stream": list(stream), "aim": aim}
    )
    return [Progress._make(row) for row in result]
