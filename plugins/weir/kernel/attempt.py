"""What an append writes, and where: an attempt at its transaction, and the files of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from weir.errors import InvariantViolation
from weir.model.erased_keys import ErasedKeys
from weir.model.event_time import EventTimes
from weir.model.names import StreamName
from weir.model.new_columns import ADD
from weir.model.schema import Field
from weir.model.segment import Segment, segment_name
from weir.warehouse.paths import attempt_folder


@dataclass(frozen=True)
class Attempt:
    """An attempt at a transaction, which may be written and committed. `fields`: the schema as
    Spark's JSON fields; None before the first append. Times are microseconds since 1970 UTC."""

    stream_id: int
    stream: StreamName
    transaction_number: int
    attempt: int
    segments: tuple[Segment, ...]
    routing_key: str
    on_missing_key: str
    on_bad_rows: str
    schema_version: int
    fields: list[Field] | None
    event_time: str | None = None
    complete_until: int | None = None  # what the stream was complete to when the attempt began
    stated_until: int | None = None  # what its writer states with it
    on_new_column: str = ADD
    dropped: Sequence[str] = ()  # names in files of columns that the stream no longer has
    erased: ErasedKeys | None = None  # whose events are refused

    @property
    def folder(self) -> str:
        """Its folder below the warehouse."""
        return attempt_folder(self.stream_id, self.transaction_number, self.attempt)


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
    def paths(self) -> set[str]:
        """The paths of all files."""
        return {file.path for file in (*self.files, *self.rejected_files)}

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
                "invariant_violated",
                f"attempt {attempt.attempt} of transaction {attempt.transaction_number} of stream "
                f"{attempt.stream} wrote to segment {segment_name(min(unknown))}, which is not in "
                "its epoch, so nothing was committed; this is a defect of Weir, please report it.",
            )
        for one, other in pairwise(self.in_order()):
            if one.segment_id == other.segment_id and one.last_seq >= other.first_seq:
                raise InvariantViolation(
                    "invariant_violated",
                    f"the files {one.path} and {other.path} interleave (rank {one.last_seq} is "
                    f"not less than {other.first_seq}), so nothing was committed, as the order of "
                    "events would be lost; this is a defect of Weir, please report it.",
                )

    def in_order(self) -> list[StagedFile]:
        """Return the files by segment, in the order of their rows."""
        return sorted(self.files, key=lambda file: (file.segment_id, file.first_seq))
