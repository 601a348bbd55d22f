"""Tables that are made of views. Made by `make queries` from sql/queries/pages/tables.sql."""

from collections.abc import Sequence
from datetime import date, datetime

from pydantic import BaseModel
from sqlalchemy import Connection, text

NAMES = text(
    """SELECT s.stream_name FROM weir_internal.stream s
WHERE s.state <> 'deleted' AND CASE :stream WHEN '' THEN s.stream_name > :after ELSE s.stream_name = :stream END
ORDER BY s.stream_name LIMIT :most"""
)


def names(connection: Connection, *, stream: str, after: str, most: int) -> list[str]:
    """Return the names of streams, a few of them."""
    result = connection.execute(NAMES, {"stream": stream, "after": after, "most": most})
    return [row[0] for row in result]


ALERTS = text(
    """SELECT at, stream, reader_group, alert, message FROM weir.retention_alerts
WHERE stream = ANY(:names) ORDER BY at DESC, stream, reader_group"""
)


class AlertShown(BaseModel):
    """What somebody should look at."""

    at: datetime
    stream: str
    reader_group: str
    alert: str
    message: str


def alerts(connection: Connection, *, names: Sequence[str]) -> list[AlertShown]:
    """Return what somebody should look at of streams."""
    result = connection.execute(ALERTS, {"names": list(names)})
    return [AlertShown(**row._mapping) for row in result]


DISK = text(
    """SELECT bytes, kind, stream, name, since, freed_by FROM weir.disk WHERE stream = ANY(:names)
UNION ALL
SELECT bytes, kind, stream, name, since, freed_by FROM weir.disk
WHERE :rest AND stream IS NULL AND kind NOT IN ('events', 'database')
UNION ALL
SELECT sum(bytes)::bigint, kind, NULL, 'its tables, most of all ' || (array_agg(name ORDER BY bytes DESC))[1], NULL,
    min(freed_by)
FROM weir.disk WHERE :rest AND kind = 'database' GROUP BY kind
ORDER BY bytes DESC, kind, name"""
)


class DiskShown(BaseModel):
    """What takes space."""

    bytes: int
    kind: str
    stream: str | None
    name: str
    since: datetime | None
    freed_by: str


def disk(connection: Connection, *, names: Sequence[str], rest: bool) -> list[DiskShown]:
    """Return what takes space: what streams have, and with `rest` what is of none."""
    result = connection.execute(DISK, {"names": list(names), "rest": rest})
    return [DiskShown(**row._mapping) for row in result]


DELETED = text(
    """SELECT deleted_at, stream AS name, deleted_by AS request, created_at, sealed_at, files, files_left, stream_id AS folder
FROM weir.deleted_streams
WHERE (:stream = '' OR stream = :stream) AND stream_id < CAST(:before AS bigint)
ORDER BY stream_id DESC LIMIT :most"""
)


class DeletedShown(BaseModel):
    """What is left of a stream."""

    deleted_at: datetime | None
    name: str
    request: str | None
    created_at: datetime
    sealed_at: datetime
    files: int | None
    files_left: bool
    folder: int


def deleted(connection: Connection, *, stream: str, before: int, most: int) -> list[DeletedShown]:
    """Return the streams that were deleted, the last ones first."""
    result = connection.execute(DELETED, {"stream": stream, "before": before, "most": most})
    return [DeletedShown(**row._mapping) for row in result]


COLUMNS = text(
    """SELECT name, stored_name AS name_in_files, type, added_at, changes, dropped_at, named_by
FROM weir.column_history WHERE stream = :stream ORDER BY dropped_at IS NOT NULL, position, stored_name
LIMIT :most"""
)


class ColumnShown(BaseModel):
    """A column of a stream."""

    name: str
    name_in_files: str
    type: str
    added_at: datetime
    changes: list[str]
    dropped_at: datetime | None
    named_by: list[str]


def columns(connection: Connection, *, stream: str, most: int) -> list[ColumnShown]:
    """Return the columns that a stream has or had, with what became of each, and who names it."""
    result = connection.execute(COLUMNS, {"stream": stream, "most": most})
    return [ColumnShown(**row._mapping) for row in result]


CALENDAR = text(
    """SELECT day, hours, files, appends, failed FROM weir_internal.calendar(:stream, CAST(:before AS date), :days)
ORDER BY day DESC"""
)


class DayShown(BaseModel):
    """A day of a stream: per hour whether it is complete, and has events."""

    day: date
    hours: list[str]
    files: int
    appends: int
    failed: int


def calendar(connection: Connection, *, stream: str, before: date, days: int) -> list[DayShown]:
    """Return the last days of a stream by hours."""
    result = connection.execute(CALENDAR, {"stream": stream, "before": before, "days": days})
    return [DayShown(**row._mapping) for row in result]
