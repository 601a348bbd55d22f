"""Move the head of a stream. Made by `make queries` from sql/queries/controller/truncation.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

FILES_BELOW = text(
    """SELECT count(*) FROM data_file f, segment s, front(:stream_id, CAST(:cut AS jsonb)) n
    WHERE f.stream_id = :stream_id AND s.stream_id = :stream_id AND s.segment_id = f.segment_id
      AND f.segment_id <= (SELECT max(segment_id) FROM cut_entries(CAST(:cut AS jsonb)))
      AND has_passed(n.keys, n.owners, n.offsets, s.key_low, f.segment_id,
                     f.start_offset + f.events)"""
)


def files_below(connection: Connection, *, stream_id: int, cut: str) -> int:
    """Return how many files lie wholly below a cut."""
    result = connection.execute(FILES_BELOW, {"stream_id": stream_id, "cut": cut})
    value: int = result.scalar_one()
    return value


MOVE_HEAD = text(
    """WITH below AS (
    DELETE FROM data_file f USING segment s, front(:stream_id, CAST(:cut AS jsonb)) n
    WHERE f.stream_id = :stream_id AND s.stream_id = :stream_id AND s.segment_id = f.segment_id
      AND f.segment_id <= (SELECT max(segment_id) FROM cut_entries(CAST(:cut AS jsonb)))
      AND has_passed(n.keys, n.owners, n.offsets, s.key_low, f.segment_id,
                     f.start_offset + f.events)
    RETURNING f.path, f.bytes, f.events - f.erased AS rows, f.end_hash
), freed AS (
    INSERT INTO garbage (root, path, stream_id, reason, bytes, rows, end_hash)
    SELECT '', path, :stream_id, 'truncated', bytes, rows, end_hash FROM below
), moved AS (
    UPDATE stream SET head = CAST(:cut AS jsonb) WHERE stream_id = :stream_id
)
SELECT n.events - o.events AS events, n.bytes - o.bytes AS bytes,
    (SELECT count(*) FROM below) AS files
FROM size_till(:stream_id, CAST(:cut AS jsonb)) n, size_till(:stream_id, CAST(:head AS jsonb)) o"""
)


class Freed(NamedTuple):
    """A row of `move_head`."""

    events: int
    bytes: int
    files: int


def move_head(connection: Connection, *, stream_id: int, cut: str, head: str) -> Freed:
    """Move the head of a locked stream to a checked cut, and return what was truncated: events, their bytes as first committed, and how many files became garbage."""
    result = connection.execute(MOVE_HEAD, {"stream_id": stream_id, "cut": cut, "head": head})
    row = result.one()
    return Freed._make(row)
