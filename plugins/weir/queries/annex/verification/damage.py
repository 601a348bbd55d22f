"""The damage that was found, and up to which file contents were verified. Made by `make queries` from sql/annex/verification/queries/damage.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

FORGET = text(
    """DELETE FROM found_damage d WHERE d.stream_id IS NOT DISTINCT FROM CAST(:stream_id AS bigint)
  AND (d.kind = ANY(CAST(:kinds AS text[]))
       AND (CAST(:looked_at AS text[]) IS NULL OR d.path = ANY(CAST(:looked_at AS text[])))
       AND NOT EXISTS (
           SELECT FROM unnest(CAST(:path AS text[]), CAST(:kind AS text[])) AS f (path, kind)
           WHERE f.path = d.path AND f.kind = d.kind)
       OR d.segment_id IS NOT NULL AND NOT EXISTS (
           SELECT FROM data_file f WHERE f.stream_id = d.stream_id
             AND f.segment_id = d.segment_id AND f.start_offset = d.start_offset
             AND f.path = d.path))"""
)


def forget(
    connection: Connection,
    *,
    stream_id: int | None,
    kinds: Sequence[str],
    looked_at: Sequence[str] | None,
    path: Sequence[str],
    kind: Sequence[str],
) -> None:
    """Forget damage that was found earlier, of some kinds in files that were looked at (null: all), and of files that the stream has no more."""
    result = connection.execute(
        FORGET,
        {
            "stream_id": stream_id,
            "kinds": list(kinds),
            "looked_at": None if looked_at is None else list(looked_at),
            "path": list(path),
            "kind": list(kind),
        },
    )
    result.close()


RECORD = text(
    """WITH found AS (
    SELECT * FROM unnest(CAST(:path AS text[]), CAST(:kind AS text[]), CAST(:what AS text[]),
        CAST(:segment AS bigint[]), CAST(:offset AS bigint[]), CAST(:events AS bigint[]))
        AS f (path, kind, what, segment_id, start_offset, events)
    WHERE f.segment_id IS NULL OR EXISTS (  -- it may be another file's by now
        SELECT FROM data_file d WHERE d.stream_id = CAST(:stream_id AS bigint) AND d.segment_id = f.segment_id
          AND d.start_offset = f.start_offset AND d.path = f.path)
)
INSERT INTO found_damage (path, kind, stream_id, segment_id, start_offset, events, what)
SELECT f.path, f.kind, CAST(:stream_id AS bigint), f.segment_id, f.start_offset, f.events, f.what FROM found f
ON CONFLICT (path, kind) DO UPDATE SET what = excluded.what, seen_at = excluded.seen_at,
    segment_id = excluded.segment_id, start_offset = excluded.start_offset,
    events = excluded.events
RETURNING path, kind"""
)


class Record(NamedTuple):
    """A row of `record`."""

    path: str
    kind: str


def record(
    connection: Connection,
    *,
    path: Sequence[str],
    kind: Sequence[str],
    what: Sequence[str],
    segment: Sequence[int | None],
    offset: Sequence[int | None],
    events: Sequence[int | None],
    stream_id: int | None,
) -> list[Record]:
    """Record damage, and return that of files that the stream still has."""
    result = connection.execute(
        RECORD,
        {
            "path": list(path),
            "kind": list(kind),
            "what": list(what),
            "segment": list(segment),
            "offset": list(offset),
            "events": list(events),
            "stream_id": stream_id,
        },
    )
    return [Record._make(row) for row in result]


RECORD_HASHES = text(
    """UPDATE data_file d SET file_hash = f.hash
FROM unnest(CAST(:segments AS bigint[]), CAST(:offsets AS bigint[]),
    CAST(:paths AS text[]), CAST(:hashes AS bigint[])) AS f (segment, offs, path, hash)
WHERE d.stream_id = :stream_id AND d.segment_id = f.segment AND d.start_offset = f.offs
  AND d.path = f.path AND d.file_hash IS NULL"""
)


def record_hashes(
    connection: Connection,
    *,
    segments: Sequence[int],
    offsets: Sequence[int],
    paths: Sequence[str],
    hashes: Sequence[int],
    stream_id: int,
) -> None:
    """Record the hashes of all bytes of files."""
    result = connection.execute(
        RECORD_HASHES,
        {
            "segments": list(segments),
            "offsets": list(offsets),
            "paths": list(paths),
            "hashes": list(hashes),
            "stream_id": stream_id,
        },
    )
    result.close()


POSITION = text(
    """SELECT segment_id, start_offset FROM verification WHERE stream_id = :stream_id"""
)


class Position(NamedTuple):
    """A row of `position`."""

    segment_id: int
    start_offset: int


def position(connection: Connection, *, stream_id: int) -> Position | None:
    """Return the file up to which contents were verified."""
    result = connection.execute(POSITION, {"stream_id": stream_id})
    row = result.one_or_none()
    return None if row is None else Position._make(row)


MOVE = text(
    """INSERT INTO verification (stream_id, begun_at, segment_id, start_offset, completed_at)
VALUES (:stream_id, clock_timestamp(), :segment, :offset,
    CASE WHEN :done THEN clock_timestamp() END)
ON CONFLICT (stream_id) DO UPDATE SET begun_at = excluded.begun_at,
    segment_id = excluded.segment_id, start_offset = excluded.start_offset,
    completed_at = coalesce(excluded.completed_at, verification.completed_at)"""
)


def move(connection: Connection, *, stream_id: int, segment: int, offset: int, done: bool) -> None:
    """Record up to which file contents were verified, and whether that is the last one."""
    result = connection.execute(
        MOVE, {"stream_id": stream_id, "segment": segment, "offset": offset, "done": done}
    )
    result.close()


IN_TURN = text(
    """SELECT s.stream_id FROM stream s LEFT JOIN verification v USING (stream_id)
WHERE s.state <> 'deleted' AND EXISTS (
    SELECT FROM data_file f WHERE f.stream_id = s.stream_id)
  AND (v.segment_id >= 0 OR v.completed_at IS NULL OR v.completed_at
       <= clock_timestamp() - CAST(:again_after AS double precision) * interval '1 second')
ORDER BY coalesce(v.segment_id, -1) < 0, v.completed_at NULLS FIRST, s.stream_id"""
)


def in_turn(connection: Connection, *, again_after: float) -> list[int]:
    """Return the streams with files, the one first whose files were not looked at for longest."""
    result = connection.execute(IN_TURN, {"again_after": again_after})
    return [row[0] for row in result]


DAMAGED = text("""SELECT DISTINCT stream_id FROM found_damage""")


def damaged(connection: Connection) -> list[int | None]:
    """Return the streams of which damage is recorded."""
    result = connection.execute(DAMAGED)
    return [row[0] for row in result]


WITH_STRANGERS = text(
    """SELECT DISTINCT stream_id FROM found_damage WHERE kind = ANY(CAST(:kinds AS text[]))"""
)


def with_strangers(connection: Connection, *, kinds: Sequence[str]) -> list[int | None]:
    """Return the streams in whose folders something of some kinds was found."""
    result = connection.execute(WITH_STRANGERS, {"kinds": list(kinds)})
    return [row[0] for row in result]


MISSING = text(
    """SELECT f.bytes, f.end_hash, f.path FROM found_damage d
JOIN data_file f USING (stream_id, segment_id, start_offset)
WHERE d.kind = 'missing' AND d.path = f.path AND f.end_hash IS NOT NULL"""
)


class Missing(NamedTuple):
    """A row of `missing`."""

    bytes: int
    end_hash: int
    path: str


def missing(connection: Connection) -> list[Missing]:
    """Return the files that are known to be missing."""
    result = connection.execute(MISSING)
    return [Missing._make(row) for row in result]


IS_THERE = text(
    """SELECT EXISTS (SELECT FROM stream WHERE stream_id = :stream_id AND state <> 'deleted') AS is_there"""
)


def is_there(connection: Connection, *, stream_id: int) -> bool:
    """Return whether there is a stream."""
    result = connection.execute(IS_THERE, {"stream_id": stream_id})
    value: bool = result.scalar_one()
    return value


DECLARED = text(
    """SELECT f.i, greatest(h.chunk * 65536 + lower(m), f.first) AS first,
    least(h.chunk * 65536 + upper(m), f.past) AS past
FROM unnest(CAST(:segments AS bigint[]), CAST(:firsts AS bigint[]), CAST(:ends AS bigint[]))
    WITH ORDINALITY AS f (segment_id, first, past, i)
JOIN hole h ON h.stream_id = :stream_id AND h.segment_id = f.segment_id
    AND h.chunk BETWEEN f.first / 65536 AND (f.past - 1) / 65536
CROSS JOIN LATERAL unnest(h.offsets) m
WHERE h.chunk * 65536 + lower(m) < f.past AND h.chunk * 65536 + upper(m) > f.first
ORDER BY f.i, first"""
)


class Declared(NamedTuple):
    """A row of `declared`."""

    i: int
    first: int
    past: int


def declared(
    connection: Connection,
    *,
    segments: Sequence[int],
    firsts: Sequence[int],
    ends: Sequence[int],
    stream_id: int,
) -> list[Declared]:
    """Return the holes that are declared in some ranges of offsets, by the number of the range."""
    result = connection.execute(
        DECLARED,
        {
            "segments": list(segments),
            "firsts": list(firsts),
            "ends": list(ends),
            "stream_id": stream_id,
        },
    )
    return [Declared._make(row) for row in result]
