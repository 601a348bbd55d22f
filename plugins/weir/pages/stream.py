"""One stream: its facts, its columns, who reads it, what was appended, and what was decided."""

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.errors import NotFound
from weir.pages.answering import Asked, Tagged
from weir.pages.files import MOST_FILES
from weir.pages.streams import Facts, facts_of
from weir.pages.tables import Name, list_tables
from weir.queries.pages import files as files_sql
from weir.queries.pages import stream as sql

router = APIRouter(route_class=Tagged, tags=["streams"])

NEWEST = 20  # transactions and decisions that are shown
MOST = 1000  # columns


class Files(BaseModel):
    """The files of a stream, and which of them compaction may put together. `more`: there are more,
    which were not looked at."""

    files: int
    more: bool
    small_files: int = 0
    small_bytes: int = 0
    last_compacted: datetime | None = None
    apart: str | None = None


class Stream(BaseModel):
    """A stream in full. `rejected`: the stream of rows that it has rejected, if any."""

    facts: Facts
    settings: dict[str, object]
    rejected: str | None
    columns: list[sql.Column]
    transactions: list[sql.Transaction]
    files: Files
    retention: list[sql.RetentionDecision]
    scaling: list[sql.ScaleDecision]
    documents: list[sql.Document]
    completeness: sql.Completeness | None
    tables: list[Name]


@router.get("/streams/{scope}/{name}")
def show_stream(asked: Asked, scope: str, name: str) -> Stream:
    """Return all about a stream. Fourteen statements, at most."""
    stream = f"{scope}/{name}"

    def read(c: Connection) -> Stream:
        found = sql.settings(c, stream=stream)
        if found is None:
            raise _not_there(c, stream)
        [facts] = facts_of(c, [stream], found.now)
        # Two statements, or Postgres may look at the small ones among very many files for nothing.
        files = files_sql.total(c, stream=stream, segment="", most=MOST_FILES + 1)
        small = sql.small(c, stream=stream) if files <= MOST_FILES else None
        return Stream(
            facts=facts,
            settings=found.settings,
            rejected=f"{stream}.rejected" if found.rejects else None,
            columns=sql.columns(c, stream=stream, most=MOST),
            transactions=sql.transactions(c, stream=stream, most=NEWEST),
            files=Files(
                files=min(files, MOST_FILES),
                more=files > MOST_FILES,
                **(vars(small) if small else {}),
            ),
            retention=sql.retention(c, stream=stream, most=NEWEST),
            scaling=sql.scaling(c, stream=stream, most=NEWEST),
            documents=sql.documents(c, stream=stream, most=NEWEST),
            completeness=sql.completeness(c, stream=stream),
            tables=list_tables().tables,
        )

    return asked.snapshot(read)


def _not_there(connection: Connection, stream: str) -> NotFound:
    grave = sql.grave(connection, stream=stream)
    if grave is None:
        return NotFound("stream_not_found", f"there is no stream {stream}.")
    when = f" on {grave.deleted_at:%Y-%m-%d at %H:%M} UTC" if grave.deleted_at else ""
    who = f" by {grave.deleted_by}" if grave.deleted_by else ""
    return NotFound("stream_not_found", f"stream {stream} was deleted{when}{who}.")
