"""Commit: staged files get their offsets and become visible, in one Postgres transaction.

Where a segment that was written to no longer lies inside one active segment (it was split), the
commit rolls (PDP-24, PDP-32): it duplicates the transaction's epoch, puts the files there, seals
it, and duplicates the current epoch after it. No data is rewritten, and for every key what was
committed before the roll comes first, then the transaction's events, then what follows.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlalchemy import Connection, text

from weir.controller.epochs import Tail, active_segments, next_epoch, segments_at, tick
from weir.controller.locks import LockedStream, lock_streams
from weir.controller.streams import schema_of
from weir.controller.transactions import Attempt, Committed, check_inputs
from weir.errors import Fenced, InvariantViolation
from weir.key_space import KeyRange, splits_and_merges
from weir.schema import Field, combine
from weir.segment import Segment, segment_id, segment_name
from weir.storage import Database
from weir.warehouse import attempt_folder


@dataclass(frozen=True)
class StagedFile:
    """A Parquet file that an attempt wrote: rows of one segment in the order of their rank."""

    segment_id: int  # as in its folder: a segment of the attempt's epoch
    path: str  # below the warehouse
    events: int
    bytes: int
    first_seq: int
    last_seq: int


@dataclass(frozen=True)
class Staged:
    """All that an attempt wrote, ready to be committed."""

    attempt: Attempt
    files: tuple[StagedFile, ...]
    fields: list[Field]
    rejected_files: tuple[StagedFile, ...] = ()  # rows that did not become events: garbage now

    @property
    def rejected(self) -> int:
        """How many rows did not become events."""
        return sum(file.events for file in self.rejected_files)


def commit(database: Database, *staged: Staged) -> list[Committed]:
    """Commit transactions of one or more streams, all or none; again for the same attempts is
    harmless.

    Raises Fenced when an attempt was taken over or aborted.
    """

    def work(connection: Connection) -> list[Committed]:
        locked = lock_streams(connection, ids=[s.attempt.stream_id for s in staged])
        return commit_in(connection, locked, staged)

    return database.transaction(work)


def commit_in(
    connection: Connection, locked: Sequence[LockedStream], staged: Sequence[Staged]
) -> list[Committed]:
    """The same in a transaction that has locked the streams."""
    done: dict[int, Committed] = {}
    for stream in locked:
        commits = _Commits(connection, stream)
        for i, one in enumerate(staged):
            if one.attempt.stream_id == stream.stream_id:
                done[i] = commits.add(one)
        commits.end_roll()
    return [done[i] for i in range(len(staged))]


class _Commits:
    """The commits of one call to one stream, one after the other.

    Those of one epoch that follow each other share a roll: once the copies of their epoch's
    segments are the active ones, they are appended like any other.
    """

    def __init__(self, connection: Connection, stream: LockedStream) -> None:
        self._connection = connection
        self._stream = stream  # kept up to date: nobody else changes what is locked
        self._rolling: _Roll | None = None

    def add(self, staged: Staged) -> Committed:
        connection, attempt = self._connection, staged.attempt
        row = connection.execute(
            text(
                """SELECT state, attempt, epoch, clock, events, rejected, bytes, files,
                    append_again,
                    array(SELECT path FROM transaction_input i WHERE i.stream_id = t.stream_id
                          AND i.transaction_number = t.transaction_number) AS inputs
                FROM transaction t WHERE stream_id = :s AND transaction_number = :n"""
            ),
            {"s": attempt.stream_id, "n": attempt.transaction_number},
        ).one()
        name = str(self._stream.name)
        if row.attempt != attempt.attempt or row.state == "aborted":
            now = "aborted" if row.state == "aborted" else f"held by attempt {row.attempt}"
            raise Fenced(
                f"transaction {attempt.transaction_number} of stream {name} is {now}; attempt "
                f"{attempt.attempt} may not commit it, and what it wrote will be deleted."
            )
        if row.state == "committed":
            return Committed(
                name, attempt.transaction_number, row.clock, row.events, row.rejected,
                row.bytes, row.files, repeated=True,
            )  # fmt: skip
        self._stream.must_be_active()
        _check_segments(staged, name)
        if not row.append_again:
            check_inputs(connection, self._stream, attempt.transaction_number, row.inputs)
        self._stream = _widen(connection, self._stream, staged.fields)
        if self._rolling is not None and self._rolling.origin != row.epoch:
            self.end_roll()
        active = active_segments(connection, self._stream.stream_id)
        targets = _targets(staged, active)
        if targets is None:
            self._start_roll(row.epoch, active, attempt.transaction_number)
            active = active_segments(connection, self._stream.stream_id)
            targets = _targets(staged, active)
            assert targets is not None, "the copies have the ranges of the attempt's segments"
        clock = tick(connection, self._stream)
        _place(connection, staged, targets, clock, self._stream.schema_version)
        return Committed(
            name,
            attempt.transaction_number,
            clock,
            sum(file.events for file in staged.files),
            staged.rejected,
            sum(file.bytes for file in staged.files),
            len(staged.files),
            rolled=self._rolling is not None,
        )

    def _start_roll(self, origin: int, active: Sequence[Tail], number: int) -> None:
        """Make copies of an earlier epoch's segments the active ones."""
        connection, stream = self._connection, self._stream
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
            [tail.segment for tail in active],
            references[stream.current_epoch],
            f"transaction {number}",
        )
        self._copy(segments_at(connection, stream.stream_id, origin), active, references[origin])

    def end_roll(self) -> None:
        """Seal the copies, and make copies of what was active before the roll active again."""
        if (roll := self._rolling) is not None:
            active = active_segments(self._connection, self._stream.stream_id)
            self._copy(roll.before, active, roll.reference)
            self._rolling = None

    def _copy(self, originals: Sequence[Segment], active: Sequence[Tail], reference: int) -> None:
        assert self._rolling is not None
        epoch = self._stream.current_epoch + 1
        sealed = [tail.segment for tail in active]
        next_epoch(
            self._connection,
            self._stream,
            epoch=epoch,
            reference_epoch=reference,
            clock=tick(self._connection, self._stream),
            seal=[segment.segment_id for segment in sealed],
            create=[Segment(segment_id(s.number, epoch), s.key_low, s.key_high) for s in originals],
            splits_and_merges=splits_and_merges(_ranges(sealed), _ranges(originals)),
            cause="roll",
            request_id=self._rolling.request_id,
            next_segment_number=self._stream.next_segment_number,
        )
        self._stream = replace(self._stream, current_epoch=epoch)


@dataclass(frozen=True)
class _Roll:
    """A roll that has begun: the epoch it duplicates, and what to return to."""

    origin: int
    before: Sequence[Segment]
    reference: int
    request_id: str


def _check_segments(staged: Staged, name: str) -> None:
    attempt = staged.attempt
    known = {segment.segment_id for segment in attempt.segments}
    if unknown := {file.segment_id for file in staged.files} - known:
        raise InvariantViolation(
            f"attempt {attempt.attempt} at transaction {attempt.transaction_number} of stream "
            f"{name} wrote to segment {segment_name(min(unknown))}, which its epoch does not "
            "have; nothing was committed."
        )


def _targets(staged: Staged, active: Sequence[Tail]) -> dict[int, Tail] | None:
    """Per segment that was written to the active one it lies inside; None if one lies in none."""
    written = {file.segment_id for file in staged.files}
    targets = {
        source.segment_id: tail
        for source in staged.attempt.segments
        if source.segment_id in written
        for tail in active
        if tail.segment.key_low <= source.key_low and source.key_high <= tail.segment.key_high
    }
    return targets if len(targets) == len(written) else None


def _widen(connection: Connection, stream: LockedStream, fields: list[Field]) -> LockedStream:
    """Add the columns that are new, as the next version of the schema."""
    current = schema_of(connection, stream)
    wanted = combine(str(stream.name), current, fields)
    if wanted == current:
        return stream
    version = stream.schema_version + 1
    connection.execute(
        text(
            """WITH made AS (
                INSERT INTO stream_schema (stream_id, version, fields)
                VALUES (:s, :v, CAST(:fields AS jsonb))
            )
            UPDATE stream SET schema_version = :v WHERE stream_id = :s"""
        ),
        {"s": stream.stream_id, "v": version, "fields": json.dumps(wanted)},
    )
    return replace(stream, schema_version=version)


def _ranges(segments: Sequence[Segment]) -> list[KeyRange]:
    return [KeyRange(s.key_low, s.key_high) for s in segments]


def _place(
    connection: Connection, staged: Staged, targets: dict[int, Tail], clock: int, version: int
) -> None:
    """Give the files their offsets behind the tails of their target segments, and record them."""
    attempt = staged.attempt
    files = sorted(staged.files, key=lambda file: (file.segment_id, file.first_seq))
    for one, other in pairwise(files):
        if one.segment_id == other.segment_id and one.last_seq >= other.first_seq:
            raise InvariantViolation(
                f"the files {one.path} and {other.path} interleave (rank {one.last_seq} is not "
                f"below {other.first_seq}): order would be lost, so nothing was committed."
            )
    ends = {tail.segment.segment_id: [tail.offset, tail.bytes] for tail in targets.values()}
    starts = {segment: tuple(end) for segment, end in ends.items()}
    placed = []
    for file in files:
        segment = targets[file.segment_id].segment.segment_id
        placed.append((segment, ends[segment][0], file))
        ends[segment][0] += file.events
        ends[segment][1] += file.bytes
    touched = sorted({segment for segment, _, _ in placed})
    connection.execute(
        text(
            """WITH files AS (
                INSERT INTO data_file (stream_id, transaction_number, schema_version, segment_id,
                    start_offset, events, bytes, first_seq, last_seq, path)
                SELECT :s, :n, :version, f.* FROM unnest(CAST(:segments AS bigint[]),
                    CAST(:offsets AS bigint[]), CAST(:events AS bigint[]), CAST(:bytes AS bigint[]),
                    CAST(:first AS bigint[]), CAST(:last AS bigint[]), CAST(:paths AS text[])) f
            ), moved AS (
                SELECT * FROM unnest(CAST(:touched AS bigint[]), CAST(:from_offset AS bigint[]),
                    CAST(:from_byte AS bigint[]), CAST(:to_offset AS bigint[]),
                    CAST(:to_byte AS bigint[]))
                    AS m (segment_id, from_offset, from_byte, to_offset, to_byte)
            ), indexed AS (
                INSERT INTO time_index (stream_id, segment_id, start_offset, events, start_byte,
                                        bytes, clock, transaction_number)
                SELECT :s, segment_id, from_offset, to_offset - from_offset, from_byte,
                       to_byte - from_byte, :clock, :n FROM moved
            ), tails AS (
                UPDATE segment_tail t SET tail_offset = m.to_offset, tail_bytes = m.to_byte
                FROM moved m WHERE t.stream_id = :s AND t.segment_id = m.segment_id
            ), fenced AS (
                INSERT INTO garbage (root, path, stream_id, reason)
                SELECT '', unnest(CAST(:fenced AS text[])), :s, 'fenced'
                UNION ALL SELECT '', unnest(CAST(:rejected_files AS text[])), :s, 'rejected'
                ON CONFLICT (root, path) DO NOTHING
            )
            UPDATE transaction SET state = 'committed', ended_at = clock_timestamp(),
                clock = :clock, events = :all_events, bytes = :all_bytes, files = :all_files,
                rejected = :rejected
            WHERE stream_id = :s AND transaction_number = :n"""
        ),
        {
            "s": attempt.stream_id,
            "n": attempt.transaction_number,
            "version": version,
            "clock": clock,
            "segments": [segment for segment, _, _ in placed],
            "offsets": [offset for _, offset, _ in placed],
            "events": [file.events for file in files],
            "bytes": [file.bytes for file in files],
            "first": [file.first_seq for file in files],
            "last": [file.last_seq for file in files],
            "paths": [file.path for file in files],
            "touched": touched,
            "from_offset": [starts[segment][0] for segment in touched],
            "from_byte": [starts[segment][1] for segment in touched],
            "to_offset": [ends[segment][0] for segment in touched],
            "to_byte": [ends[segment][1] for segment in touched],
            "fenced": [
                attempt_folder(attempt.stream_id, attempt.transaction_number, earlier)
                for earlier in range(1, attempt.attempt)
            ],
            "all_events": sum(file.events for file in files),
            "all_bytes": sum(file.bytes for file in files),
            "all_files": len(files),
            "rejected": staged.rejected,
            "rejected_files": [file.path for file in staged.rejected_files],
        },
    )
