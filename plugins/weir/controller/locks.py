"""Lock rows of streams, in the order of semantics 4.3: before those of reader groups and readers
(`weir.reader_groups.locks`).

The locks are FOR NO KEY UPDATE: with foreign keys, two sessions that insert a child row and then
lock its parent FOR UPDATE would deadlock. After locking, read again what you read before (semantics
4.3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection

from weir.database import columns
from weir.errors import Conflict, NotFound
from weir.front_ends import do
from weir.model.names import StreamName
from weir.model.stream_configuration import Configuration
from weir.queries.controller import locks as sql


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


S = TypeVar("S", bound=StreamRow)


def lock_streams(
    connection: Connection, *, names: Sequence[StreamName] = (), ids: Iterable[int] = ()
) -> list[LockedStream]:
    """Lock streams, given by name or by id, and return them in the order of their ids.

    Raises NotFound naming the first one that does not exist.
    """
    ids = sorted(set(ids))
    scopes = [name.scope for name in names]
    rows = sql.lock_streams(connection, ids=ids, scopes=scopes, names=[name.name for name in names])
    return locked(rows, names, ids)


def locked(
    rows: Sequence[sql.StreamColumns], names: Sequence[StreamName], ids: Iterable[int]
) -> list[LockedStream]:
    """Return streams whose rows are locked. Raises NotFound naming the first one that is not there,
    of those that were given by name or by id."""
    found = [_made(LockedStream, row) for row in rows]
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
    row = sql.read_stream(connection, scope=name.scope, name=name.name)
    if row is None:
        raise no_such_stream(name)
    return _made(StreamRow, row)


def _made(kind: type[S], row: sql.StreamColumns) -> S:
    given = row._asdict()
    configuration = columns.taken(Configuration, given)
    name = StreamName(given.pop("scope"), given.pop("name"))
    return kind(name=name, configuration=configuration, **given)


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


def why_not_active(connection: Connection, names: Sequence[StreamName]) -> dict[str, str]:
    """Return, for each of some streams that are not active, the sentence that says why: it does not
    exist, or it is sealed."""
    found = {}
    for name in names:
        try:
            error = str(not_active(name, read_stream(connection, name).state))
        except NotFound as not_found:
            error = str(not_found)
        found[str(name)] = error
    return found
