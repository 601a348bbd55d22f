"""Append transactions: begin, ping, abort (semantics 12). `commit` has the commit.

The identity of a transaction is (stream, writer id, batch id). Beginning it again returns the
result if it is committed, and otherwise takes it over under a new attempt. The attempt before is
fenced from then on, because its orphaned driver may still be running.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, NotRequired, TypedDict, TypeVar, cast

from sqlalchemy import Connection

from weir.controller.completeness import state_completeness
from weir.controller.locks import lock_streams, no_such_stream, not_active
from weir.database.connection import Database, wait_for_disk
from weir.errors import Conflict, Fenced, InvalidInput, NotFound
from weir.front_ends import give
from weir.kernel.attempt import Attempt
from weir.model.amounts import check_lease
from weir.model.clock import clock_time
from weir.model.erased_keys import ErasedKeys
from weir.model.event_time import no_event_time, say_time, stated_until
from weir.model.names import StreamName, check_text
from weir.model.segment import Segment
from weir.queries.controller import transactions as sql
from weir.queries.controller.commit import CommitAppend
from weir.warehouse.paths import attempt_folder

log = logging.getLogger("weir.transactions")
T = TypeVar("T")


class InputFile(NamedTuple):
    """A file to append: its path below the input root, and its size in bytes."""

    path: str
    bytes: int


class CommittedReport(TypedDict):
    """`Committed` in the report of a job, and in `committed_at` the time of the clock. Event times
    are texts. `unfinished`: files whose last lines have no line end."""

    stream: str
    transaction_number: int
    clock: int
    events: int
    rejected: int
    bytes: int
    files: int
    rolled: bool
    repeated: bool
    committed_at: str
    min_event_time: NotRequired[str]
    max_event_time: NotRequired[str]
    untimed: NotRequired[int]
    late: NotRequired[int]
    complete_until: NotRequired[str]
    returned_writer: NotRequired[str]
    added_columns: NotRequired[list[str]]
    missing_columns: NotRequired[list[str]]
    ahead: NotRequired[int]
    behind: NotRequired[int]
    unfinished: NotRequired[list[str]]


@dataclass(frozen=True)
class Committed:
    """What a transaction did. `repeated`: it was committed before, and nothing was appended now.

    `min_event_time`, `max_event_time`: of its events, in microseconds since 1970 UTC. `untimed`:
    how many of them have no event time. `late`: how many are earlier than what the stream was
    complete to before it. `complete_until`: what the stream is complete to since. All are None in a
    stream without event time. `returned_writer`: its writer, if that had stated before that it is
    done; it counts again (semantics 16.4).
    `added_columns`: those that the stream has since this append; `missing_columns`: those of the
    stream that its rows do not have. `ahead`: how many events are later than now; `behind`: how
    many are far before what the stream was complete to (`event_time_ahead`, `event_time_back`).
    These five say what this call did; none is kept for a later one.
    """

    stream: str
    transaction_number: int
    clock: int
    events: int
    rejected: int
    bytes: int
    files: int
    rolled: bool = False
    repeated: bool = False
    min_event_time: int | None = None
    max_event_time: int | None = None
    untimed: int | None = None
    late: int | None = None
    complete_until: int | None = None
    returned_writer: str | None = None
    added_columns: tuple[str, ...] = ()
    missing_columns: tuple[str, ...] = ()
    ahead: int = 0
    behind: int = 0

    def report(self) -> CommittedReport:
        """Return the fields for a job's report, without those that say nothing."""
        at = clock_time(self.clock)
        found = {**self.__dict__, "committed_at": at.isoformat(timespec="milliseconds")}
        times = ("min_event_time", "max_event_time", "complete_until")
        for name in (*times, "untimed", "late", "returned_writer"):
            if (value := found.pop(name)) is not None:
                found[name] = say_time(value) if name in times else value
        for name in ("ahead", "behind"):
            if not found[name]:
                del found[name]
        for name in ("added_columns", "missing_columns"):
            if names := found.pop(name):
                found[name] = list(names)
        return cast(CommittedReport, found)


def has(value: T | None) -> T:
    """Return what the outcome of a statement has, and others may lack."""
    assert value is not None
    return value


def result_of(stream: StreamName, number: int, found: sql.BeginAppend | CommitAppend) -> Committed:
    """Return what the database says of a committed transaction."""
    return Committed(
        str(stream), number, has(found.clock), has(found.events), has(found.rejected),
        has(found.bytes), has(found.files),
        min_event_time=found.min_event_time, max_event_time=found.max_event_time,
        untimed=found.untimed, late=found.late, complete_until=found.complete_until,
    )  # fmt: skip


def begin(
    database: Database,
    name: StreamName,
    *,
    writer_id: str,
    batch_id: str,
    fingerprint: str,
    lease: float,
    source: str,
    inputs: Sequence[InputFile] = (),
    allow_repeated_files: bool = False,
    complete_until: datetime | str | None = None,
    guard: Callable[[Connection], object] | None = None,
) -> Attempt | Committed:
    """Open a transaction in the current epoch, or take it over; return Committed if it is done
    already.

    `lease`: in seconds. `complete_until`: what the writer states with the append: all its events
    before this event time are appended with it, at the latest (a datetime, a text, or `done` if it
    appends nothing more). `guard`: called in the same transaction; may refuse by raising, so that a
    reader that was taken over cannot take over. A returned Attempt survives a crash of the server:
    its files are written under its number, which must not be given out again.

    Raises Conflict if the same identity has another fingerprint, if another committed transaction
    holds one of the files (unless `allow_repeated_files`), or if the stream is sealed; NotFound;
    InvalidInput for a lease or a text that Postgres can't keep.
    """
    check_lease(lease)
    stated = stated_until(complete_until)
    for what, value in (("writer_id", writer_id), ("batch_id", batch_id), ("source", source)):
        check_text(what, value)
    for file in inputs:
        check_text("the path", file.path)
    given = {
        "scope": name.scope,
        "name": name.name,
        "writer_id": writer_id,
        "batch_id": batch_id,
        "fingerprint": fingerprint,
        "lease": lease,
        "allow_repeated_files": allow_repeated_files,
        "source": source,
        "paths": [file.path for file in inputs],
        "sizes": [file.bytes for file in inputs],
        "stated": stated,
    }

    if guard is None:
        found: sql.BeginAppend = database.statement(sql.BEGIN_APPEND, given)
    else:
        found = database.transaction(partial(_guarded, given=given, guard=guard))
    if found.outcome == "no event time":
        raise no_event_time(name)
    if found.outcome == "open":
        segments = zip(has(found.ids), has(found.lows), has(found.highs), strict=True)
        return Attempt(
            has(found.stream_id), name, has(found.transaction_number), has(found.attempt),
            tuple(Segment(*one) for one in segments), has(found.routing_key),
            has(found.on_missing_key), has(found.on_bad_rows), has(found.schema_version),
            found.fields, found.event_time, found.complete_until, stated,
            has(found.on_new_column), tuple(found.dropped or ()),
            ErasedKeys.of(found.erased_salt, found.erased_hashes),
        )  # fmt: skip
    if found.outcome == "committed":
        if stated is not None:  # its files are there, and since then it may have learned more
            try:  # it is done, whatever it states now
                state_completeness(database, name, writer_id, stated)
            except (Conflict, InvalidInput, NotFound) as error:
                log.warning("%s", error.sentence)
        return replace(result_of(name, has(found.transaction_number), found), repeated=True)
    if found.outcome == "no stream":
        raise no_such_stream(name)
    if found.outcome == "other input":
        raise Conflict(
            "input_changed",
            f"batch {batch_id!r} of writer {writer_id!r} is already {found.state} in stream "
            f"{name} with another input (the same paths, but other sizes, times or options); "
            f"append changed data under new file names, or {give(allow_repeated_files=True)}.",
        )
    if found.outcome == "held":
        raise held_by_another(name, has(found.held))
    raise not_active(name, found.outcome)


def _guarded(
    connection: Connection, given: dict[str, Any], guard: Callable[[Connection], object]
) -> sql.BeginAppend:
    found = sql.begin_append(connection, **given)
    guard(connection)
    if not found.durable:
        wait_for_disk(connection)
    return found


def held_by_another(name: StreamName, file: dict[str, str]) -> Conflict:
    """Return the error for an append of which another, committed one holds a file."""
    return Conflict(
        "file_already_appended",
        f"file {file['path']!r} is already in stream {name}: transaction "
        f"{file['transaction_number']} of {file['source']} appended it at "
        f"{datetime.fromisoformat(file['ended_at']):%Y-%m-%d %H:%M:%S} UTC; leave it out, or "
        f"{give(allow_repeated_files=True)} to append its rows a second time.",
    )


def ping(connection: Connection, attempt: Attempt, lease: float, longest: float) -> None:
    """Renew the lease of an attempt by `lease` seconds; change nothing if it is committed.

    Raises InvalidInput for a lease longer than `longest`, Conflict if it would reach beyond
    `longest` seconds after the attempt began (the present lease stays), and Fenced if the attempt
    may not continue.
    """
    check_lease(lease)
    if lease > longest:
        raise InvalidInput(
            "argument_invalid",
            f"the lease is {lease:g} s, but a transaction may take at most {longest:g} s "
            "(transaction_max); ask for a shorter lease.",
        )
    stream_id, number = attempt.stream_id, attempt.transaction_number
    if sql.renew(
        connection, lease=lease, stream_id=stream_id, number=number, attempt=attempt.attempt,
        longest=longest,
    ):  # fmt: skip
        return
    found = sql.standing(connection, longest=longest, stream_id=stream_id, number=number)
    if found is not None and (found.state, found.attempt) == ("committed", attempt.attempt):
        return
    still_open = found is not None and (found.state, found.attempt) == ("open", attempt.attempt)
    if found is not None and still_open and found.in_time:
        raise Conflict(
            "transaction_too_long",
            f"the lease of transaction {attempt.transaction_number} of stream {attempt.stream} "
            f"can't be renewed by {lease:g} s, because a transaction may take at most {longest:g} "
            "s (transaction_max); commit it before its lease expires.",
        )
    if found is None:
        why = "does not exist any more, because its stream was deleted"
    elif found.attempt != attempt.attempt:
        why = f"was taken over by attempt {found.attempt}"
    elif found.state == "aborted":
        why = "was aborted"
    else:
        why = f"took longer than {longest:.0f} s (transaction_max)"
    raise Fenced(
        "attempt_fenced",
        f"attempt {attempt.attempt} of transaction {attempt.transaction_number} of stream "
        f"{attempt.stream} {why}; try again.",
    )


def check_attempt(connection: Connection, attempt: Attempt) -> None:
    """Check that the attempt still holds its open transaction. Raises Fenced."""
    if not sql.is_held(
        connection, stream_id=attempt.stream_id, number=attempt.transaction_number,
        attempt=attempt.attempt,
    ):  # fmt: skip
        raise Fenced(
            "attempt_fenced",
            f"attempt {attempt.attempt} of transaction {attempt.transaction_number} of stream "
            f"{attempt.stream} was taken over or aborted; try again.",
        )


def ping_all(
    connection: Connection, attempts: Sequence[Attempt], lease: float, longest: float
) -> None:
    """Renew the leases of several attempts; log those that cannot be renewed, and renew the others.

    Nothing is raised for them: the commit of each decides whether it still may.
    """
    # A copy, because another thread may add to them; in the order in which a commit locks them.
    for attempt in sorted(attempts, key=lambda one: (one.stream_id, one.transaction_number)):
        try:
            ping(connection, attempt, lease, longest)
        except (Conflict, Fenced) as error:
            log.warning("%s", error)


def abort(database: Database, attempt: Attempt) -> bool:
    """Abort an attempt and make garbage of its folder; return False if it was no longer open."""

    def work(connection: Connection) -> bool:
        lock_streams(connection, ids=[attempt.stream_id])
        return abort_in(connection, attempt.stream_id, attempt.transaction_number, attempt.attempt)

    try:
        return database.transaction(work)
    except NotFound:
        return False


def abort_in(connection: Connection, stream_id: int, number: int, attempt: int) -> bool:
    """Abort an attempt within a transaction that has locked the stream; return like `abort`."""
    if not sql.abort(connection, stream_id=stream_id, number=number, attempt=attempt):
        return False
    discard_attempts(connection, stream_id, [(number, attempt)])
    return True


def discard_attempts(
    connection: Connection, stream_id: int, attempts: Sequence[tuple[int, int]]
) -> None:
    """Discard what transactions wrote: make garbage of the folders of all their attempts.

    `attempts`: the number of each transaction, and of its last attempt.
    """
    folders = [
        attempt_folder(stream_id, number, attempt)
        for number, last in attempts
        for attempt in range(1, last + 1)
    ]
    sql.discard(connection, folders=folders, stream_id=stream_id)
