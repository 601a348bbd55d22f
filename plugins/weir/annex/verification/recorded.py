"""What the database records of the files of a stream, and what is found wrong: values."""

from collections.abc import Sequence
from typing import NamedTuple

from weir.model.digest import is_hashed
from weir.model.schema import Field, stored_name
from weir.model.segment import segment_name


class Recorded(NamedTuple):
    """What is recorded of a file, by which its end is known again. None: it was not recorded."""

    path: str  # below the warehouse
    bytes: int
    rows: int
    end_hash: int | None
    ranks: tuple[int, int] | None = None  # the smallest and the largest may not lie beyond these


class Damage(NamedTuple):
    """Something that is not as recorded. `what` is a phrase for people."""

    kind: str
    path: str
    what: str
    segment_id: int | None = None
    start_offset: int | None = None
    events: int | None = None


class File(NamedTuple):
    """What is recorded of a data file."""

    segment_id: int
    start_offset: int
    events: int
    bytes: int
    first_seq: int
    last_seq: int
    schema_version: int
    path: str  # below the warehouse
    end_hash: int | None
    file_hash: int | None
    compacted: bool  # of several commits, so that it has the clock of each row
    key_low: float
    key_high: float
    erased: int = 0  # of its offsets, which have no row

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.events - self.erased

    @property
    def recorded(self) -> Recorded:
        """What its footer should say."""
        ranks = self.first_seq, self.last_seq
        return Recorded(self.path, self.bytes, self.rows, self.end_hash, ranks)

    @property
    def end(self) -> int:
        """The offset after its last row."""
        return self.start_offset + self.events

    def __str__(self) -> str:
        """Return which events it has, for a person."""
        return f"segment {segment_name(self.segment_id)} from offset {self.start_offset:,}"


class Commit(NamedTuple):
    """An entry of the time index."""

    segment_id: int
    start_offset: int
    events: int
    clock: int
    digest: int | None

    @property
    def end(self) -> int:
        """The offset after its last event."""
        return self.start_offset + self.events


class Unit(NamedTuple):
    """Files and commits of a segment with the same events, none of which is in others."""

    files: list[File]
    commits: list[Commit]

    @property
    def digest(self) -> int | None:
        """The sum of the digests of the commits; None if one is not recorded, or if some of their
        events were truncated with other files."""
        known = [commit.digest for commit in self.commits if commit.digest is not None]
        whole = bool(self.commits) and (
            self.commits[0].start_offset == self.files[0].start_offset
            and self.commits[-1].end == self.files[-1].end
        )
        return sum(known) if whole and len(known) == len(self.commits) else None


class Columns(NamedTuple):
    """What is recorded of a stream: its columns by version of its schema, and its routing key.

    A file may have other columns than its version if the schema was changed while it was written.
    """

    stream_id: int
    stream: str
    routing_key: str
    versions: dict[int, list[Field]]

    @property
    def fields(self) -> list[Field]:
        """The columns of the newest version."""
        return self.versions[max(self.versions)] if self.versions else []

    @property
    def unhashed(self) -> set[str]:
        """The names in files of the columns that are in no digest."""
        fields = (field for fields in self.versions.values() for field in fields)
        return {stored_name(field) for field in fields if not is_hashed(field["type"])}


def units_of(files: Sequence[File], commits: Sequence[Commit]) -> list[Unit]:
    """Return the units of files and of the commits of their events, both by segment and offset."""
    units: list[Unit] = []
    at = 0
    for file in files:
        unit = units[-1] if units else None
        if unit is None or not _continues(unit, file):
            unit = Unit([], [])
            units.append(unit)
        unit.files.append(file)
        while at < len(commits) and _order(commits[at]) < (file.segment_id, file.end):
            commit = commits[at]
            if (commit.segment_id, commit.end) > (file.segment_id, file.start_offset):
                unit.commits.append(commit)
            at += 1
    return units


def _order(commit: Commit) -> tuple[int, int]:
    return commit.segment_id, commit.start_offset


def _continues(unit: Unit, file: File) -> bool:
    """Return whether a file has events of the last commit of a unit."""
    if not unit.commits or unit.files[-1].segment_id != file.segment_id:
        return False
    return unit.commits[-1].end > file.start_offset
