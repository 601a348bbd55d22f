"""Where staged files go: into which active segments, and at which offsets."""

from collections.abc import Sequence
from itertools import pairwise

from sqlalchemy import Connection, text

from weir.controller.epochs import Tail
from weir.controller.staged import Staged
from weir.errors import InvariantViolation
from weir.warehouse import attempt_folder

_PLACE = text(
    """SELECT place_append(:s, :n, :version, CAST(:segments AS bigint[]),
        CAST(:offsets AS bigint[]), CAST(:events AS bigint[]), CAST(:bytes AS bigint[]),
        CAST(:first AS bigint[]), CAST(:last AS bigint[]), CAST(:paths AS text[]),
        CAST(:touched AS bigint[]), CAST(:from_offset AS bigint[]), CAST(:from_byte AS bigint[]),
        CAST(:to_offset AS bigint[]), CAST(:to_byte AS bigint[]), CAST(:fenced AS text[]),
        CAST(:rejected_files AS text[]), :rejected)"""
)


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
        _PLACE,
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
            "rejected_files": [file.path for file in staged.rejected_files],
            "rejected": staged.rejected,
        },
    ).scalar_one()
    return int(clock)
