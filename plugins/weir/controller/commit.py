"""Commit appends: staged files get their offsets and become visible, in one Postgres transaction.

If a segment that was written to has been split, or was merged with another one and the ranks of
their files alternate, the commit rolls (semantics 12.2): it duplicates the transaction's epoch,
puts the files there, seals it, and duplicates the current epoch after it.
No data is rewritten. For every key, the events before the roll come first, then those of the
transaction, then those that follow.

A roll commits every transaction of that epoch that waits. A single append that must roll first
records that it is ready and releases the stream for a moment; the session that locks the stream
next commits all that are ready. Else eight appends beside one split would make 16 epochs, and every
reader would walk through them.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from weir.controller.epochs import next_epoch
from weir.controller.locks import LockedStream, lock_streams, not_active
from weir.controller.staged import announce, waiting
from weir.controller.streams import dropped_columns, next_schema, schema_of
from weir.controller.transactions import Committed, has, held_by_another, result_of
from weir.database.connection import Database
from weir.errors import Conflict, Fenced, InvariantViolation, NotFound
from weir.kernel.attempt import Staged
from weir.model.event_time import not_complete_yet, say_time
from weir.model.key_space import KeyRange, splits_and_merges
from weir.model.new_columns import combine
from weir.model.segment import Segment, segment_id
from weir.queries.controller import commit as sql
from weir.queries.controller import epochs
from weir.queries.controller import staged as staged_sql
from weir.warehouse.paths import attempt_folder

log = logging.getLogger("weir.transactions")

_NEW = -1  # the columns that were written must be compared with the schema first
# Seconds in which other appends that must roll may record that they are ready, to share one roll.
_GATHER = 0.25


def commit(database: Database, *staged: Staged) -> list[Committed]:
    """Commit transactions of one or more streams, all or none, and return what each did.

    Committing the same attempts again changes nothing. Raises Fenced if an attempt was taken over
    or aborted, Conflict if a stream is sealed or another transaction holds one of the files,
    NotFound if a stream was deleted.
    """
    ready = False  # whether it has recorded that it waits for a roll
    asked: set[object] = set()

    def work(connection: Connection) -> list[Committed] | None:
        locked = lock_streams(connection, ids=[s.attempt.stream_id for s in staged])
        # Several transactions are committed together or not at all, so they cannot wait for a roll.
        return _commit_in(connection, locked, staged, ready, may_wait=len(staged) == 1)

    while True:
        if len(staged) == 1:  # mostly, one statement does everything
            found = _alone(database, staged[0])
            if found.outcome in ("late", "outside"):
                staged = (_asked_for(staged[0], found, asked),)
                continue
            if found.outcome not in ("schema", "roll"):
                return [_committed(staged[0], found, ready=ready, rolled=False)]
        if (done := database.transaction(work)) is not None:
            return done
        ready = True
        time.sleep(_GATHER)


def commit_begun(database: Database, *staged: Staged) -> list[Committed]:
    """Commit attempts that the caller has begun, once. Returns and raises like `commit`, but says
    `repeated` of none: what is found committed is what this call did, and the answer was lost."""
    return [replace(done, repeated=False) for done in commit(database, *staged)]


def commit_in(
    connection: Connection, locked: Sequence[LockedStream], staged: Sequence[Staged]
) -> list[Committed]:
    """Commit within a transaction that has locked the streams. Returns and raises like `commit`."""
    done = _commit_in(connection, locked, staged, ready=False, may_wait=False)
    assert done is not None
    return done


def _commit_in(
    connection: Connection,
    locked: Sequence[LockedStream],
    staged: Sequence[Staged],
    ready: bool,
    may_wait: bool,
) -> list[Committed] | None:
    done: dict[int, Committed] = {}
    for stream in locked:
        commits = _Commits(connection, stream, ready)
        for i, one in enumerate(staged):
            if one.attempt.stream_id == stream.stream_id:
                committed = commits.add(one, may_wait and not ready)
                if committed is None:
                    return None
                done[i] = committed
        commits.end_roll()
    return [done[i] for i in range(len(staged))]


def commit_waiting(connection: Connection, stream: LockedStream) -> LockedStream:
    """Commit the transactions that wait for a roll, because a seal makes their commit impossible.
    Return the stream as it is then."""
    commits = _Commits(connection, stream, ready=True)
    for epoch in staged_sql.waiting_epochs(connection, stream_id=stream.stream_id):
        for staged in waiting(connection, stream, epoch):
            with suppress(Conflict, Fenced):
                commits.add(staged, may_wait=False)
        commits.end_roll()
    return commits.stream


class _Commits:
    """The commits of one call to one stream, one after the other.

    Successive commits of one epoch share a roll: once the copies of the epoch's segments are
    active, the files are appended to them like any others.
    """

    def __init__(self, connection: Connection, stream: LockedStream, ready: bool) -> None:
        self._connection = connection
        self.stream = stream  # kept up to date here, because nobody else changes a locked stream
        self._ready = ready
        self._rolling: _Roll | None = None

    def add(self, staged: Staged, may_wait: bool) -> Committed | None:
        """Commit one transaction; return None if it must roll and has recorded that it is ready
        instead.
        """
        if self._rolling is not None and self._rolling.originals != staged.attempt.segments:
            self.end_roll()
        version = _version(staged)
        again = ("schema", "roll", "late", "outside")
        asked: set[object] = set()
        while (found := self._place(staged, version)).outcome in again:
            staged = _asked_for(staged, found, asked)
            if found.outcome == "schema":
                version = self._combine(staged)
            elif found.outcome == "roll":
                if may_wait:
                    announce(self._connection, staged)
                    return None
                why = f"transaction {staged.attempt.transaction_number} began before a scale"
                self._start_roll(has(found.epoch), why)
        return _committed(staged, found, ready=self._ready, rolled=self._rolling is not None)

    def end_roll(self) -> None:
        """End a roll: commit what waits, and replace the copies by copies of the segments
        before.
        """
        if (roll := self._rolling) is not None:
            for staged in waiting(self._connection, self.stream, roll.origin):
                # A commit that is refused is left to its own writer, who gets the error.
                with suppress(Conflict, Fenced):
                    self.add(staged, may_wait=True)
            active = epochs.active_segments(self._connection, stream_id=self.stream.stream_id)
            self._copy(roll, roll.before, active, roll.reference)
            self._rolling = None

    def _place(self, staged: Staged, version: int) -> sql.CommitAppend:
        return sql.commit_locked(self._connection, **_given(staged, version))

    def _combine(self, staged: Staged) -> int:
        """Add the columns that were written to the stream's schema; return its version."""
        schema = schema_of(self._connection, self.stream)
        name, setting = str(self.stream.name), staged.attempt.on_new_column
        dropped = dropped_columns(self._connection, self.stream)
        wanted = combine(name, schema, staged.fields or [], setting, dropped)
        self.stream = next_schema(self._connection, self.stream, wanted, schema, dropped)
        return self.stream.schema_version

    def _start_roll(self, origin: int, reason: str) -> None:
        """Make copies of an earlier epoch's segments the active ones."""
        connection, stream = self._connection, self.stream
        both = [origin, stream.current_epoch]
        references = {
            row.epoch: row.reference_epoch
            for row in sql.references(connection, stream_id=stream.stream_id, epochs=both)
        }
        originals = epochs.segments_at(connection, stream_id=stream.stream_id, epoch=origin)
        active = epochs.active_segments(connection, stream_id=stream.stream_id)
        self._rolling = _Roll(
            origin, tuple(originals), active, references[stream.current_epoch], reason
        )
        self._copy(self._rolling, originals, active, references[origin])

    def _copy(
        self, roll: "_Roll", originals: Sequence[Segment], sealed: Sequence[Segment], reference: int
    ) -> None:
        epoch = self.stream.current_epoch + 1
        next_epoch(
            self._connection,
            self.stream,
            epoch=epoch,
            reference_epoch=reference,
            seal=[segment.segment_id for segment in sealed],
            create=[Segment(segment_id(s.number, epoch), s.key_low, s.key_high) for s in originals],
            splits_and_merges=splits_and_merges(_ranges(sealed), _ranges(originals)),
            cause="roll",
            reason=roll.reason,
            request_id="",
            next_segment_number=self.stream.next_segment_number,
        )
        self.stream = replace(self.stream, current_epoch=epoch)


@dataclass(frozen=True)
class _Roll:
    """A roll that has begun: the epoch that it duplicates, and the segments to return to."""

    origin: int
    originals: tuple[Segment, ...]
    before: Sequence[Segment]
    reference: int
    reason: str


def _asked_for(staged: Staged, found: sql.CommitAppend, asked: set[object]) -> Staged:
    """Return the files with the counts that a commit asks for before it can be done. Raises
    InvariantViolation for the same once more: it would be asked for without end."""
    what = found.outcome, found.complete_until if found.outcome == "late" else None
    if what in asked:
        raise InvariantViolation(
            "invariant_violated",
            f"the commit of transaction {staged.attempt.transaction_number} of stream "
            f"{staged.attempt.stream} is asked for the same again ({found.outcome}), so nothing "
            "was committed; this is a defect of Weir, please report it.",
        )
    asked.add(what)
    if found.outcome == "outside":
        return staged.outside(found.not_before, has(found.not_after))
    if found.outcome == "late" and found.complete_until is not None:
        return staged.recounted(found.complete_until)
    return staged


def _version(staged: Staged) -> int:
    """Return the schema version that was written, if it is the one that the attempt was given."""
    attempt = staged.attempt
    return attempt.schema_version if staged.fields == attempt.fields else _NEW


def _alone(database: Database, staged: Staged) -> sql.CommitAppend:
    """Commit by one statement, which locks the stream."""
    found: sql.CommitAppend = database.statement(sql.COMMIT_ALONE, _given(staged, _version(staged)))
    return found


def _given(staged: Staged, version: int) -> dict[str, Any]:
    """Return the parameters of the one statement that commits. Raises InvariantViolation."""
    staged.check()
    attempt, files, times = staged.attempt, staged.in_order(), staged.times
    return {
        "stream_id": attempt.stream_id,
        "number": attempt.transaction_number,
        "attempt": attempt.attempt,
        "version": version,
        "segments": [file.segment_id for file in files],
        "events": [file.events for file in files],
        "bytes": [file.bytes for file in files],
        "first": [file.first_seq for file in files],
        "last": [file.last_seq for file in files],
        "paths": [file.path for file in files],
        "fenced": [
            attempt_folder(attempt.stream_id, attempt.transaction_number, earlier)
            for earlier in range(1, attempt.attempt)
        ],
        "rejected_files": [file.path for file in staged.rejected_files],
        "rejected": staged.rejected,
        "min_times": [file.min_time for file in files],
        "max_times": [file.max_time for file in files],
        "untimed": staged.untimed,
        "event_time": times and times.expression,
        "late": times and times.late,
        "complete_until": times and times.complete_until,
        "outside": times is not None and times.outside,
        "ahead": times and times.ahead,
        "behind": times and times.behind,
        "stated": attempt.stated_until,
        "hashes": [file.hashes for file in files],
        "end_hashes": [file.end_hash for file in files],
        "file_hashes": [file.file_hash for file in files],
        "erased_keys": staged.erased_keys,
    }


def _committed(staged: Staged, found: sql.CommitAppend, *, ready: bool, rolled: bool) -> Committed:
    """Return what a commit did. Raises Fenced, Conflict or NotFound if it was refused."""
    attempt = staged.attempt
    number, name = attempt.transaction_number, attempt.stream
    if found.outcome in ("committed", "repeated"):
        # An append that had recorded that it waits was committed by another's roll.
        repeated = found.outcome == "repeated"
        if found.returned_writer is not None:
            log.warning(
                "writer %s had stated that it was done with stream %s; it counts again",
                found.returned_writer, name,
            )  # fmt: skip
        for events, where in (
            (found.ahead, f"later than now ({say_time(found.max_event_time or 0)} at the most)"),
            (
                found.behind,
                f"far before the others ({say_time(found.min_event_time or 0)} or later)",
            ),
        ):
            if events:
                log.warning(
                    "%d events of transaction %d of stream %s are %s; they are appended, but no "
                    "hour or day begins with them",
                    events, number, name, where,
                )  # fmt: skip
        return replace(
            result_of(name, number, found), rolled=ready if repeated else rolled,
            repeated=repeated and not ready, returned_writer=found.returned_writer,
            added_columns=staged.added, missing_columns=staged.missing,
            ahead=found.ahead or 0, behind=found.behind or 0,
        )  # fmt: skip
    if found.outcome == "no stream":
        raise NotFound(
            "stream_deleted",
            f"the stream with number {attempt.stream_id}, {name}, was deleted during the append; "
            "append to one that exists (the view weir.streams lists them).",
        )
    if found.outcome == "unknown":
        raise NotFound(
            "transaction_not_found",
            f"stream {name} has no transaction {number}, as a recovery forgets appends that were "
            "not committed; begin the append again.",
        )
    if found.outcome == "fenced":
        now = "aborted" if found.state == "aborted" else f"held by attempt {found.attempt}"
        raise Fenced(
            "attempt_fenced",
            f"transaction {number} of stream {name} is {now}, so attempt {attempt.attempt} may "
            "not commit it; try again (Weir will delete what this attempt wrote).",
        )
    if found.outcome == "held":
        raise held_by_another(name, has(found.held))
    if found.outcome == "erased":
        raise Fenced(
            "attempt_fenced",
            f"routing keys were erased from stream {name}, which refuses such appends, while "
            f"transaction {number} was written, so nothing was committed; append again, and the "
            "rows are compared with these keys, too.",
        )
    if found.outcome == "not yet":
        assert attempt.stated_until is not None, number
        raise not_complete_yet(name, attempt.stated_until)
    raise not_active(name, found.outcome)


def _ranges(segments: Sequence[Segment]) -> list[KeyRange]:
    return [KeyRange(s.key_low, s.key_high) for s in segments]
