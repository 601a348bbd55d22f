"""Delete a sealed stream with all its metadata, whichever package wrote it (semantics 5.4)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from sqlalchemy import Connection

from weir.controller.locks import LockedStream
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import Conflict
from weir.front_ends import do, give
from weir.model.names import StreamName
from weir.queries.retention import delete_stream as sql
from weir.reader_groups.locks import lock_stream_and_groups
from weir.seams import hung
from weir.warehouse.paths import stream_folder


@dataclass(frozen=True)
class Forgotten:
    """A seam: `forget` ends what an annex has made of a locked stream, which is deleted, or whose
    files may be others than those that it knows."""

    forget: Callable[[Connection, int], None]


class StreamDeleted(TypedDict):
    """A stream that was deleted, or would be. `files`: how many became garbage. Of a dry run also
    its `events` and `bytes`, and by name how many events each group has `unread`."""

    stream: str
    files: int
    events: NotRequired[int]
    bytes: NotRequired[int]
    unread: NotRequired[dict[str, int]]
    dry_run: NotRequired[bool]


def delete_stream(
    database: Database,
    name: StreamName,
    *,
    unread_too: bool = False,
    dry_run: bool = False,
    request_id: str,
) -> StreamDeleted:
    """Delete a sealed stream with all its metadata, and make garbage of its files.

    A stream of the same name can then be created; its segment numbers continue those of this one.
    `unread_too`: delete it although a subscriber has unread events. `dry_run`: change nothing.
    Raises NotFound; and Conflict if the stream is not sealed, if a batch on it is open, or if a
    subscriber has unread events.
    """
    request = Request[StreamDeleted](
        request_id, "delete_stream", str(name), {"unread_too": unread_too}
    )

    def work(connection: Connection) -> StreamDeleted:
        stream = lock_stream_and_groups(connection, name)
        if stream.state != "sealed":
            raise Conflict(
                "stream_not_sealed",
                f"stream {name} is {stream.state}; first {do('seal_stream', stream=str(name))}.",
            )
        unread = _check_unread(connection, stream, unread_too)
        if dry_run:
            content = sql.content(connection, stream_id=stream.stream_id)
            return {
                "stream": str(name), "unread": unread, "files": content.files,
                "events": content.events, "bytes": content.bytes,
            }  # fmt: skip
        for annex in hung(Forgotten):
            annex.forget(connection, stream.stream_id)
        files = sql.delete(
            connection, stream_id=stream.stream_id, folder=stream_folder(stream.stream_id)
        )
        return request.done(connection, {"stream": str(name), "files": files})

    return database.transaction(lambda c: request.deleted(c, work, dry_run=dry_run))


def _check_unread(connection: Connection, stream: LockedStream, unread_too: bool) -> dict[str, int]:
    """Return how many events each group has not read. Raises Conflict for a batch that is open, and
    for those of subscribers, unless `unread_too`."""
    groups = sql.readers(connection, stream_id=stream.stream_id, stream=str(stream.name))
    for row in groups:
        if row.reading:
            raise Conflict(
                "batch_open",
                f"reader group {row.name} has an open batch on stream {stream.name}; wait until "
                "it is committed.",
            )
        if row.subscriber and row.unread and not unread_too:
            raise Conflict(
                "would_lose_data",
                f"subscriber {row.name} has {row.unread:,} unread events in stream {stream.name}; "
                f"let it read them, or {give(unread_too=True)}.",
            )
    return {row.name: row.unread for row in groups if row.unread}
