"""Who asked for an erasure: a row that outlives the run, so that another try continues it, and the
certificate is signed later if files are still in use."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from weir.annex.erasure.copies import Remaining
from weir.warehouse.paths import ADJUNCT


class Request(NamedTuple):
    """A request as it is recorded."""

    request_id: str
    stream_id: int
    requested_by: str
    reason: str
    asked: dict[str, Any]
    stores: dict[str, int]
    outputs: dict[str, dict[str, int]]
    searched: list[dict[str, Any]] | None
    remains: list[dict[str, Any]] | None
    certificate: dict[str, Any] | None
    done_at: datetime | None

    @property
    def streams(self) -> list[int]:
        """The streams that were searched."""
        return [one["stream_id"] for one in self.searched or ()]


_REQUEST = f"SELECT {', '.join(Request._fields)} FROM erasure_request"  # noqa: S608 - constants


def find(connection: Connection, request_id: str) -> Request | None:
    """Return a request; None if it has not begun."""
    found = text(f"{_REQUEST} WHERE request_id = :id")
    row = connection.execute(found, {"id": request_id}).one_or_none()
    return None if row is None else Request(*row)


def alike(connection: Connection, stream_id: int, reason: str, *, done: bool) -> list[Request]:
    """Return the requests for a stream with a reason that have come to their end, or have not, the
    newest first; at most ten."""
    found = text(
        f"""{_REQUEST} WHERE stream_id = :stream AND reason = :reason
            AND (done_at IS NOT NULL) = :done
        ORDER BY asked_at DESC LIMIT 10"""
    )
    rows = connection.execute(found, {"stream": stream_id, "reason": reason, "done": done})
    return [Request(*row) for row in rows]


def begin(
    connection: Connection, request_id: str, stream_id: int, by: str, reason: str,
    asked: dict[str, Any],
) -> None:  # fmt: skip
    """Record a request. One that is recorded stays what it is."""
    connection.execute(
        text("SELECT begin_erasure(:id, :s, :by, :reason, CAST(:asked AS jsonb))"),
        {"id": request_id, "s": stream_id, "by": by, "reason": reason, "asked": json.dumps(asked)},
    )


def end(
    connection: Connection, request_id: str, searched: Sequence[dict[str, Any]],
    remains: Sequence[Remaining], keys: Sequence[str], before: Request | None = None,
) -> int:  # fmt: skip
    """Record that the events are out of the files of all streams, and let all that is garbage of
    these go without a grace period, even if nothing was found: it may have them. So may attempts at
    outputs of their groups, and what is left of deleted streams and stores. Forget the keys among
    the hot ones. Returns how many events were erased; of a request that found none, and no garbage
    that may have some and is newer than a request for the same `before`, nothing stays."""
    streams = [one["stream_id"] for one in searched]
    given = {"id": request_id, "streams": streams, "since": before and before.done_at}
    waiting = connection.execute(_WAITING, given).scalar_one()
    connection.execute(_GOES, {**given, "adjunct": ADJUNCT})
    connection.execute(
        text(
            """DELETE FROM hot_key
            WHERE stream_id = ANY(:streams) AND routing_key = ANY(CAST(:keys AS text[]))"""
        ),
        {**given, "keys": list(keys)},
    )
    erased = {
        row.stream_id: row.events
        for row in connection.execute(
            text(
                """SELECT stream_id, sum(events)::bigint AS events FROM erasure
                WHERE asked ->> 'request' = :id GROUP BY 1"""
            ),
            given,
        )
    }
    if not erased and not waiting and forget(connection, request_id):
        return 0
    remains = [*_reading(connection, request_id, streams), *remains]
    connection.execute(
        text("SELECT end_erasure(:id, CAST(:searched AS jsonb), CAST(:remains AS jsonb))"),
        {
            "id": request_id, "searched": json.dumps(list(searched)),
            "remains": json.dumps([one.__dict__ for one in remains]),
        },
    )  # fmt: skip
    return sum(erased.values())


# Attempts at outputs are named by their group; what is left of streams and stores that are deleted
# says no more who made it. What expired of a store that is there may be read, as long as its grace.
_OF_THEM = """(g.stream_id = ANY(:streams) OR g.root <> '' AND EXISTS (
    SELECT FROM placement p WHERE p.stream_id = ANY(:streams) AND p.number = 1
        AND strpos('/' || g.path, '/group=' || p.group_name || '/') > 0))"""
# What was compacted has no event that another file has not.
_WAITING = text(
    f"""SELECT EXISTS (SELECT FROM garbage g WHERE {_OF_THEM}
        AND g.reason NOT IN ('swept', 'compacted', 'expired')
        AND g.garbage_since > coalesce(CAST(:since AS timestamptz), '-infinity'))"""  # noqa: S608 - constants
)
_GOES = text(
    f"""UPDATE garbage g SET reason = 'erased', stream_id = CASE WHEN EXISTS (
            SELECT FROM stream s WHERE s.stream_id = g.stream_id AND s.state <> 'deleted')
            THEN g.stream_id END
    WHERE g.reason NOT IN ('swept', 'erased') AND ({_OF_THEM}
        OR g.root = '' AND (g.stream_id IS NULL AND NOT (g.reason = 'expired' AND EXISTS (
            SELECT FROM adjunct_store a
            WHERE starts_with(g.path, :adjunct || a.store_id || '/'))) OR EXISTS (
            SELECT FROM stream s WHERE s.stream_id = g.stream_id AND s.state = 'deleted')))"""  # noqa: S608 - constants
)


def _reading(connection: Connection, request_id: str, streams: Sequence[int]) -> list[Remaining]:
    """Return the groups whose batches may have read the events before, and written since."""
    rows = connection.execute(
        text(
            """SELECT g.name, string_agg(b.batch_id::text, ', ' ORDER BY b.batch_id) AS batches
            FROM placement r JOIN reader_group g USING (group_id)
            JOIN reader_batch b USING (group_id)
            WHERE r.stream_id = ANY(:streams) AND r.number = 1 AND (b.state = 'open'
                OR b.committed_at >= (
                    SELECT e.asked_at FROM erasure_request e WHERE e.request_id = :id))
            GROUP BY g.name ORDER BY g.name"""
        ),
        {"id": request_id, "streams": list(streams)},
    )
    return [
        Remaining(
            "what reader group", row.name,
            f"wrote with batch {row.batches}, which was open when this ran, and may have read them",
            "until that is erased, too",
        )
        for row in rows
    ]  # fmt: skip


def forget(connection: Connection, request_id: str) -> bool:
    """Delete a request by which nothing was erased, and return whether that is so."""
    gone: bool = connection.execute(
        text("SELECT forget_erasure(:id)"), {"id": request_id}
    ).scalar_one()
    return gone


def waits_for(connection: Connection, streams: Sequence[int], grace: float) -> list[str]:
    """Return what still keeps files with erased events of some streams."""
    return list(
        connection.execute(
            text("SELECT * FROM erasure_waits(CAST(:streams AS bigint[]), :grace)"),
            {"streams": list(streams), "grace": grace},
        ).scalars()
    )
