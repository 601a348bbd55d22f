"""Delete a sealed stream with all its metadata, whichever package wrote it (semantics 5.4)."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.locks import LockedStream
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import Conflict, NotFound
from weir.front_ends import do, give
from weir.model.names import StreamName
from weir.reader_groups.locks import lock_stream_and_groups
from weir.seams import hung
from weir.warehouse.paths import stream_folder


@dataclass(frozen=True)
class Forgotten:
    """A seam: `forget` ends what an annex has made of a locked stream, which is deleted, or whose
    files may be others than those that it knows."""

    forget: Callable[[Connection, int], None]


def delete_stream(
    database: Database,
    name: StreamName,
    *,
    unread_too: bool = False,
    dry_run: bool = False,
    request_id: str,
) -> dict[str, Any]:
    """Delete a sealed stream with all its metadata, and make garbage of its files.

    A stream of the same name can then be created; its segment numbers continue those of this one.
    `unread_too`: delete it although a subscriber has unread events. `dry_run`: change nothing, and
    also return its `events` and `bytes`, and by name how many events each group has `unread`.
    Returns `stream` and `files` (how many became garbage). Raises NotFound; and Conflict if the
    stream is not sealed, if a batch on it is open, or if a subscriber has unread events.
    """
    request = Request(request_id, "delete_stream", str(name), {"unread_too": unread_too})

    def work(connection: Connection) -> dict[str, Any]:
        # Before locking: of a stream that is deleted there is no row to lock.
        if not dry_run and (before := request.result(connection)) is not None:
            return before
        try:
            stream = lock_stream_and_groups(connection, name)
        except NotFound:  # another try of this request may have deleted it meanwhile
            if (before := request.result(connection)) is None:
                raise
            return before
        if stream.state != "sealed":
            raise Conflict(
                "stream_not_sealed",
                f"stream {name} is {stream.state}; first {do('seal_stream', stream=str(name))}.",
            )
        unread = _check_unread(connection, stream, unread_too)
        if dry_run:
            return {"stream": str(name), "unread": unread, **_content(connection, stream.stream_id)}
        return request.done(
            connection, {"stream": str(name), "files": _delete(connection, stream.stream_id)}
        )

    return database.transaction(work)


def _content(connection: Connection, stream_id: int) -> dict[str, int]:
    """Return how many `files`, `bytes` and `events` a stream has."""
    row = connection.execute(
        text(
            """SELECT count(*) AS files, coalesce(sum(f.bytes), 0)::bigint AS bytes,
                (SELECT u.events FROM stream s CROSS JOIN LATERAL
                    unread_from(s.stream_id, s.head, s.head, NULL) u
                 WHERE s.stream_id = :s) AS events
            FROM data_file f WHERE f.stream_id = :s"""
        ),
        {"s": stream_id},
    ).one()
    return {"files": row.files, "bytes": row.bytes, "events": int(row.events)}


def _check_unread(connection: Connection, stream: LockedStream, unread_too: bool) -> dict[str, int]:
    """Return how many events each group has not read. Raises Conflict for a batch that is open, and
    for those of subscribers, unless `unread_too`."""
    groups = connection.execute(
        text(
            """SELECT g.name, EXISTS (
                SELECT FROM held_segments(g.group_id) h WHERE h.stream_id = :s) AS reading,
                (SELECT unread_events FROM lag l WHERE l.reader_group = g.name
                 AND l.stream = :name) AS unread, g.subscriber
            FROM reader_group_stream gs JOIN reader_group g USING (group_id)
            WHERE gs.stream_id = :s ORDER BY g.name"""
        ),
        {"s": stream.stream_id, "name": str(stream.name)},
    ).all()
    for row in groups:
        if row.reading:
            raise Conflict(
                "batch_open",
                f"reader group {row.name} has an open batch on stream {stream.name}; wait until "
                "it is committed.",
            )
        if row.subscriber and row.unread and not unread_too:
            raise Conflict(
                "events_unread",
                f"subscriber {row.name} has {row.unread:,} unread events in stream {stream.name}; "
                f"let it read them, or {give(unread_too=True)}.",
            )
    return {row.name: int(row.unread) for row in groups if row.unread}


def _delete(connection: Connection, stream_id: int) -> int:
    for annex in hung(Forgotten):
        annex.forget(connection, stream_id)
    files = connection.execute(
        text(
            """WITH file AS (DELETE FROM data_file WHERE stream_id = :s RETURNING bytes),
            old AS (  -- else they would count for as long as a restored database may need them
                DELETE FROM garbage WHERE stream_id = :s AND root = '' AND reason = 'compacted'
                RETURNING bytes
            ),
            freed AS (
                INSERT INTO garbage (root, path, stream_id, reason, bytes)
                SELECT '', :folder, NULL, 'deleted', coalesce(sum(bytes), 0)
                FROM (SELECT bytes FROM file UNION ALL SELECT bytes FROM old) every
            ),
            position AS (DELETE FROM reader_group_segment WHERE stream_id = :s),
            clock AS (DELETE FROM time_index WHERE stream_id = :s),
            packed AS (DELETE FROM packed_commits WHERE stream_id = :s),
            hole AS (DELETE FROM hole WHERE stream_id = :s),
            erased AS (DELETE FROM erased_keys WHERE stream_id = :s),
            input AS (DELETE FROM transaction_input WHERE stream_id = :s),
            writer AS (DELETE FROM stream_writer WHERE stream_id = :s),
            append AS (DELETE FROM transaction WHERE stream_id = :s),
            anew AS (DELETE FROM compaction WHERE stream_id = :s),
            tail AS (DELETE FROM segment_tail WHERE stream_id = :s),
            shard AS (DELETE FROM segment WHERE stream_id = :s),
            generation AS (DELETE FROM epoch WHERE stream_id = :s),
            record AS (DELETE FROM stream_cut WHERE stream_id = :s),
            moved AS (DELETE FROM capture_queue WHERE stream_id = :s),
            due AS (DELETE FROM retention_queue WHERE stream_id = :s),
            told AS (DELETE FROM announcement WHERE stream_id = :s),
            decision AS (DELETE FROM retention_decision WHERE stream_id = :s),
            placement AS (DELETE FROM placement WHERE stream_id = :s),
            given AS (DELETE FROM delivered_range WHERE stream_id = :s),
            range AS (DELETE FROM truncated_range WHERE stream_id = :s),
            receipt AS (DELETE FROM truncation WHERE stream_id = :s),
            scaling AS (DELETE FROM scale_decision WHERE stream_id = :s),
            evaluation AS (DELETE FROM scale_evaluation WHERE stream_id = :s),
            measurement AS (DELETE FROM scale_measurement WHERE stream_id = :s),
            hot AS (DELETE FROM hot_key WHERE stream_id = :s),
            columns AS (DELETE FROM stream_schema WHERE stream_id = :s),
            ended AS (
                UPDATE stream SET state = 'deleted', head = CAST(:empty AS jsonb),
                    schema_version = 0
                WHERE stream_id = :s
            )
            SELECT count(*) FROM file"""
        ),
        {"s": stream_id, "folder": stream_folder(stream_id), "empty": json.dumps({})},
    ).scalar_one()
    return int(files)
