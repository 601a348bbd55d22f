"""What the database knows of compactions: which files are to be put together, who does it, and the
transaction that puts new files in the place of old ones.

A compaction has a number like a transaction, so that its folder is its own, and a lease. Whoever
finds the lease expired makes garbage of the folder, under the lock under which files are swapped.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, NotRequired, TypedDict

from sqlalchemy import Connection

from weir.controller.locks import lock_streams
from weir.controller.transactions import discard_attempts
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.errors import Fenced
from weir.model.compaction import FEWEST, ROWS, Small
from weir.model.names import StreamName
from weir.queries.compaction import records as sql
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


class Compacted(TypedDict):
    """What was replaced of a stream; or `why` how many small files can't be put together; or the
    `error` with which it failed."""

    stream: str
    files_before: NotRequired[int]
    files_after: NotRequired[int]
    events: NotRequired[int]
    bytes_before: NotRequired[int]
    bytes_after: NotRequired[int]
    files_apart: NotRequired[int]
    why: NotRequired[str]
    error: NotRequired[str]


class Swapped(NamedTuple):
    """How many files were replaced by how many, with how many events and bytes."""

    files_before: int
    files_after: int
    events: int
    bytes_before: int
    bytes_after: int

    def report(self, stream: str) -> Compacted:
        """Return what a report says of it."""
        return {
            "stream": stream, "files_before": self.files_before, "files_after": self.files_after,
            "events": self.events, "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
        }  # fmt: skip


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
    rows = sql.small_files(
        connection,
        names=None if names is None else [str(name) for name in names],
        bytes=size // 2,
        events=ROWS // 2,
        fewest=2 if thorough else FEWEST,
        among=among,
        holder=holder,
        thorough=thorough,
        most=MOST_FILES,
    )
    found: list[Found] = []
    for row in rows:
        if not found or found[-1].stream_id != row.stream_id:
            found.append(Found(row.stream_id, row.stream, []))
        found[-1].files.append(Small(*row[2:11]))
    return found


def files_apart(connection: Connection, names: Sequence[str] | None) -> list[Compacted]:
    """Return `files_apart` and `why` of the streams of which no small files can be put
    together. `names`: of these; None: of all."""
    found = sql.files_apart(connection, names=None if names is None else list(names))
    return [{"stream": row.stream, "files_apart": row.files_apart, "why": row.why} for row in found]


def begin(
    connection: Connection, stream_id: int, lease: float, holder: str | None = None,
    token: str | None = None,
) -> int | None:  # fmt: skip
    """Begin a compaction of a stream, and return its number; None if the stream is gone, or if
    another compaction of it is at work. `holder`: the request that compacts; if another try of it
    has begun one, this takes its place. `token`: of this try, which gets the same number with it
    when its connection was lost."""
    return sql.begin(connection, stream_id=stream_id, lease=lease, holder=holder, token=token)


def folder_of(stream_id: int, number: int) -> str:
    """Return the folder of a compaction, below the warehouse, ending in a slash."""
    return attempt_folder(stream_id, number, 1)


def renew(connection: Connection, stream_id: int, number: int, lease: float) -> None:
    """Renew the lease of a compaction, if it is still open."""
    sql.renew(connection, lease=lease, stream_id=stream_id, number=number)


def swap(
    connection: Connection, stream_id: int, number: int, written: Sequence[Written]
) -> Swapped | None:
    """Put new files in the place of old ones, each if all of its old ones are still there, and end
    the compaction. Returns None if the stream was deleted.

    Raises Fenced if the compaction was aborted meanwhile."""
    row = sql.swap(
        connection,
        stream_id=stream_id,
        number=number,
        segments=[one.old[0].segment_id for one in written],
        starts=[one.old[0].start_offset for one in written],
        events=[sum(file.events for file in one.old) for one in written],
        bytes=[one.bytes for one in written],
        paths=[one.path for one in written],
        footers=[one.end_hash for one in written],
        old=[file.path for one in written for file in one.old],
        news=[i for i, one in enumerate(written, start=1) for _ in one.old],
        erased=[one.erased for one in written],
    )
    if row.outcome == "no stream":
        return None
    if row.outcome != "done":
        raise Fenced(
            "attempt_fenced",
            f"compaction {number} of the stream with number {stream_id} is {row.outcome}, because "
            "its lease has expired, or another try of its request or a recovery has ended it; the "
            "next run does it again.",
        )
    return Swapped(*row[1:])


def keep_apart(connection: Connection, stream_id: int, number: int) -> None:
    """Record of a compaction that it has looked at all small files of its stream, and that none of
    them can be put together with its neighbours."""
    sql.keep_apart(connection, stream_id=stream_id, number=number)


def abort(connection: Connection, stream_id: int, number: int | None = None) -> int:
    """Abort a compaction that has not ended (None: that of the stream whose lease has expired), and
    make garbage of its folder. Returns how many were aborted. The stream is locked by this."""
    lock_streams(connection, ids=[stream_id])
    ended = sql.abort(connection, stream_id=stream_id, number=number)
    discard_attempts(connection, stream_id, [(one, 1) for one in ended])
    return len(ended)


def expire(database: Database) -> list[Compacted]:
    """Abort the compactions whose lease has expired, each in a transaction of its own. Returns
    their streams; of one that failed also the `error`."""
    rows = database.transaction(sql.lapsed)
    ended: list[Compacted] = []
    for stream_id, name in rows:
        one = partial(abort, stream_id=stream_id)
        done, failed = database.one_of_many(f"stream {name}", partial(commit_once, database, one))
        if failed:
            ended.append({"stream": name, "error": failed})
        elif done:
            ended.append({"stream": name})
    return ended


def prune_compactions(database: Database, history: float) -> int:
    """Delete the rows of compactions that ended more than `history` seconds ago. Returns how
    many."""
    return commit_once(database, partial(sql.prune, history=history))
