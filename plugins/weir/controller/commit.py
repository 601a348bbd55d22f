"""Commit: staged files get their offsets and become visible, in one Postgres transaction.

Where a segment that was written to no longer lies inside one active segment (it was split), the
commit rolls (PDP-24, PDP-32): it duplicates the transaction's epoch, puts the files there, seals
it, and duplicates the current epoch after it. No data is rewritten, and for every key what was
committed before the roll comes first, then the transaction's events, then what follows.

A roll takes along every transaction of that epoch that waits to commit: a single append that finds
it must roll first says that it is ready, lets go of the stream for a moment, and whoever gets the
stream next commits all that are ready.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from sqlalchemy import Connection, text

from weir.controller.epochs import Tail, active_segments, next_epoch, segments_at, tick
from weir.controller.locks import LockedStream, lock_streams
from weir.controller.place import place, targets_of
from weir.controller.staged import Staged, announce, waiting, waiting_epochs
from weir.controller.streams import widen
from weir.controller.transactions import Attempt, Committed, held_by_another
from weir.errors import Conflict, Fenced, NotFound
from weir.key_space import KeyRange, splits_and_merges
from weir.schema import Field, combine
from weir.segment import Segment, segment_id
from weir.storage import Database

_FIND = text("SELECT * FROM find_append(:s, :n, :v)")
# Seconds in which other appends that must roll may say so too: one roll then does for all.
_GATHER = 0.05


def commit(database: Database, *staged: Staged) -> list[Committed]:
    """Commit transactions of one or more streams, all or none; again for the same attempts is
    harmless.

    Raises Fenced when an attempt was taken over or aborted.
    """
    ready = False  # whether it has said that it waits for a roll

    def work(connection: Connection) -> list[Committed] | None:
        locked = lock_streams(connection, ids=[s.attempt.stream_id for s in staged])
        # Others may not commit a part of a whole.
        may_wait = not ready and len(staged) == 1
        return _commit_in(connection, locked, staged, ready=ready, may_wait=may_wait)

    while (done := database.transaction(work)) is None:
        ready = True
        time.sleep(_GATHER)
    return done


def commit_in(
    connection: Connection, locked: Sequence[LockedStream], staged: Sequence[Staged]
) -> list[Committed]:
    """The same in a transaction that has locked the streams."""
    done = _commit_in(connection, locked, staged, ready=False, may_wait=False)
    assert done is not None
    return done


def _commit_in(
    connection: Connection,
    locked: Sequence[LockedStream],
    staged: Sequence[Staged],
    *,
    ready: bool,
    may_wait: bool,
) -> list[Committed] | None:
    done: dict[int, Committed] = {}
    for stream in locked:
        commits = _Commits(connection, stream, ready)
        for i, one in enumerate(staged):
            if one.attempt.stream_id == stream.stream_id:
                committed = commits.add(one, may_wait)
                if committed is None:
                    return None
                done[i] = committed
        commits.end_roll()
    return [done[i] for i in range(len(staged))]


def commit_waiting(connection: Connection, stream: LockedStream) -> LockedStream:
    """Commit all that waits for a roll, before the stream changes so that nothing could."""
    commits = _Commits(connection, stream, ready=True)
    for epoch in waiting_epochs(connection, stream.stream_id):
        for staged in waiting(connection, stream, epoch):
            with suppress(Conflict):
                commits.add(staged, may_wait=False)
        commits.end_roll()
    return commits.stream


class _Commits:
    """The commits of one call to one stream, one after the other.

    Those of one epoch that follow each other share a roll: once the copies of their epoch's
    segments are the active ones, they are appended like any other.
    """

    def __init__(self, connection: Connection, stream: LockedStream, ready: bool) -> None:
        self._connection = connection
        self.stream = stream  # kept up to date: nobody else changes what is locked
        self._ready = ready
        self._rolling: _Roll | None = None

    def add(self, staged: Staged, may_wait: bool) -> Committed | None:
        """Commit one; None when it must roll first and said instead that it is ready to."""
        attempt = staged.attempt
        found = self._look(staged)
        if found.state == "committed":
            return Committed(
                str(self.stream.name), attempt.transaction_number, found.clock, found.events,
                found.rejected, found.bytes, found.files, rolled=self._ready,
                repeated=not self._ready,
            )  # fmt: skip
        if self._rolling is not None and self._rolling.origin != found.epoch:
            self.end_roll()
            found = self._look(staged)
        if targets_of(staged, found.tails) is None:
            if may_wait:
                announce(self._connection, staged)
                return None
            why = f"transaction {attempt.transaction_number} began before a split"
            self._start_roll(found.epoch, [tail.segment for tail in found.tails], why)
            found = self._look(staged)
        return self._place(staged, found)

    def end_roll(self) -> None:
        """Place what waits, seal the copies, and make copies of what was active before active."""
        if (roll := self._rolling) is not None:
            for staged in waiting(self._connection, self.stream, roll.origin):
                # What would be refused is left for its own writer to be told.
                with suppress(Conflict):
                    self._place(staged, self._look(staged))
            active = active_segments(self._connection, self.stream.stream_id)
            self._copy(roll.before, [tail.segment for tail in active], roll.reference)
            self._rolling = None

    def _look(self, staged: Staged) -> "_Found":
        """What stands for or against a commit now. Raises Fenced, Conflict, InvariantViolation."""
        found = _look(self._connection, self.stream, staged.attempt)
        if found.state == "open":
            self.stream.must_be_active()
            staged.check_segments()
        return found

    def _place(self, staged: Staged, found: "_Found") -> Committed:
        targets = targets_of(staged, found.tails)
        assert targets is not None, "it rolled, or it didn't need to"
        wanted = combine(str(self.stream.name), found.fields, staged.fields)
        self.stream = widen(self._connection, self.stream, wanted, found.fields)
        clock = place(self._connection, staged, targets, self.stream.schema_version)
        return Committed(
            str(self.stream.name),
            staged.attempt.transaction_number,
            clock,
            sum(file.events for file in staged.files),
            staged.rejected,
            sum(file.bytes for file in staged.files),
            len(staged.files),
            rolled=self._rolling is not None,
        )

    def _start_roll(self, origin: int, active: Sequence[Segment], reason: str) -> None:
        """Make copies of an earlier epoch's segments the active ones."""
        connection, stream = self._connection, self.stream
        references: dict[int, int] = {
            row.epoch: row.reference_epoch
            for row in connection.execute(
                text(
                    """SELECT epoch, reference_epoch FROM epoch
                    WHERE stream_id = :s AND epoch = ANY(:epochs)"""
                ),
                {"s": stream.stream_id, "epochs": [origin, stream.current_epoch]},
            )
        }
        self._rolling = _Roll(
            origin,
            active,
            references[stream.current_epoch],
            reason,
        )
        self._copy(segments_at(connection, stream.stream_id, origin), active, references[origin])

    def _copy(
        self, originals: Sequence[Segment], sealed: Sequence[Segment], reference: int
    ) -> None:
        assert self._rolling is not None
        epoch = self.stream.current_epoch + 1
        next_epoch(
            self._connection,
            self.stream,
            epoch=epoch,
            reference_epoch=reference,
            clock=tick(self._connection, self.stream),
            seal=[segment.segment_id for segment in sealed],
            create=[Segment(segment_id(s.number, epoch), s.key_low, s.key_high) for s in originals],
            splits_and_merges=splits_and_merges(_ranges(sealed), _ranges(originals)),
            cause="roll",
            reason=self._rolling.reason,
            request_id="",
            next_segment_number=self.stream.next_segment_number,
        )
        self.stream = replace(self.stream, current_epoch=epoch)


@dataclass(frozen=True)
class _Roll:
    """A roll that has begun: the epoch it duplicates, and what to return to."""

    origin: int
    before: Sequence[Segment]
    reference: int
    reason: str


@dataclass(frozen=True)
class _Found:
    """What a commit finds: its transaction, the schema, and the active segments."""

    state: str
    epoch: int
    clock: int
    events: int
    rejected: int
    bytes: int
    files: int
    fields: list[Field] | None
    tails: list[Tail]


def _look(connection: Connection, stream: LockedStream, attempt: Attempt) -> _Found:
    """One statement, whatever the number of segments and input files."""
    row = connection.execute(
        _FIND,
        {"s": attempt.stream_id, "n": attempt.transaction_number, "v": stream.schema_version},
    ).one_or_none()
    if row is None:
        raise NotFound(f"stream {attempt.stream} has no transaction {attempt.transaction_number}.")
    if row.attempt != attempt.attempt or row.state == "aborted":
        now = "aborted" if row.state == "aborted" else f"held by attempt {row.attempt}"
        raise Fenced(
            f"transaction {attempt.transaction_number} of stream {attempt.stream} is {now}; "
            f"attempt {attempt.attempt} may not commit it, and what it wrote will be deleted."
        )
    if row.holder is not None:
        raise held_by_another(stream.name, row.path, row.holder, row.source, row.ended_at)
    columns = zip(row.ids, row.lows, row.highs, row.offsets, row.till, strict=True)
    tails = [Tail(Segment(s, low, high), offset, till) for s, low, high, offset, till in columns]
    return _Found(
        row.state, row.epoch, row.clock, row.events, row.rejected, row.bytes, row.files,
        row.fields, tails,
    )  # fmt: skip


def _ranges(segments: Sequence[Segment]) -> list[KeyRange]:
    return [KeyRange(s.key_low, s.key_high) for s in segments]
