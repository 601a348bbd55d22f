"""What the database knows of compactions: which files are to be put together, who does it, and the
transaction that puts new files in the place of old ones.

A compaction has a number like a transaction, so that its folder is its own, and a lease. Whoever
finds the lease expired makes garbage of the folder, under the lock under which files are swapped.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from weir.controller.locks import lock_streams
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.errors import Fenced
from weir.model.compaction import FEWEST, ROWS, Small
from weir.model.names import StreamName
from weir.warehouse.paths import attempt_folder

MOST_FILES = 200_000  # that one run looks at


class Found(NamedTuple):
    """A stream with small files."""

    stream_id: int
    stream: str
    files: list[Small]


class Written(NamedTuple):
    """A new file, and the files whose rows it has."""

    path: str
    bytes: int
    end_hash: int
    first_seq: int
    last_seq: int
    old: Sequence[Small]
    erased: int = 0  # rows of these that it does not have


class Swapped(NamedTuple):
    """How many files were replaced by how many, with how many events and bytes."""

    files_before: int
    files_after: int
    events: int
    bytes_before: int
    bytes_after: int


def find_small_files(
    connection: Connection, names: Sequence[StreamName] | None, size: int, *, thorough: bool,
    among: int | None = None, holder: str | None = None,
) -> list[Found]:  # fmt: skip
    """Return the streams that have small files beside each other, the one with the most first;
    last those in which the last compaction found nothing that can be put together. Unless
    `thorough`, such a stream is left out until something is committed there.

    One statement, whatever the number of files. `names`: of these streams; None: of all. `among`:
    how many files of each it looks at, the first; None: at all. A stream that is being compacted is
    left out, unless `holder`, a request, does it.
    """
    rows = connection.execute(
        text(
            """WITH last AS (
                SELECT DISTINCT ON (c.stream_id) c.stream_id, c.apart, c.begun_at
                FROM compaction c WHERE c.state = 'done' ORDER BY c.stream_id, c.number DESC)
            SELECT s.stream_id, s.stream_name, f.segment_id, f.start_offset, f.events, f.bytes,
                f.schema_version, f.transaction_number, t.clock, f.path, f.erased,
                count(*) OVER (PARTITION BY f.stream_id) AS small
            FROM small_files((SELECT array_agg(n.stream_id) FROM stream n
                              WHERE n.state <> 'deleted' AND n.stream_name = ANY (:names)),
                             :bytes, :events, :fewest, :among) f
            JOIN stream s ON s.stream_id = f.stream_id AND s.state <> 'deleted'
                AND (CAST(:names AS text[]) IS NULL OR s.stream_name = ANY (:names))
            LEFT JOIN last l ON l.stream_id = f.stream_id AND l.apart
            LEFT JOIN transaction t ON t.stream_id = f.stream_id
                AND t.transaction_number = f.transaction_number
            WHERE NOT EXISTS (SELECT FROM compaction c
                              WHERE c.stream_id = f.stream_id AND c.state = 'open'
                                AND c.holder IS DISTINCT FROM :holder)
                AND (:thorough OR l.apart IS NULL OR s.last_clock > time_clock(l.begun_at))
            ORDER BY l.apart NULLS FIRST, small DESC, s.stream_id,
                f.segment_id, f.start_offset LIMIT :most"""
        ),
        {
            "names": None if names is None else [str(name) for name in names],
            "bytes": size // 2, "events": ROWS // 2, "fewest": 2 if thorough else FEWEST,
            "most": MOST_FILES, "thorough": thorough, "among": among,
            "holder": holder,
        },
    ).all()  # fmt: skip
    found: list[Found] = []
    for stream_id, stream, *file, _ in rows:
        if not found or found[-1].stream_id != stream_id:
            found.append(Found(stream_id, stream, []))
        found[-1].files.append(Small(*file))
    return found


def files_apart(connection: Connection, names: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return `stream`, `files_apart` and `why` of the streams of which no small files can be put
    together. `names`: of these; None: of all."""
    rows = connection.execute(
        text(
            """SELECT stream, small_files AS files_apart, apart AS why FROM weir.small_files
            WHERE apart IS NOT NULL
              AND (CAST(:names AS text[]) IS NULL OR stream = ANY (:names)) ORDER BY stream"""
        ),
        {"names": None if names is None else list(names)},
    )
    return [dict(row) for row in rows.mappings()]


def begin(
    connection: Connection, stream_id: int, lease: float, holder: str | None = None,
    token: str | None = None,
) -> int | None:  # fmt: skip
    """Begin a compaction of a stream, and return its number; None if the stream is gone, or if
    another compaction of it is at work. `holder`: the request that compacts; if another try of it
    has begun one, this takes its place. `token`: of this try, which gets the same number with it
    when its connection was lost."""
    number: int | None = connection.execute(
        text("SELECT begin_compaction(:s, :lease, :holder, :token)"),
        {"s": stream_id, "lease": lease, "holder": holder, "token": token},
    ).scalar_one()
    return number


def folder_of(stream_id: int, number: int) -> str:
    """Return the folder of a compaction, below the warehouse, ending in a slash."""
    return attempt_folder(stream_id, number, 1)


def renew(connection: Connection, stream_id: int, number: int, lease: float) -> None:
    """Renew the lease of a compaction, if it is still open."""
    connection.execute(
        text(
            """UPDATE compaction SET lease_until = clock_timestamp() + :lease * interval '1 second'
            WHERE stream_id = :s AND number = :n AND state = 'open'"""
        ),
        {"s": stream_id, "n": number, "lease": lease},
    )


def swap(
    connection: Connection, stream_id: int, number: int, written: Sequence[Written]
) -> Swapped | None:
    """Put new files in the place of old ones, each if all of its old ones are still there, and end
    the compaction. Returns None if the stream was deleted.

    Raises Fenced if the compaction was aborted meanwhile."""
    row = connection.execute(
        text(
            """SELECT * FROM swap_files(:s, :n, CAST(:segments AS bigint[]),
                CAST(:starts AS bigint[]), CAST(:events AS bigint[]), CAST(:bytes AS bigint[]),
                CAST(:paths AS text[]), CAST(:footers AS bigint[]), CAST(:old AS text[]),
                CAST(:news AS integer[]), CAST(:erased AS bigint[]))"""
        ),
        {
            "s": stream_id, "n": number,
            "segments": [one.old[0].segment_id for one in written],
            "starts": [one.old[0].start_offset for one in written],
            "events": [sum(file.events for file in one.old) for one in written],
            "bytes": [one.bytes for one in written], "paths": [one.path for one in written],
            "footers": [one.end_hash for one in written],
            "old": [file.path for one in written for file in one.old],
            "erased": [one.erased for one in written],
            "news": [i for i, one in enumerate(written, start=1) for _ in one.old],
        },
    ).one()  # fmt: skip
    if row.outcome == "no stream":
        return None
    if row.outcome != "done":
        raise Fenced(
            "compaction_fenced",
            f"compaction {number} of the stream with number {stream_id} is {row.outcome}, because "
            "its lease has expired, or another try of its request or a recovery has ended it; the "
            "next run does it again.",
        )
    return Swapped(*row[1:])


def keep_apart(connection: Connection, stream_id: int, number: int) -> None:
    """Record of a compaction that it has looked at all small files of its stream, and that none of
    them can be put together with its neighbours."""
    connection.execute(
        text("UPDATE compaction SET apart = true WHERE stream_id = :s AND number = :n"),
        {"s": stream_id, "n": number},
    )


def abort(connection: Connection, stream_id: int, number: int | None = None) -> int:
    """Abort a compaction that has not ended (None: that of the stream whose lease has expired), and
    make garbage of its folder. Returns how many were aborted. The stream is locked by this."""
    lock_streams(connection, ids=[stream_id])
    ended = connection.execute(
        text(
            """UPDATE compaction SET state = 'aborted', ended_at = clock_timestamp()
            WHERE stream_id = :s AND state = 'open' AND CASE WHEN CAST(:n AS bigint) IS NULL
                THEN greatest(lease_until, pg_postmaster_start_time()) < clock_timestamp()
                ELSE number = :n END
            RETURNING number"""
        ),
        {"s": stream_id, "n": number},
    ).all()
    connection.execute(
        text(
            """INSERT INTO garbage (root, path, stream_id, reason)
            SELECT '', unnest(CAST(:folders AS text[])), :s, 'aborted'
            ON CONFLICT (root, path) DO NOTHING"""
        ),
        {"s": stream_id, "folders": [folder_of(stream_id, row.number) for row in ended]},
    )
    return len(ended)


def expire(database: Database) -> list[dict[str, Any]]:
    """Abort the compactions whose lease has expired, each in a transaction of its own. Returns for
    each its `stream`, or also the `error` with which that failed."""
    rows = database.transaction(
        lambda c: c.execute(
            text(
                """SELECT stream_id, stream_name FROM compaction WHERE state = 'open'
                AND greatest(lease_until, pg_postmaster_start_time()) < clock_timestamp()"""
            )
        ).all()
    )
    ended: list[dict[str, Any]] = []
    for stream_id, name in rows:
        one = partial(abort, stream_id=stream_id)
        done, failed = database.one_of_many(f"stream {name}", partial(commit_once, database, one))
        if failed or done:
            ended.append({"stream": name} | ({"error": failed} if failed else {}))
    return ended


def prune_compactions(database: Database, history: float) -> int:
    """Delete the rows of compactions that ended more than `history` seconds ago. Returns how
    many."""
    return commit_once(
        database,
        lambda c: int(
            c.execute(
                text(
                    """DELETE FROM compaction WHERE state <> 'open'
                    AND ended_at < clock_timestamp() - :history * interval '1 second'"""
                ),
                {"history": history},
            ).rowcount
        ),
    )
