"""What attempts have written: ready to be committed, or waiting for a roll."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise

from pyarrow import fs
from sqlalchemy import Connection, text

from weir.controller.epochs import segments_at
from weir.controller.locks import LockedStream
from weir.controller.transactions import Attempt
from weir.errors import Fenced, InvariantViolation
from weir.model.erased_keys import ErasedKeys
from weir.model.event_time import EventTimes
from weir.model.schema import Field
from weir.model.segment import segment_name
from weir.warehouse.filesystem import filesystem, not_readable


@dataclass(frozen=True)
class StagedFile:
    """A Parquet file that an attempt wrote: rows of one segment, in the order of their ranks."""

    segment_id: int  # as in its folder: a segment of the attempt's epoch
    path: str  # below the warehouse
    events: int
    bytes: int
    first_seq: int
    last_seq: int
    min_time: int | None = None  # the smallest event time; None if no event has one
    max_time: int | None = None
    untimed: int = 0  # events without an event time
    # The sum of the hashes of its rows; None if it was not computed. One file may have that of all
    # files of its segment, and the others 0.
    hashes: int | None = None
    end_hash: int | None = None  # of its footer, and what is before it, 64 KiB at least
    file_hash: int | None = None  # of all its bytes; None if they were not at hand


def check_written(warehouse: str, staged: Sequence["Staged"]) -> None:
    """Check that the files of attempts, which are about to be committed, are still there as they
    were written, by one listing for each attempt. Raises Fenced, and Unavailable if the
    warehouse's storage does not answer."""
    system, base = filesystem(warehouse)
    for one in staged:
        if not one.files:
            continue
        folder = f"{base}/{one.attempt.folder}".rstrip("/")
        below = fs.FileSelector(folder, allow_not_found=True, recursive=True)
        try:
            found = system.get_file_info(below)
        except OSError as error:
            raise not_readable(warehouse, error) from error
        there = {info.path[len(base) + 1 :]: info.size for info in found}
        lost = [file.path for file in one.files if there.get(file.path) != file.bytes]
        if lost:
            raise Fenced(
                "written_files_gone",
                f"{len(lost)} of the {len(one.files)} files that were written for stream "
                f"{one.attempt.stream} were deleted or changed by somebody before the commit (such "
                f"as {lost[0]}), so nothing was committed; append again.",
            )


@dataclass(frozen=True)
class Staged:
    """Everything that an attempt wrote, ready to be committed.

    `added`, `missing`: columns that the stream, or the rows, do not have.
    `times`: None if the stream has no event time. `count_late`: counts the events before a time,
    for a stream that is complete to another time when the attempt is committed.
    """

    attempt: Attempt
    files: tuple[StagedFile, ...]
    fields: list[Field] | None  # None: nothing is known of the columns, as there are no rows
    rejected_files: tuple[StagedFile, ...] = ()  # rows that did not become events: garbage now
    times: EventTimes | None = None
    added: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    count_late: Callable[[int], int] | None = field(default=None, compare=False)

    @property
    def rejected(self) -> int:
        """The number of rows that did not become events."""
        return sum(file.events for file in self.rejected_files)

    @property
    def erased_keys(self) -> int:
        """With how many erased keys its rows were compared."""
        return 0 if self.attempt.erased is None else self.attempt.erased.number

    @property
    def untimed(self) -> int:
        """The number of events without an event time."""
        return sum(file.untimed for file in self.files)

    def recounted(self, complete_until: int) -> "Staged":
        """Return these files with the number of events that are late if the stream is complete to
        `complete_until`."""
        assert self.times is not None, self.attempt.stream
        late = None if self.count_late is None else self.count_late(complete_until)
        times = replace(self.times, late=late, complete_until=complete_until)
        return replace(self, times=times)

    def outside(self, not_before: int | None, not_after: int) -> "Staged":
        """Return these files with the numbers of events that are earlier and later than what is
        right."""
        assert self.times is not None, self.attempt.stream
        ahead = behind = None
        if self.count_late is not None:
            timed = sum(file.events for file in self.files) - self.untimed
            ahead = timed - self.count_late(not_after + 1)
            behind = 0 if not_before is None else self.count_late(not_before)
        return replace(self, times=replace(self.times, outside=True, ahead=ahead, behind=behind))

    def check(self) -> None:
        """Check the files before they are committed.

        Raises InvariantViolation if a file belongs to a segment that the attempt was not given, or
        if files of a segment interleave.
        """
        attempt = self.attempt
        known = {segment.segment_id for segment in attempt.segments}
        if unknown := {file.segment_id for file in self.files} - known:
            raise InvariantViolation(
                "unexpected_segment",
                f"attempt {attempt.attempt} of transaction {attempt.transaction_number} of stream "
                f"{attempt.stream} wrote to segment {segment_name(min(unknown))}, which is not in "
                "its epoch, so nothing was committed; this is a defect of Weir, please report it.",
            )
        for one, other in pairwise(self.in_order()):
            if one.segment_id == other.segment_id and one.last_seq >= other.first_seq:
                raise InvariantViolation(
                    "files_interleave",
                    f"the files {one.path} and {other.path} interleave (rank {one.last_seq} is "
                    f"not less than {other.first_seq}), so nothing was committed, as the order of "
                    "events would be lost; this is a defect of Weir, please report it.",
                )

    def in_order(self) -> list[StagedFile]:
        """Return the files by segment, in the order of their rows."""
        return sorted(self.files, key=lambda file: (file.segment_id, file.first_seq))


def announce(connection: Connection, staged: Staged) -> None:
    """Record that an append is written and waits for a roll, so that a roll may commit it."""
    connection.execute(
        text(
            """UPDATE transaction SET staged = CAST(:staged AS jsonb)
            WHERE stream_id = :s AND transaction_number = :n AND attempt = :attempt
              AND state = 'open'"""
        ),
        {
            "s": staged.attempt.stream_id,
            "n": staged.attempt.transaction_number,
            "attempt": staged.attempt.attempt,
            "staged": json.dumps(
                {
                    "files": [asdict(file) for file in staged.files],
                    "fields": staged.fields,
                    "times": staged.times and asdict(staged.times),
                    "stated": staged.attempt.stated_until,
                    "erased_keys": staged.erased_keys,
                }
            ),
        },
    )


def waiting(connection: Connection, stream: LockedStream, epoch: int) -> list[Staged]:
    """Return the appends of an epoch that wait for a roll, in the order in which they began."""
    rows = connection.execute(
        text(
            """SELECT transaction_number, attempt, staged FROM transaction
            WHERE stream_id = :s AND staged IS NOT NULL AND epoch = :epoch
            ORDER BY transaction_number"""
        ),
        {"s": stream.stream_id, "epoch": epoch},
    ).all()
    if not rows:
        return []
    segments = tuple(segments_at(connection, stream.stream_id, epoch))
    settings = stream.configuration
    return [
        Staged(
            Attempt(
                stream.stream_id, stream.name, row.transaction_number, row.attempt, segments,
                settings.routing_key, settings.on_missing_key, settings.on_bad_rows,
                stream.schema_version, None, stated_until=row.staged["stated"],
                on_new_column=settings.on_new_column,
                erased=ErasedKeys(row.staged["erased_keys"]),
            ),
            tuple(StagedFile(**file) for file in row.staged["files"]),
            row.staged["fields"],
            times=row.staged["times"] and EventTimes(**row.staged["times"]),
        )
        for row in rows
    ]  # fmt: skip


def waiting_epochs(connection: Connection, stream_id: int) -> Sequence[int]:
    """Return the epochs in which appends began that wait for a roll."""
    return (
        connection.execute(
            text(
                """SELECT DISTINCT epoch FROM transaction
                WHERE stream_id = :s AND staged IS NOT NULL ORDER BY epoch"""
            ),
            {"s": stream_id},
        )
        .scalars()
        .all()
    )
