"""What the database records of the files of streams. Made by `make queries` from sql/annex/verification/queries/stored.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.annex.verification.recorded import Commit, Damage, File
from weir.model.schema import Field

STREAM = text(
    """SELECT stream_name, routing_key FROM stream WHERE stream_id = :stream_id AND state <> 'deleted'"""
)


class Stream(NamedTuple):
    """A row of `stream`."""

    stream_name: str
    routing_key: str


def stream(connection: Connection, *, stream_id: int) -> Stream | None:
    """Return the name and the routing key of a stream."""
    result = connection.execute(STREAM, {"stream_id": stream_id})
    row = result.one_or_none()
    return None if row is None else Stream._make(row)


VERSIONS = text("""SELECT version, fields FROM stream_schema WHERE stream_id = :stream_id""")


class Versions(NamedTuple):
    """A row of `versions`."""

    version: int
    fields: list[Field]


def versions(connection: Connection, *, stream_id: int) -> list[Versions]:
    """Return the versions of a stream's schema."""
    result = connection.execute(VERSIONS, {"stream_id": stream_id})
    return [Versions._make(row) for row in result]


FILES_AFTER = text(
    """SELECT f.segment_id, f.start_offset, f.events, f.bytes, f.first_seq, f.last_seq, f.schema_version, f.path,
    f.end_hash, f.file_hash, f.transaction_number IS NULL AS compacted, s.key_low, s.key_high,
    f.erased FROM data_file f CROSS JOIN LATERAL (
    SELECT o.key_low, o.key_high FROM segment o
    WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id OFFSET 0) s
WHERE f.stream_id = :stream_id AND (f.segment_id, f.start_offset) > (:segment, :offset)
ORDER BY f.segment_id, f.start_offset LIMIT :most"""
)


def files_after(
    connection: Connection, *, stream_id: int, segment: int, offset: int, most: int
) -> list[File]:
    """Return files of a stream after a file, by segment and offset."""
    result = connection.execute(
        FILES_AFTER, {"stream_id": stream_id, "segment": segment, "offset": offset, "most": most}
    )
    return [File._make(row) for row in result]


COMMITS = text(
    """SELECT g.segment_id, i.start_offset, i.events, i.clock, i.digest
FROM segment g CROSS JOIN LATERAL commits_in(:stream_id, g.segment_id,
    CASE WHEN g.segment_id = :low THEN CAST(:first AS bigint) ELSE 0 END,
    CASE WHEN g.segment_id = :high THEN CAST(:past AS bigint)
         ELSE 9223372036854775807 END) i
WHERE g.stream_id = :stream_id AND g.segment_id BETWEEN :low AND :high
ORDER BY g.segment_id, i.start_offset"""
)


def commits(
    connection: Connection, *, stream_id: int, low: int, first: int, high: int, past: int
) -> list[Commit]:
    """Return the commits of the events from an offset of one segment to an offset of another."""
    result = connection.execute(
        COMMITS, {"stream_id": stream_id, "low": low, "first": first, "high": high, "past": past}
    )
    return [Commit._make(row) for row in result]


WRONG_OFFSETS = text(
    """WITH file AS (
    SELECT f.*, lag(f.start_offset + f.events) OVER w AS before, lead(f.start_offset) OVER w AS next
    FROM data_file f WHERE f.stream_id = :stream_id
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
    LEFT JOIN (SELECT e.* FROM stream, cut_entries(head) e WHERE stream_id = :stream_id) h
        ON h.segment_id = f.segment_id
    CROSS JOIN LATERAL (SELECT (
        SELECT i.start_offset + i.events
        FROM commit_at(f.stream_id, f.segment_id, 9223372036854775807) i
        WHERE f.next IS NULL) AS tail OFFSET 0) z
)
SELECT 'offsets' AS kind, f.path, f.what, f.segment_id, f.start_offset, f.events
FROM wrong f JOIN segment s USING (stream_id, segment_id) WHERE f.what IS NOT NULL
ORDER BY f.segment_id, f.start_offset"""
)


def wrong_offsets(connection: Connection, *, stream_id: int) -> list[Damage]:
    """Return the files of a stream whose offsets are not those that follow the file before, or that do not reach from the head to the tail, or whose segment has holes that it can't have. Looked at are the segments that have files; a file may straddle the head."""
    result = connection.execute(WRONG_OFFSETS, {"stream_id": stream_id})
    return [Damage._make(row) for row in result]
