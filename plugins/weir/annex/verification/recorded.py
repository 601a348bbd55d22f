"""What the database records of the files of a stream, part by part."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.model.digest import is_hashed
from weir.model.schema import Field, stored_name
from weir.model.segment import segment_name

BEGIN = (-1, -1)  # where a stream begins: before its first segment


class Recorded(NamedTuple):
    """What is recorded of a file, by which its end is known again. None: it was not recorded."""

    path: str  # below the warehouse
    bytes: int
    rows: int
    end_hash: int | None
    ranks: tuple[int, int] | None = None  # the smallest and the largest may not lie beyond these


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


def columns_of(connection: Connection, stream_id: int) -> Columns | None:
    """Return what is recorded of a stream; None if it was deleted."""
    found = connection.execute(
        text(
            """SELECT stream_name, routing_key FROM stream
            WHERE stream_id = :s AND state <> 'deleted'"""
        ),
        {"s": stream_id},
    ).one_or_none()
    if found is None:
        return None
    versions = connection.execute(
        text("SELECT version, fields FROM stream_schema WHERE stream_id = :s"), {"s": stream_id}
    )
    by_version = {row.version: row.fields for row in versions}
    return Columns(stream_id, found.stream_name, found.routing_key, by_version)


def next_units(
    connection: Connection, stream_id: int, after: tuple[int, int], most: int
) -> tuple[list[Unit], bool]:
    """Return the units of about `most` files of a stream after a file (segment id, offset), and
    whether these are all that are left. Call it in a snapshot."""
    while True:
        files = [
            File(*row)
            for row in connection.execute(
                _FILES,
                {"s": stream_id, "segment": after[0], "offset": after[1], "most": most + 1},
            )
        ]
        last = len(files) <= most
        files = files[:most]
        if not files:
            return [], True
        units = units_of(files, commits_of(connection, stream_id, files[0], files[-1]))
        if last:
            return units, True
        if len(units) > 1:  # the last one may continue
            return units[:-1], False
        most *= 2


def commits_of(
    connection: Connection, stream_id: int, first: File, last: File | None = None
) -> list[Commit]:
    """Return the commits of the events of a file, or from one file to another."""
    last = last or first
    given = {
        "s": stream_id, "low": first.segment_id, "first": first.start_offset,
        "high": last.segment_id, "past": last.end,
    }  # fmt: skip
    return [Commit(*row) for row in connection.execute(_COMMITS, given)]


# The columns of a File, of `data_file f` and `segment s`.
COLUMNS = """f.segment_id, f.start_offset, f.events, f.bytes, f.first_seq, f.last_seq,
        f.schema_version, f.path, f.end_hash, f.file_hash, f.transaction_number IS NULL,
        s.key_low, s.key_high, f.erased"""
ITS_SEGMENT = """CROSS JOIN LATERAL (
        SELECT o.key_low, o.key_high FROM segment o
        WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id OFFSET 0) s"""
_FILES = text(
    f"""SELECT {COLUMNS} FROM data_file f {ITS_SEGMENT}
    WHERE f.stream_id = :s AND (f.segment_id, f.start_offset) > (:segment, :offset)
    ORDER BY f.segment_id, f.start_offset LIMIT :most"""  # noqa: S608 - constants
)
_COMMITS = text(
    """SELECT g.segment_id, i.start_offset, i.events, i.clock, i.digest
    FROM segment g CROSS JOIN LATERAL commits_in(:s, g.segment_id,
        CASE WHEN g.segment_id = :low THEN CAST(:first AS bigint) ELSE 0 END,
        CASE WHEN g.segment_id = :high THEN CAST(:past AS bigint)
             ELSE 9223372036854775807 END) i
    WHERE g.stream_id = :s AND g.segment_id BETWEEN :low AND :high
    ORDER BY g.segment_id, i.start_offset"""
)


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


def wrong_offsets(connection: Connection, stream_id: int) -> list[tuple[File, str]]:
    """Return the files of a stream whose offsets are not those that follow the file before, or
    that do not reach from the head to the tail, or whose segment has holes that it can't have; and
    what is wrong. Call it in a snapshot."""
    rows = connection.execute(_OFFSETS, {"s": stream_id}).all()
    return [(File(*row[:-1]), row.what) for row in rows]


# The head and the tail of each segment that has files; a file may straddle the head.
_OFFSETS = text(
    f"""WITH file AS (
        SELECT f.*, lag(f.start_offset + f.events) OVER w AS before, lead(f.start_offset) OVER w
            AS next
        FROM data_file f WHERE f.stream_id = :s
        WINDOW w AS (PARTITION BY f.segment_id ORDER BY f.start_offset)
    ), wrong AS (
        SELECT f.*, CASE
            WHEN f.before < f.start_offset THEN format(
                'no file has offsets %s to %s before it', f.before, f.start_offset - 1)
            WHEN f.before > f.start_offset THEN format(
                'the file before it has offsets up to %s, too', f.before - 1)
            WHEN f.before IS NULL AND f.start_offset > coalesce(h.event_offset, 0) THEN format(
                'no file has offsets %s to %s before it', coalesce(h.event_offset, 0),
                f.start_offset - 1)
            WHEN f.next IS NULL AND f.start_offset + f.events <> z.tail THEN format(
                'it ends at offset %s, but its segment at %s', f.start_offset + f.events, z.tail)
            WHEN f.next IS NULL AND EXISTS (
                SELECT FROM hole o WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id
                  AND (o.chunk < 0 OR lower(o.offsets) < 0 OR upper(o.offsets) > 65536
                       OR o.chunk * 65536 + upper(o.offsets) > z.tail
                       OR o.events <> (SELECT sum(upper(m) - lower(m)) FROM unnest(o.offsets) m)))
            THEN 'holes of its segment are declared where it has no offsets, or counted wrong'
            END AS what
        FROM file f
        LEFT JOIN (SELECT e.* FROM stream, cut_entries(head) e WHERE stream_id = :s) h
            ON h.segment_id = f.segment_id
        CROSS JOIN LATERAL (SELECT (
            SELECT i.start_offset + i.events
            FROM commit_at(f.stream_id, f.segment_id, 9223372036854775807) i
            WHERE f.next IS NULL) AS tail OFFSET 0) z
    )
    SELECT {COLUMNS}, f.what
    FROM wrong f JOIN segment s USING (stream_id, segment_id) WHERE f.what IS NOT NULL
    ORDER BY f.segment_id, f.start_offset"""  # noqa: S608 - a constant
)
