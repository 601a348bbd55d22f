"""Requests for erasures, what they end, and what they leave. Made by `make queries` from sql/annex/erasure/queries/requests.sql."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from weir.annex.erasure.asked import AskedOf

FIND = text(
    """SELECT r.request_id, r.stream_id, r.reason, r.asked, r.stores, r.outputs, r.searched, r.remains,
    array(SELECT (o ->> 'stream_id')::bigint FROM jsonb_array_elements(r.searched) o) AS streams,
    r.certificate IS NOT NULL AS signed, r.done_at
FROM erasure_request r WHERE r.request_id = :request_id"""
)


class Request(NamedTuple):
    """A request as it is recorded."""

    request_id: str
    stream_id: int
    reason: str
    asked: AskedOf
    stores: dict[str, int]
    outputs: dict[str, dict[str, int]]
    searched: list[dict[str, Any]] | None
    remains: list[dict[str, str]] | None
    streams: list[int]
    signed: bool
    done_at: datetime | None


def find(connection: Connection, *, request_id: str) -> Request | None:
    """Return a request; None if it has not begun."""
    result = connection.execute(FIND, {"request_id": request_id})
    row = result.one_or_none()
    return None if row is None else Request._make(row)


ALIKE = text(
    """SELECT r.request_id, r.stream_id, r.reason, r.asked, r.stores, r.outputs, r.searched, r.remains,
    array(SELECT (o ->> 'stream_id')::bigint FROM jsonb_array_elements(r.searched) o) AS streams,
    r.certificate IS NOT NULL AS signed, r.done_at
FROM erasure_request r WHERE r.stream_id = :stream_id AND r.reason = :reason
    AND (r.done_at IS NOT NULL) = CAST(:done AS boolean)
ORDER BY r.asked_at DESC LIMIT 10"""
)


def alike(connection: Connection, *, stream_id: int, reason: str, done: bool) -> list[Request]:
    """Return the requests for a stream with a reason that have come to their end, or have not, the newest first; at most ten."""
    result = connection.execute(ALIKE, {"stream_id": stream_id, "reason": reason, "done": done})
    return [Request._make(row) for row in result]


BEGIN = text(
    """SELECT begin_erasure(:request_id, :stream_id, :by, :reason, CAST(:asked AS jsonb))"""
)


def begin(
    connection: Connection, *, request_id: str, stream_id: int, by: str, reason: str, asked: str
) -> None:
    """Record a request. One that is recorded stays what it is."""
    result = connection.execute(
        BEGIN,
        {
            "request_id": request_id,
            "stream_id": stream_id,
            "by": by,
            "reason": reason,
            "asked": asked,
        },
    )
    result.close()


GARBAGE_WAITS = text(
    """SELECT EXISTS (SELECT FROM garbage g WHERE (g.stream_id = ANY(:streams) OR g.root <> '' AND EXISTS (
        SELECT FROM placement p WHERE p.stream_id = ANY(:streams) AND p.number = 1
            AND strpos('/' || g.path, '/group=' || p.group_name || '/') > 0))
    AND g.reason NOT IN ('swept', 'compacted', 'expired')
    AND g.garbage_since > coalesce(CAST(:since AS timestamptz), '-infinity'))"""
)


def garbage_waits(
    connection: Connection, *, streams: Sequence[int], since: datetime | None
) -> bool:
    """Return whether garbage may have events of the streams that is newer than `since`. What was compacted has no event that another file has not."""
    result = connection.execute(GARBAGE_WAITS, {"streams": list(streams), "since": since})
    value: bool = result.scalar_one()
    return value


LET_GARBAGE_GO = text(
    """UPDATE garbage g SET reason = 'erased', stream_id = CASE WHEN EXISTS (
        SELECT FROM stream s WHERE s.stream_id = g.stream_id AND s.state <> 'deleted')
        THEN g.stream_id END
WHERE g.reason NOT IN ('swept', 'erased') AND ((g.stream_id = ANY(:streams) OR g.root <> '' AND EXISTS (
        SELECT FROM placement p WHERE p.stream_id = ANY(:streams) AND p.number = 1
            AND strpos('/' || g.path, '/group=' || p.group_name || '/') > 0))
    OR g.root = '' AND (g.stream_id IS NULL AND NOT (g.reason = 'expired' AND EXISTS (
        SELECT FROM adjunct_store a
        WHERE starts_with(g.path, CAST(:adjunct AS text) || a.store_id || '/'))) OR EXISTS (
        SELECT FROM stream s WHERE s.stream_id = g.stream_id AND s.state = 'deleted')))"""
)


def let_garbage_go(connection: Connection, *, streams: Sequence[int], adjunct: str) -> None:
    """Let all garbage go without a grace period that may have events of the streams."""
    result = connection.execute(LET_GARBAGE_GO, {"streams": list(streams), "adjunct": adjunct})
    result.close()


FORGET_HOT_KEYS = text(
    """DELETE FROM hot_key WHERE stream_id = ANY(:streams) AND routing_key = ANY(CAST(:keys AS text[]))"""
)


def forget_hot_keys(connection: Connection, *, streams: Sequence[int], keys: Sequence[str]) -> None:
    """Forget the keys among the hot ones."""
    result = connection.execute(FORGET_HOT_KEYS, {"streams": list(streams), "keys": list(keys)})
    result.close()


HAS_ERASED = text("""SELECT EXISTS (SELECT FROM erasure WHERE asked ->> 'request' = :request_id)""")


def has_erased(connection: Connection, *, request_id: str) -> bool:
    """Return whether a request has erased events of a stream."""
    result = connection.execute(HAS_ERASED, {"request_id": request_id})
    value: bool = result.scalar_one()
    return value


END = text("""SELECT end_erasure(:request_id, CAST(:searched AS jsonb), CAST(:remains AS jsonb))""")


def end(connection: Connection, *, request_id: str, searched: str, remains: str) -> None:
    """Record that a request is done, with what it searched and what it left."""
    result = connection.execute(
        END, {"request_id": request_id, "searched": searched, "remains": remains}
    )
    result.close()


READING = text(
    """SELECT g.name, string_agg(b.batch_id::text, ', ' ORDER BY b.batch_id) AS batches
FROM placement r JOIN reader_group g USING (group_id)
JOIN reader_batch b USING (group_id)
WHERE r.stream_id = ANY(:streams) AND r.number = 1 AND (b.state = 'open'
    OR b.committed_at >= (
        SELECT e.asked_at FROM erasure_request e WHERE e.request_id = :request_id))
GROUP BY g.name ORDER BY g.name"""
)


class Reading(NamedTuple):
    """A row of `reading`."""

    name: str
    batches: str


def reading(connection: Connection, *, streams: Sequence[int], request_id: str) -> list[Reading]:
    """Return the groups whose batches may have read the events before, and written since."""
    result = connection.execute(READING, {"streams": list(streams), "request_id": request_id})
    return [Reading._make(row) for row in result]


FORGET = text("""SELECT forget_erasure(:request_id)""")


def forget(connection: Connection, *, request_id: str) -> bool:
    """Delete a request by which nothing was erased, and return whether that is so."""
    result = connection.execute(FORGET, {"request_id": request_id})
    value: bool = result.scalar_one()
    return value
