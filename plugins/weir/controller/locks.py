"""Lock rows of streams, in the order of semantics 4.3: before those of reader groups and readers
(`weir.reader_groups.locks`).

The locks are FOR NO KEY UPDATE: with foreign keys, two sessions that insert a child row and then
lock its parent FOR UPDATE would deadlock. After locking, read again what you read before (semantics
4.3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, TextClause, text

from weir.database import columns
from weir.errors import Conflict, NotFound
from weir.front_ends import do
from weir.model.names import StreamName
from weir.model.stream_configuration import Configuration


@dataclass(frozen=True)
class StreamRow:
    """The row of a stream as it was read."""

    stream_id: int
    name: StreamName
    state: str
    configuration: Configuration
    current_epoch: int
    next_segment_number: int
    schema_version: int
    last_clock: int
    head: dict[str, int | str]

    def must_be_active(self) -> None:
        """Check that the stream is active. Raises Conflict if it is sealed."""
        if self.state != "active":
            raise not_active(self.name, self.state)


@dataclass(frozen=True)
class LockedStream(StreamRow):
    """The row of a stream, locked until the end of the transaction."""


_Row = TypeVar("_Row", bound=StreamRow)
STREAM_COLUMNS = f"""stream_id, scope, name, state, {columns.names(Configuration)}, current_epoch,
    next_segment_number, schema_version, last_clock, head"""


_LOCK_STREAMS = text(
    f"""SELECT {STREAM_COLUMNS} FROM lock_streams(CAST(:ids AS bigint[]), CAST(:scopes AS text[]),
        CAST(:names AS text[]))"""  # noqa: S608 - constant column list
)


def lock_streams(
    connection: Connection, *, names: Sequence[StreamName] = (), ids: Iterable[int] = ()
) -> list[LockedStream]:
    """Lock streams, given by name or by id, and return them in the order of their ids.

    Raises NotFound naming the first one that does not exist.
    """
    return locked_by(connection, _LOCK_STREAMS, names, ids)


def locked_by(
    connection: Connection, statement: TextClause, names: Sequence[StreamName], ids: Iterable[int],
    **more: str | None,
) -> list[LockedStream]:  # fmt: skip
    """Return the streams that a statement locks, in the order of their ids.

    `statement`: selects `STREAM_COLUMNS` of the locked rows, and has the parameters ids, scopes,
    names and `more`. Raises NotFound naming the first stream that does not exist.
    """
    ids = sorted(set(ids))
    rows = connection.execute(
        statement,
        {"ids": ids, "scopes": [n.scope for n in names], "names": [n.name for n in names], **more},
    ).mappings()
    found = [_row(dict(row), LockedStream) for row in rows]
    missing = [n for n in names if n not in {s.name for s in found}]
    if missing:
        raise no_such_stream(missing[0])
    gone = set(ids) - {s.stream_id for s in found}
    if gone:
        raise NotFound(
            "stream_deleted",
            f"the stream with number {min(gone)} was deleted; name one that exists (the view "
            "weir.streams lists them).",
        )
    return found


def lock_stream(connection: Connection, name: StreamName) -> LockedStream:
    """Lock one stream and return it. Raises NotFound."""
    return lock_streams(connection, names=[name])[0]


def read_stream(connection: Connection, name: StreamName) -> StreamRow:
    """Return the row of a stream without locking it, for reading only. Raises NotFound."""
    row = (
        connection.execute(
            text(
                f"""SELECT {STREAM_COLUMNS} FROM stream
                WHERE state <> 'deleted' AND scope = :scope AND name = :name"""  # noqa: S608 - constant column list
            ),
            {"scope": name.scope, "name": name.name},
        )
        .mappings()
        .one_or_none()
    )
    if row is None:
        raise no_such_stream(name)
    return _row(dict(row), StreamRow)


def _row(row: dict[str, Any], kind: type[_Row]) -> _Row:
    name = StreamName(row.pop("scope"), row.pop("name"))
    settings = columns.taken(Configuration, row)
    configuration = Configuration(**{**settings, "tags": tuple(settings["tags"])})
    return kind(name=name, configuration=configuration, **row)


def no_such_stream(name: StreamName) -> NotFound:
    """Return the error for a stream that does not exist."""
    return NotFound(
        "stream_not_found",
        f"there is no stream {name}; check the name, or "
        f"{do('create_stream', stream=str(name), routing_key='COLUMN')}.",
    )


def not_active(name: StreamName, state: str) -> Conflict:
    """Return the error for a stream that cannot be changed any more."""
    return Conflict(
        "stream_not_active",
        f"stream {name} is {state}, so it takes no more events and changes; use another stream.",
    )


def why_not_active(connection: Connection, names: Sequence[StreamName]) -> list[dict[str, Any]]:
    """Return, for each of some streams that are not active, a report with the sentence that says
    why: it does not exist, or it is sealed."""
    found = []
    for name in names:
        try:
            error = str(not_active(name, read_stream(connection, name).state))
        except NotFound as not_found:
            error = str(not_found)
        found.append({"stream": str(name), "error": error, "retryable": False})
    return found
