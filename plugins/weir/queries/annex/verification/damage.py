"""The damage that was found, and how far streams were verified. Made by `make queries` from sql/annex/verification/queries/damage.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

FORGET = text(
    """DELETE FROM found_damage d WHERE d.stream_id IS NOT DISTINCT FROM CAST(:stream_id AS bigint)
  AND (d.kind = ANY(CAST(:kinds AS text[]))
       AND (CAST(:looked_at AS text[]) IS NULL OR d.path = ANY(CAST(:looked_at AS text[])))
       AND NOT EXISTS (
           SELECT FROM unnest(CAST(:paths AS text[]), CAST(:found AS text[])) AS f (path, kind)
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
    paths: Sequence[str],
    found: Sequence[str],
) -> None:
    """Delete what was found earlier of some kinds in the files that were looked at (null: all) and is right again, and that of files that the stream no longer has."""
    result = connection.execute(
        FORGET,
        {
            "stream_id": stream_id,
            "kinds": list(kinds),
            "looked_at": None if looked_at is None else list(looked_at),
            "paths": list(paths),
            "found": list(found),
        },
    )
    result.close()


RECORD = text(
    """WITH found AS (
    SELECT * FROM jsonb_to_recordset(CAST(:found AS jsonb))
        AS f (path text, kind text, what text, segment_id bigint, start_offset bigint, events bigint)
    WHERE f.segment_id IS NULL OR EXISTS (
        SELECT FROM data_file d WHERE d.stream_id = :stream_id AND d.segment_id = f.segment_id
          AND d.start_offset = f.start_offset AND d.path = f.path)
)
INSERT INTO found_damage (path, kind, stream_id, segment_id, start_offset, events, what)
SELECT f.path, f.kind, :stream_id, f.segment_id, f.start_offset, f.events, f.what FROM found f
ON CONFLICT (path, kind) DO UPDATE SET what = excluded.what, seen_at = excluded.seen_at,
    segment_id = excluded.segment_id, start_offset = excluded.start_offset,
    events = excluded.events
RETURNING path, kind"""
)


class Record(NamedTuple):
    """A row of `record`."""

    path: str
    kind: str


def record(connection: Connection, *, found: str, stream_id: int | None) -> list[Record]:
    """Record damage, and return the file and the kind of what is: a file may be another's by now."""
    result = connection.execute(RECORD, {"found": found, "stream_id": stream_id})
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
    """Return the file of a stream up to which contents were verified."""
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
    """Record up to which file contents were verified, or that all were."""
    result = connection.execute(
        MOVE, {"stream_id": stream_id, "segment": segment, "offset": offset, "done": done}
    )
    result.close()


IN_TURN = text(
    """SELECT s.stream_id FROM stream s LEFT JOIN verification v USING (stream_id)
WHERE s.state <> 'deleted' AND EXISTS (
    SELECT FROM data_file f WHERE f.stream_id = s.stream_id)
  AND (v.segment_id >= 0 OR v.completed_at IS NULL OR v.completed_at
       <= clock_timestamp() - :again_after * interval '1 second')
ORDER BY coalesce(v.segment_id, -1) < 0, v.completed_at NULLS FIRST, s.stream_id"""
)


def in_turn(connection: Connection, *, again_after: float) -> list[int]:
    """Return the streams with files, the one first whose files were not looked at for longest; one in which a look has begun goes before others. Without those all of whose files were looked at in the last `again_after` seconds."""
    result = connection.execute(IN_TURN, {"again_after": again_after})
    return [row[0] for row in result]
