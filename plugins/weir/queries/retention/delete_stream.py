"""Delete sealed streams. Made by `make queries` from sql/queries/retention/delete_stream.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

CONTENT = text(
    """SELECT count(*) AS files, coalesce(sum(f.bytes), 0)::bigint AS bytes,
    (SELECT u.events::bigint FROM stream s CROSS JOIN LATERAL
        unread_from(s.stream_id, s.head, s.head, NULL) u
     WHERE s.stream_id = :stream_id) AS events
FROM data_file f WHERE f.stream_id = :stream_id"""
)


class Content(NamedTuple):
    """A row of `content`."""

    files: int
    bytes: int
    events: int


def content(connection: Connection, *, stream_id: int) -> Content:
    """Return how many files, bytes and events a stream has."""
    result = connection.execute(CONTENT, {"stream_id": stream_id})
    row = result.one()
    return Content._make(row)


READERS = text(
    """SELECT g.name, EXISTS (
    SELECT FROM held_segments(g.group_id) h WHERE h.stream_id = :stream_id) AS reading,
    (SELECT unread_events::bigint FROM lag l WHERE l.reader_group = g.name
     AND l.stream = :stream) AS unread, g.subscriber
FROM reader_group_stream gs JOIN reader_group g USING (group_id)
WHERE gs.stream_id = :stream_id ORDER BY g.name"""
)


class Group(NamedTuple):
    """A row of `readers`."""

    name: str
    reading: bool
    unread: int | None
    subscriber: bool


def readers(connection: Connection, *, stream_id: int, stream: str) -> list[Group]:
    """Return the groups of a stream, whether each reads it now, and how many events it has not read."""
    result = connection.execute(READERS, {"stream_id": stream_id, "stream": stream})
    return [Group._make(row) for row in result]


DELETE = text(
    """WITH file AS (DELETE FROM data_file WHERE stream_id = :stream_id RETURNING bytes),
old AS (  -- else they would count for as long as a restored database may need them
    DELETE FROM garbage WHERE stream_id = :stream_id AND root = '' AND reason = 'compacted'
    RETURNING bytes
),
freed AS (
    INSERT INTO garbage (root, path, stream_id, reason, bytes)
    SELECT '', :folder, NULL, 'deleted', coalesce(sum(bytes), 0)
    FROM (SELECT bytes FROM file UNION ALL SELECT bytes FROM old) every
),
position AS (DELETE FROM reader_group_segment WHERE stream_id = :stream_id),
clock AS (DELETE FROM time_index WHERE stream_id = :stream_id),
packed AS (DELETE FROM packed_commits WHERE stream_id = :stream_id),
hole AS (DELETE FROM hole WHERE stream_id = :stream_id),
erased AS (DELETE FROM erased_keys WHERE stream_id = :stream_id),
input AS (DELETE FROM transaction_input WHERE stream_id = :stream_id),
writer AS (DELETE FROM stream_writer WHERE stream_id = :stream_id),
append AS (DELETE FROM transaction WHERE stream_id = :stream_id),
anew AS (DELETE FROM compaction WHERE stream_id = :stream_id),
tail AS (DELETE FROM segment_tail WHERE stream_id = :stream_id),
shard AS (DELETE FROM segment WHERE stream_id = :stream_id),
generation AS (DELETE FROM epoch WHERE stream_id = :stream_id),
record AS (DELETE FROM stream_cut WHERE stream_id = :stream_id),
past AS (DELETE FROM stream_history WHERE stream_id = :stream_id),
read AS (DELETE FROM group_history WHERE stream_id = :stream_id),
moved AS (DELETE FROM capture_queue WHERE stream_id = :stream_id),
due AS (DELETE FROM retention_queue WHERE stream_id = :stream_id),
told AS (DELETE FROM announcement WHERE stream_id = :stream_id),
decision AS (DELETE FROM retention_decision WHERE stream_id = :stream_id),
placement AS (DELETE FROM placement WHERE stream_id = :stream_id),
given AS (DELETE FROM delivered_range WHERE stream_id = :stream_id),
range AS (DELETE FROM truncated_range WHERE stream_id = :stream_id),
receipt AS (DELETE FROM truncation WHERE stream_id = :stream_id),
scaling AS (DELETE FROM scale_decision WHERE stream_id = :stream_id),
evaluation AS (DELETE FROM scale_evaluation WHERE stream_id = :stream_id),
measurement AS (DELETE FROM scale_measurement WHERE stream_id = :stream_id),
hot AS (DELETE FROM hot_key WHERE stream_id = :stream_id),
columns AS (DELETE FROM stream_schema WHERE stream_id = :stream_id),
ended AS (
    UPDATE stream SET state = 'deleted', head = '{}',
        schema_version = 0
    WHERE stream_id = :stream_id
)
SELECT count(*) FROM file"""
)


def delete(connection: Connection, *, stream_id: int, folder: str) -> int:
    """Delete a stream with all its metadata, and make garbage of its folder. Return how many files it had."""
    result = connection.execute(DELETE, {"stream_id": stream_id, "folder": folder})
    value: int = result.scalar_one()
    return value
