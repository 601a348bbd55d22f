"""One stream: its facts, its columns, who reads it, what was appended, and what was decided."""

from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.errors import NotFound
from weir.pages.answering import Asked, Tagged, rows
from weir.pages.files import MOST_FILES
from weir.pages.streams import Facts, facts_of

router = APIRouter(route_class=Tagged, tags=["streams"])

NEWEST = 20  # transactions and decisions that are shown
MOST = 1000  # columns

_SETTINGS = """SELECT to_jsonb(c) - '{stream,schema,schema_version}'::text[] AS settings,
    date_trunc('minute', statement_timestamp()) AS now,
    EXISTS (SELECT FROM weir.stream_configuration r WHERE r.stream = c.stream || '.rejected')
        AS rejects
FROM weir.stream_configuration c WHERE c.stream = :stream"""
_COLUMNS = f"""SELECT version, position, name, type, default_value, change, newest, created_at
FROM weir.stream_columns WHERE stream = :stream
ORDER BY version DESC, position LIMIT {MOST}"""  # noqa: S608 - a constant
_TRANSACTIONS = f"""SELECT transaction_number AS number, state, opened_at, clock AS committed_at,
    events, bytes, files, rejected, writer_id, batch_id, source
FROM weir.transactions WHERE stream = :stream
ORDER BY transaction_number DESC LIMIT {NEWEST}"""  # noqa: S608 - a constant
# Two statements, or Postgres may look at the small ones among very many files for nothing.
_FILES = f"""SELECT count(*) AS files FROM (
    SELECT FROM weir.data_files WHERE stream = :stream LIMIT {MOST_FILES} + 1) d"""  # noqa: S608 - a constant
_SMALL = """SELECT small_files, small_bytes, last_compacted, apart
FROM weir.small_files WHERE stream = :stream"""
_RETENTION = f"""SELECT decided_at, rule, reason, events, bytes, held_by
FROM weir.retention_decisions WHERE stream = :stream
ORDER BY decided_at DESC LIMIT {NEWEST}"""  # noqa: S608 - a constant
_SCALING = f"""SELECT decided_at, action, rule, reason FROM weir.scale_decisions
WHERE stream = :stream ORDER BY decided_at DESC LIMIT {NEWEST}"""  # noqa: S608 - a constant
_ERASED = f"""SELECT request, requested_by, reason, asked_at, certified_at, events, streams, state,
    waits_for, certificate
FROM weir.certificates WHERE stream = :stream ORDER BY asked_at DESC LIMIT {NEWEST}"""  # noqa: S608 - a constant
_COMPLETE = """SELECT event_time, complete_until, newest_event_time, late_events, held_by
FROM weir.completeness WHERE stream = :stream"""


class Column(BaseModel):
    """A column in a version of the schema."""

    version: int
    position: int
    name: str
    type: Any  # as Spark writes it in JSON
    default_value: str | None
    change: str | None
    newest: bool
    created_at: datetime


class Transaction(BaseModel):
    """An append."""

    number: int
    state: str
    opened_at: datetime
    committed_at: datetime | None
    events: int | None
    bytes: int | None
    files: int | None
    rejected: int | None
    writer_id: str
    batch_id: str
    source: str


class Files(BaseModel):
    """The files of a stream, and which of them compaction may put together. `more`: there are more,
    which were not looked at."""

    files: int
    more: bool
    small_files: int = 0
    small_bytes: int = 0
    last_compacted: datetime | None = None
    apart: str | None = None


class RetentionDecision(BaseModel):
    """What retention decided, and why."""

    decided_at: datetime
    rule: str
    reason: str
    events: int
    bytes: int
    held_by: list[str]


class ScaleDecision(BaseModel):
    """What scaling by load decided, and why."""

    decided_at: datetime
    action: str
    rule: str
    reason: str


class Erasure(BaseModel):
    """What was erased from the stream and what was made of it, and the signed certificate, or what
    that waits for."""

    request: str
    requested_by: str
    reason: str
    asked_at: datetime
    certified_at: datetime | None
    events: int
    streams: int
    state: str
    waits_for: list[str] | None
    certificate: dict[str, Any] | None


class Completeness(BaseModel):
    """Up to which event time the stream is complete, as its writers state."""

    event_time: str
    complete_until: datetime | None
    newest_event_time: datetime | None
    late_events: int
    held_by: str | None


class Stream(BaseModel):
    """A stream in full. `rejected`: the stream of rows that it has rejected, if any."""

    facts: Facts
    settings: dict[str, Any]
    rejected: str | None
    columns: list[Column]
    transactions: list[Transaction]
    files: Files
    retention: list[RetentionDecision]
    scaling: list[ScaleDecision]
    erasures: list[Erasure]
    completeness: Completeness | None


@router.get("/streams/{scope}/{name}")
def show_stream(asked: Asked, scope: str, name: str) -> Stream:
    """Return all about a stream. Fourteen statements, at most."""
    stream = f"{scope}/{name}"

    def read(connection: Connection) -> Stream:
        def of(statement: str) -> list[Any]:
            return rows(connection, statement, stream=stream)

        found = of(_SETTINGS)
        if not found:
            raise NotFound("stream_not_found", f"there is no stream {stream}.")
        [(settings, now, rejects)] = found
        [facts] = facts_of(connection, [stream], now)
        [(files,)] = of(_FILES)
        small = of(_SMALL) if files <= MOST_FILES else []
        complete = of(_COMPLETE)
        return Stream(
            facts=facts,
            settings=settings,
            rejected=f"{stream}.rejected" if rejects else None,
            columns=[Column(**row._mapping) for row in of(_COLUMNS)],
            transactions=[Transaction(**row._mapping) for row in of(_TRANSACTIONS)],
            files=Files(
                files=min(files, MOST_FILES),
                more=files > MOST_FILES,
                **(small[0]._mapping if small else {}),
            ),
            retention=[RetentionDecision(**row._mapping) for row in of(_RETENTION)],
            scaling=[ScaleDecision(**row._mapping) for row in of(_SCALING)],
            erasures=[Erasure(**row._mapping) for row in of(_ERASED)],
            completeness=Completeness(**complete[0]._mapping) if complete else None,
        )

    return asked.snapshot(read)
