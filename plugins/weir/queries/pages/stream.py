"""One stream. Made by `make queries` from sql/queries/pages/stream.sql."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel
from sqlalchemy import Connection, text

SETTINGS = text(
    """SELECT to_jsonb(c) - '{stream,schema,schema_version}'::text[] AS settings,
    date_trunc('minute', statement_timestamp()) AS now,
    EXISTS (SELECT FROM weir.stream_configuration r WHERE r.stream = c.stream || '.rejected')
        AS rejects
FROM weir.stream_configuration c WHERE c.stream = :stream"""
)


class Settings(BaseModel):
    """A row of `settings`."""

    settings: dict[str, Any]
    now: datetime
    rejects: bool


def settings(connection: Connection, *, stream: str) -> Settings | None:
    """Return the settings of a stream, the minute of now, and whether it has a stream of rejected rows."""
    result = connection.execute(SETTINGS, {"stream": stream})
    row = result.one_or_none()
    return None if row is None else Settings(**row._mapping)


COLUMNS = text(
    """SELECT version, position, name, type, default_value, change, newest, created_at
FROM weir.stream_columns WHERE stream = :stream
ORDER BY version DESC, position LIMIT :most"""
)


class Column(BaseModel):
    """A column in a version of the schema; `type` as Spark writes it in JSON."""

    version: int
    position: int
    name: str
    type: Any
    default_value: str | None
    change: str | None
    newest: bool
    created_at: datetime


def columns(connection: Connection, *, stream: str, most: int) -> list[Column]:
    """Return the columns of a stream, those of the newest version first."""
    result = connection.execute(COLUMNS, {"stream": stream, "most": most})
    return [Column(**row._mapping) for row in result]


TRANSACTIONS = text(
    """SELECT transaction_number AS number, state, opened_at, clock AS committed_at,
    events, bytes, files, rejected, writer_id, batch_id, source
FROM weir.transactions WHERE stream = :stream
ORDER BY transaction_number DESC LIMIT :most"""
)


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


def transactions(connection: Connection, *, stream: str, most: int) -> list[Transaction]:
    """Return the newest appends."""
    result = connection.execute(TRANSACTIONS, {"stream": stream, "most": most})
    return [Transaction(**row._mapping) for row in result]


SMALL = text(
    """SELECT small_files, small_bytes, last_compacted, apart
FROM weir.small_files WHERE stream = :stream"""
)


class Small(BaseModel):
    """A row of `small`."""

    small_files: int
    small_bytes: int
    last_compacted: datetime | None
    apart: str | None


def small(connection: Connection, *, stream: str) -> Small | None:
    """Return which files compaction may put together."""
    result = connection.execute(SMALL, {"stream": stream})
    row = result.one_or_none()
    return None if row is None else Small(**row._mapping)


RETENTION = text(
    """SELECT decided_at, rule, reason, events, bytes, held_by
FROM weir.retention_decisions WHERE stream = :stream
ORDER BY decided_at DESC LIMIT :most"""
)


class RetentionDecision(BaseModel):
    """What retention decided, and why."""

    decided_at: datetime
    rule: str
    reason: str
    events: int
    bytes: int
    held_by: list[str]


def retention(connection: Connection, *, stream: str, most: int) -> list[RetentionDecision]:
    """Return the newest decisions of retention."""
    result = connection.execute(RETENTION, {"stream": stream, "most": most})
    return [RetentionDecision(**row._mapping) for row in result]


SCALING = text(
    """SELECT decided_at, action, rule, reason FROM weir.scale_decisions
WHERE stream = :stream ORDER BY decided_at DESC LIMIT :most"""
)


class ScaleDecision(BaseModel):
    """What scaling by load decided, and why."""

    decided_at: datetime
    action: str
    rule: str
    reason: str


def scaling(connection: Connection, *, stream: str, most: int) -> list[ScaleDecision]:
    """Return the newest decisions of scaling by load."""
    result = connection.execute(SCALING, {"stream": stream, "most": most})
    return [ScaleDecision(**row._mapping) for row in result]


DOCUMENTS = text(
    """SELECT title, request, requested_by, reason, asked_at, events, streams, state, waits_for, made_at,
    file, document
FROM weir.documents WHERE stream = :stream ORDER BY asked_at DESC LIMIT :most"""
)


class Document(BaseModel):
    """What was done to events, and the document about it, or what that waits for."""

    title: str
    request: str
    requested_by: str
    reason: str
    asked_at: datetime
    events: int
    streams: int
    state: str
    waits_for: list[str] | None
    made_at: datetime | None
    file: str
    document: dict[str, Any] | None


def documents(connection: Connection, *, stream: str, most: int) -> list[Document]:
    """Return the newest documents about a stream."""
    result = connection.execute(DOCUMENTS, {"stream": stream, "most": most})
    return [Document(**row._mapping) for row in result]


COMPLETENESS = text(
    """SELECT event_time, complete_until, newest_event_time, late_events, held_by
FROM weir.completeness WHERE stream = :stream"""
)


class Completeness(BaseModel):
    """Up to which event time the stream is complete, as its writers state."""

    event_time: str
    complete_until: datetime | None
    newest_event_time: datetime | None
    late_events: int
    held_by: str | None


def completeness(connection: Connection, *, stream: str) -> Completeness | None:
    """Return up to which event time a stream is complete, if it has event times."""
    result = connection.execute(COMPLETENESS, {"stream": stream})
    row = result.one_or_none()
    return None if row is None else Completeness(**row._mapping)


GRAVE = text(
    """SELECT deleted_at, deleted_by FROM weir.deleted_streams WHERE stream = :stream
ORDER BY stream_id DESC LIMIT 1"""
)


class Grave(BaseModel):
    """A row of `grave`."""

    deleted_at: datetime | None
    deleted_by: str | None


def grave(connection: Connection, *, stream: str) -> Grave | None:
    """Return when a stream of this name was deleted last, and by whom."""
    result = connection.execute(GRAVE, {"stream": stream})
    row = result.one_or_none()
    return None if row is None else Grave(**row._mapping)
