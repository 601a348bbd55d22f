"""Where staged files go: into which active segments, and at which offsets."""

from collections.abc import Sequence
from itertools import pairwise

from sqlalchemy import Connection, text

from weir.controller.epochs import Tail
from weir.controller.staged import Staged
from weir.errors import InvariantViolation
from weir.warehouse import attempt_folder


def targets_of(staged: Staged, active: Sequence[Tail]) -> dict[int, Tail] | None:
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


def place(connection: Connection, staged: Staged, targets: dict[int, Tail], version: int) -> int:
    """Give the files their offsets behind the tails of their target segments, record them, and
    issue the clock of the commit, which is returned."""
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
    clock = connection.execute(
        text(
            """WITH ticked AS (
                UPDATE stream SET last_clock =
                    greatest(last_clock + 1, time_clock(clock_timestamp()))
                WHERE stream_id = :s RETURNING last_clock
            ), files AS (
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
                       to_byte - from_byte, last_clock, :n FROM moved, ticked
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
                staged = NULL,
                clock = last_clock, events = :all_events, bytes = :all_bytes, files = :all_files,
                rejected = :rejected
            FROM ticked WHERE stream_id = :s AND transaction_number = :n
            RETURNING clock"""
        ),
        {
            "s": attempt.stream_id,
            "n": attempt.transaction_number,
            "version": version,
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
    ).scalar_one()
    return int(clock)
