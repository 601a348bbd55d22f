"""Which streams are to be published, and how each differs from what is published of it. Made by `make queries` from sql/annex/publication/queries/plan.sql."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from weir.model.schema import Field

DUE = text(
    """SELECT stream_id, stream, wanted FROM streams_to_publish(CAST(:names AS text[])) ORDER BY 2"""
)


class Due(NamedTuple):
    """A stream that is to be published, or whose publication is to be ended."""

    stream_id: int
    stream: str
    wanted: bool


def due(connection: Connection, *, names: Sequence[str] | None) -> list[Due]:
    """Return the streams to publish, and those whose publication is to end. `names`: of these; null: of all."""
    result = connection.execute(DUE, {"names": None if names is None else list(names)})
    return [Due._make(row) for row in result]


STATE = text(
    """SELECT coalesce(p.number, 0) AS number, coalesce(p.sequence, 0) AS sequence, p.root,
    p.metadata, tail_cut(s.stream_id) AS cut, s.last_clock AS clock, s.head,
    p.cut AS published_cut, p.head AS published_head, coalesce(p.files, 0) AS files,
    t.events, t.events - h.events AS rows,
    coalesce(p.compacted, 0) AS published_compacted,
    coalesce((SELECT max(c.number) FROM compaction c
              WHERE c.stream_id = s.stream_id AND c.state = 'done'), 0) AS compacted,
    s.schema_version, p.schema_version AS published_version, s.stream_name,
    coalesce(p.masked, '{}') AS published_masked
FROM stream s LEFT JOIN publication p USING (stream_id)
CROSS JOIN LATERAL size_till(s.stream_id, tail_cut(s.stream_id)) t
CROSS JOIN LATERAL size_till(s.stream_id, s.head) h WHERE s.stream_id = :stream_id"""
)


class State(NamedTuple):
    """A stream at one moment. `number`: of the last publication; 0: there was none. `rows`: from head to tail. `files`: that the newest snapshot has. `published_masked`: rows that it leaves out at the beginning of files."""

    number: int
    sequence: int
    root: str | None
    metadata: str | None
    cut: dict[str, Any]
    clock: int
    head: dict[str, Any]
    published_cut: dict[str, Any] | None
    published_head: dict[str, Any] | None
    files: int
    events: int
    rows: int
    published_compacted: int
    compacted: int
    schema_version: int
    published_version: int | None
    stream_name: str
    published_masked: dict[str, int]


def state(connection: Connection, *, stream_id: int) -> State:
    """Return a stream as it is, beside what is published of it."""
    result = connection.execute(STATE, {"stream_id": stream_id})
    row = result.one()
    return State._make(row)


APPENDED = text(
    """SELECT f.segment_id, f.start_offset, f.path, f.events - f.erased AS events, f.bytes
FROM segments_between(CAST(:stream_id AS bigint), CAST(:since AS jsonb), CAST(:until AS jsonb)) b
CROSS JOIN LATERAL (
    SELECT * FROM data_file d WHERE d.stream_id = :stream_id AND d.segment_id = b.segment_id
    AND d.start_offset >= b.from_offset AND d.start_offset < b.to_offset OFFSET 0) f
ORDER BY f.segment_id, f.start_offset"""
)


class File(NamedTuple):
    """A data file of a stream."""

    segment_id: int
    start_offset: int
    path: str
    events: int
    bytes: int


def appended(connection: Connection, *, stream_id: int, since: str, until: str) -> list[File]:
    """Return the files between two cuts."""
    result = connection.execute(APPENDED, {"stream_id": stream_id, "since": since, "until": until})
    return [File._make(row) for row in result]


UNPUBLISHED = text(
    """SELECT f.segment_id, f.start_offset, f.path, f.events - f.erased AS events, f.bytes
FROM data_file f
LEFT JOIN published_file p ON p.stream_id = f.stream_id AND p.path = f.path
WHERE f.stream_id = :stream_id AND p.path IS NULL ORDER BY f.segment_id, f.start_offset"""
)


def unpublished(connection: Connection, *, stream_id: int) -> list[File]:
    """Return the files that are not published."""
    result = connection.execute(UNPUBLISHED, {"stream_id": stream_id})
    return [File._make(row) for row in result]


REMOVED = text(
    """SELECT p.manifest, p.path FROM published_file p
LEFT JOIN data_file f ON f.stream_id = p.stream_id AND f.path = p.path
WHERE p.stream_id = :stream_id AND p.manifest IS NOT NULL AND p.until IS NULL
    AND f.path IS NULL ORDER BY p.manifest, p.path"""
)


class Removed(NamedTuple):
    """A row of `removed`."""

    manifest: str
    path: str


def removed(connection: Connection, *, stream_id: int) -> list[Removed]:
    """Return the files that are published and not the stream's any more, by manifest."""
    result = connection.execute(REMOVED, {"stream_id": stream_id})
    return [Removed._make(row) for row in result]


MASKED = text(
    """SELECT f.path, h.event_offset - f.start_offset - CASE WHEN f.erased = 0 THEN 0
    ELSE holes_in(:stream_id, f.segment_id, f.start_offset, h.event_offset) END AS rows
FROM stream s CROSS JOIN LATERAL cut_entries(s.head) h
CROSS JOIN LATERAL (
    SELECT * FROM data_file d WHERE d.stream_id = :stream_id AND d.segment_id = h.segment_id
    AND d.start_offset < h.event_offset ORDER BY d.start_offset DESC LIMIT 1) f
WHERE s.stream_id = :stream_id AND f.start_offset + f.events > h.event_offset"""
)


class Masked(NamedTuple):
    """A row of `masked`."""

    path: str
    rows: int


def masked(connection: Connection, *, stream_id: int) -> list[Masked]:
    """Return how many rows of each file that straddles the head lie below it."""
    result = connection.execute(MASKED, {"stream_id": stream_id})
    return [Masked._make(row) for row in result]


VERSIONS = text(
    """SELECT version, fields FROM stream_schema WHERE stream_id = :stream_id ORDER BY version"""
)


class Versions(NamedTuple):
    """A row of `versions`."""

    version: int
    fields: list[Field]


def versions(connection: Connection, *, stream_id: int) -> list[Versions]:
    """Return the versions of the columns, the newest last."""
    result = connection.execute(VERSIONS, {"stream_id": stream_id})
    return [Versions._make(row) for row in result]


USED_VERSIONS = text(
    """SELECT DISTINCT schema_version FROM data_file
WHERE stream_id = :stream_id AND schema_version = ANY (:versions)"""
)


def used_versions(connection: Connection, *, stream_id: int, versions: Sequence[int]) -> list[int]:
    """Return those of some versions of which files are."""
    result = connection.execute(USED_VERSIONS, {"stream_id": stream_id, "versions": list(versions)})
    return [row[0] for row in result]


EXPIRES = text("""SELECT snapshots_expire_below(:stream_id, :grace, :compacted)""")


def expires(connection: Connection, *, stream_id: int, grace: float, compacted: float) -> int:
    """Return the sequence number below which snapshots must go."""
    result = connection.execute(
        EXPIRES, {"stream_id": stream_id, "grace": grace, "compacted": compacted}
    )
    value: int = result.scalar_one()
    return value


TRUNCATED = text(
    """SELECT EXISTS (SELECT FROM unnest(CAST(:paths AS text[])) AS r (path)
LEFT JOIN garbage g ON g.root = '' AND g.path = r.path
WHERE g.reason IS DISTINCT FROM 'compacted')"""
)


def truncated(connection: Connection, *, paths: Sequence[str]) -> bool:
    """Return whether one of some files that are not the stream's any more was not compacted."""
    result = connection.execute(TRUNCATED, {"paths": list(paths)})
    value: bool = result.scalar_one()
    return value
