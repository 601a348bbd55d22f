"""Commit: staged files get their offsets and become visible, in one Postgres transaction.

Where a segment that was written to no longer lies inside one active segment (it was split), the
commit rolls (PDP-24, PDP-32): it duplicates the transaction's epoch, puts the files there, seals
it, and duplicates the current epoch after it. No data is rewritten, and for every key what was
committed before the roll comes first, then the transaction's events, then what follows.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
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
    streams = {stream.stream_id: stream for stream in locked}
    return [_commit_one(connection, streams[s.attempt.stream_id], s) for s in staged]


def _commit_one(connection: Connection, stream: LockedStream, staged: Staged) -> Committed:
    attempt = staged.attempt
    row = connection.execute(
        text(
            """SELECT state, attempt, epoch, clock, events, rejected, bytes, files, append_again,
                array(SELECT path FROM transaction_input i WHERE i.stream_id = t.stream_id
                      AND i.transaction_number = t.transaction_number) AS inputs
            FROM transaction t WHERE stream_id = :s AND transaction_number = :n"""
        ),
        {"s": attempt.stream_id, "n": attempt.transaction_number},
    ).one()
    if row.attempt != attempt.attempt or row.state == "aborted":
        now = "aborted" if row.state == "aborted" else f"held by attempt {row.attempt}"
        raise Fenced(
            f"transaction {attempt.transaction_number} of stream {stream.name} is {now}; attempt "
            f"{attempt.attempt} may not commit it, and what it wrote will be deleted."
        )
    if row.state == "committed":
        return Committed(
            str(stream.name), attempt.transaction_number, row.clock, row.events, row.rejected,
            row.bytes, row.files, repeated=True,
        )  # fmt: skip
    stream.must_be_active()
    if not row.append_again:
        check_inputs(connection, stream, attempt.transaction_number, row.inputs)
    version = _widen(connection, stream, staged.fields)
    active = active_segments(connection, stream.stream_id)
    written = {file.segment_id for file in staged.files}
    sources = {s.segment_id: s for s in attempt.segments if s.segment_id in written}
    if unknown := written - sources.keys():
        raise InvariantViolation(
            f"attempt {attempt.attempt} at transaction {attempt.transaction_number} of stream "
            f"{stream.name} wrote to segment {segment_name(min(unknown))}, which is not one of its "
            "epoch's; nothing was committed."
        )
    targets = {
        source.segment_id: tail
        for source in sources.values()
        for tail in active
        if tail.segment.key_low <= source.key_low and source.key_high <= tail.segment.key_high
    }
    if len(targets) == len(written):
        clock = tick(connection, stream)
        _place(connection, staged, targets, clock, version)
        rolled = False
    else:
        clock = _roll(connection, stream, staged, row.epoch, active, version)
        rolled = True
    return Committed(
        str(stream.name),
        attempt.transaction_number,
        clock,
        sum(file.events for file in staged.files),
        staged.rejected,
        sum(file.bytes for file in staged.files),
        len(staged.files),
        rolled,
    )


def _widen(connection: Connection, stream: LockedStream, fields: list[Field]) -> int:
    current = schema_of(connection, stream)
    wanted = combine(str(stream.name), current, fields)
    if wanted == current:
        return stream.schema_version
    connection.execute(
        text(
            """WITH made AS (
                INSERT INTO stream_schema (stream_id, version, fields)
                VALUES (:s, :v, CAST(:fields AS jsonb))
            )
            UPDATE stream SET schema_version = :v WHERE stream_id = :s"""
        ),
        {"s": stream.stream_id, "v": stream.schema_version + 1, "fields": json.dumps(wanted)},
    )
    return stream.schema_version + 1


def _roll(
    connection: Connection,
    stream: LockedStream,
    staged: Staged,
    epoch: int,
    active: Sequence[Tail],
    version: int,
) -> int:
    first = stream.current_epoch + 1
    origin = segments_at(connection, stream.stream_id, epoch)
    references: dict[int, int] = {
        row.epoch: row.reference_epoch
        for row in connection.execute(
            text(
                """SELECT epoch, reference_epoch FROM epoch
                WHERE stream_id = :s AND epoch = ANY(:epochs)"""
            ),
            {"s": stream.stream_id, "epochs": [epoch, stream.current_epoch]},
        )
    }
    copies = [_copy(segment, first) for segment in origin]
    current = [tail.segment for tail in active]
    old, new = _ranges(current), _ranges(origin)
    request = f"transaction {staged.attempt.transaction_number}"
    clock = tick(connection, stream, 3)  # the first epoch, the commit, the second epoch
    next_epoch(
        connection,
        stream,
        epoch=first,
        reference_epoch=references[epoch],
        clock=clock,
        seal=[segment.segment_id for segment in current],
        create=copies,
        splits_and_merges=splits_and_merges(old, new),
        cause="roll",
        request_id=request,
        next_segment_number=stream.next_segment_number,
    )
    targets = {
        segment.segment_id: Tail(copy, 0, 0) for segment, copy in zip(origin, copies, strict=True)
    }
    _place(connection, staged, targets, clock + 1, version)
    next_epoch(
        connection,
        stream,
        epoch=first + 1,
        reference_epoch=references[stream.current_epoch],
        clock=clock + 2,
        seal=[copy.segment_id for copy in copies],
        create=[_copy(segment, first + 1) for segment in current],
        splits_and_merges=splits_and_merges(new, old),
        cause="roll",
        request_id=request,
        next_segment_number=stream.next_segment_number,
    )
    return clock + 1


def _copy(segment: Segment, epoch: int) -> Segment:
    return Segment(segment_id(segment.number, epoch), segment.key_low, segment.key_high)


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
