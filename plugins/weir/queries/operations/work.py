"""What the jobs with a schedule have to do. Made by `make queries` from sql/queries/operations/work.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

WORK = text(
    """SELECT job, what FROM weir_internal.work(CAST(:jobs AS text[]), CAST(:settings AS jsonb)) ORDER BY job, what"""
)


class Work(NamedTuple):
    """A row of `work`."""

    job: str
    what: str


def work(connection: Connection, *, jobs: Sequence[str], settings: str) -> list[Work]:
    """Return those of some jobs that may have something to do, by the settings of an installation, and what that is."""
    result = connection.execute(WORK, {"jobs": list(jobs), "settings": settings})
    return [Work._make(row) for row in result]
