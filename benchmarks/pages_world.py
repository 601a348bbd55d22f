"""What the pages are asked about: many streams and groups, and one stream with a long history.

Of each side of a figure there is one, made by bulk insert: so many streams with three subscribers
each, half of what they have unread; a stream that was scaled once a second, with ten commits of a
file for each of its segments; a group that has read that stream in batches; stores and runs.
"""

from dataclasses import dataclass

from sqlalchemy import text

from benchmarks.control import _MOVED, _STREAMS, SUBSCRIBERS
from benchmarks.history import build
from benchmarks.setting import Setting, in_bulk
from weir.database.connection import Database
from weir.model.names import StreamName

LONG = StreamName("bench", "long")


@dataclass(frozen=True)
class Size:
    """How much there is. The long stream comes last, so its id is one more than `streams`.

    A segment of it has ten commits; its group has read a tenth as many batches, and there are as
    many runs as batches."""

    streams: int
    segments: int


FEW = Size(100, 1000)


def many(setting: Setting) -> Size:
    """Return what is much: with `full`, a million commits."""
    return Size(10_000, 100_000) if setting.full else Size(1000, 10_000)


def world(setting: Setting, size: Size) -> Database:
    """Return the database of such a world. The first call makes it."""
    name = f"pages_{size.streams}"
    database = setting.filled(name, _STREAMS, count=size.streams, groups=SUBSCRIBERS)
    found = "SELECT FROM stream WHERE name = :name"
    if not database.snapshot(lambda c: c.execute(text(found), {"name": LONG.name}).all()):
        in_bulk(database, _MOVED)
        build(setting.server.dsn(name, "postgres"), {LONG: size.segments * 2 // 3})
        in_bulk(database, _PAST)
        in_bulk(database, _LONG, stores=size.streams // 10, batches=size.segments)
        setting.server.psql("VACUUM ANALYZE", name)
    return database


# What is recorded of every stream and group over time, as if all moved all the time; retention,
# which decides about all of them within a week, about one in a hundred by a size; some files
# that are missing; and one in ten that waits to be published.
_PAST = """
INSERT INTO stream_history (stream_id, grain, slot, recorded_at, events, bytes)
SELECT s.stream_id, h.grain, b.slot - i * h.grain * interval '1 second',
    b.slot - i * h.grain * interval '1 second', 1000000 - i, 100000000 - i
FROM stream s CROSS JOIN history_grains() h
JOIN history_slots(now()) b USING (grain)
CROSS JOIN generate_series(1, least(extract(epoch FROM h.kept) / h.grain, 30)::int) i;
INSERT INTO group_history (group_id, stream_id, grain, slot, recorded_at, read, unread, read_bytes,
    unread_bytes)
SELECT g.group_id, g.stream_id, h.grain, h.slot, h.recorded_at, h.events, 5, h.bytes, 500
FROM reader_group_stream g JOIN stream_history h USING (stream_id);
INSERT INTO owner_history (owner, grain, slot, streams, bytes)
SELECT 'team_' || o, h.grain, b.slot - i * h.grain * interval '1 second', 100, i
FROM generate_series(1, 100) o CROSS JOIN history_grains() h
JOIN history_slots(now()) b USING (grain)
CROSS JOIN generate_series(1, least(extract(epoch FROM h.kept) / h.grain, 720)::int) i
WHERE h.grain >= 3600;
UPDATE stream SET retain_max_bytes = 1000000 WHERE stream_id % 100 = 0;
INSERT INTO retention_queue (stream_id, due_at)
SELECT stream_id, now() + stream_id % 8 * interval '1 day' FROM stream;
INSERT INTO found_damage (path, kind, stream_id, segment_id, start_offset, events, what)
SELECT stream_id || '/0', 'missing', stream_id, 0, 0, 10, 'it is gone' FROM stream
ORDER BY stream_id LIMIT 60;
INSERT INTO verification (stream_id, begun_at, segment_id, start_offset, completed_at)
SELECT stream_id, now(), -1, 0, now() FROM stream;
UPDATE stream SET publish = 'iceberg' WHERE stream_id % 10 = 0
"""

# In each segment's life, ten commits of what it has in all.
_LONG = """
CREATE TEMP TABLE made ON COMMIT DROP AS
SELECT g.stream_id, g.stream_name, g.segment_id, k AS nth, e.clock,
    row_number() OVER (ORDER BY e.clock, g.segment_id) AS number
FROM stream s JOIN segment g USING (stream_id)
CROSS JOIN LATERAL (  -- an epoch a second, as a join would compare each with each
    SELECT b.created_at + g.creation_epoch * 1000000::bigint AS created_at FROM epoch b
    WHERE b.stream_id = s.stream_id AND b.epoch = 0) c
CROSS JOIN generate_series(0, 9) k
CROSS JOIN LATERAL (SELECT c.created_at + (2 * k + 1)
    * (coalesce(g.sealed_clock, s.last_clock) - c.created_at) / 20 AS clock) e
WHERE s.name = 'long';
DELETE FROM time_index t USING stream s WHERE s.stream_id = t.stream_id AND s.name = 'long';
INSERT INTO transaction (stream_id, stream_name, transaction_number, writer_id, batch_id,
    fingerprint, state, epoch, opened_at, lease_until, ended_at, clock, events, bytes, files,
    allow_repeated_files, source)
SELECT stream_id, stream_name, number, 'w', number::text, '', 'committed', segment_id >> 32,
    clock_time(clock), clock_time(clock), clock_time(clock), clock, 100, 10000, 1, false,
    'dag/' || number || '/append' FROM made;
INSERT INTO data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
    transaction_number, first_seq, last_seq, schema_version, path)
SELECT stream_id, stream_name, segment_id, nth * 100, 100, 10000, number, 0, 99, 1,
    stream_id || '/_weir_tx=' || number || '/_weir_attempt=1/part-0.parquet' FROM made;
INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events, start_byte, bytes,
    clock, transaction_number)
SELECT stream_id, stream_name, segment_id, nth * 100, 100, nth * 10000, 10000, clock, number
FROM made;
UPDATE stream SET next_transaction_number = (SELECT max(number) + 1 FROM made) WHERE name = 'long';
INSERT INTO reader_group (name, subscriber, on_gap, created_at)
SELECT 'long', true, 'fail', clock_time(created_at) FROM epoch
WHERE stream_name = 'bench/long' AND epoch = 0;
INSERT INTO reader_group_stream (group_id, stream_id, start_cut, released_cut, released_at)
SELECT g.group_id, s.stream_id, s.head, s.head, clock_timestamp()
FROM reader_group g JOIN stream s USING (name);
INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state, next_offset)
SELECT g.group_id, s.stream_id, t.segment_id, 'unassigned', t.tail_offset / 2
FROM reader_group g JOIN stream s USING (name) JOIN segment_tail t USING (stream_id)
WHERE name = 'long';
INSERT INTO reader_batch (group_id, group_name, batch_id, reader_id, token, state, bounds, events,
    bytes, opened_at, committed_at, ended_at, outputs, function, function_version)
SELECT g.group_id, g.name, number / 10 + 1, 'dag/' || number / 10 || '/process', 1, 'committed',
    jsonb_build_array(jsonb_build_object('stream', m.stream_id, 'segment', m.segment_id,
        'from', nth * 100, 'to', nth * 100 + 100)), 100, 10000,
    clock_time(clock), clock_time(clock + 500000), clock_time(clock + 500000),
    '[{"kind": "table", "output": "public.t"}]', 'shop:f', 'v'
FROM made m JOIN reader_group g ON g.name = 'long' WHERE number % 10 = 0;
UPDATE reader_group SET next_batch = :batches + 2, moved_at = clock_timestamp()
WHERE name = 'long';
INSERT INTO batch_input (stream_id, segment_id, from_offset, to_offset, size_class, group_id,
    batch_id)
SELECT i.*, b.group_id, b.batch_id FROM reader_batch b CROSS JOIN LATERAL inputs_of(b.bounds) i;
INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job, arguments, state,
    started_at, updated_at, report)
SELECT 'dag', i::text, 'process', -1, 1, CASE WHEN i % 2 = 0 THEN 'process' ELSE 'retention' END,
    '{"reader_group": "long"}', 'succeeded', now() - i * interval '1 minute',
    now() - i * interval '1 minute', '{"events": 100}'
FROM generate_series(1, :batches) i;
INSERT INTO adjunct_store (name, stream_id, group_id, layout, bootstrap, missing, patience,
    null_key, on_error, on_gap, keep_versions)
SELECT s.stream_name, s.stream_id, g.group_id, 'auto', 'batch', 'wait', 60, 'skip', 'fail', 'fail',
    86400
FROM generate_series(1, :stores) i JOIN stream s ON s.name = 's' || i
JOIN reader_group g ON g.name = 's' || i || '-1';
INSERT INTO adjunct_definition (store_id, definition, key, key_type, value, value_columns,
    delete_when)
SELECT store_id, 1, '', '', '', '', '' FROM adjunct_store;
INSERT INTO adjunct_version (store_id, version, definition, state, kind, from_cut, cut, clock,
    builder, started_at, published_at, superseded_at, fields, row_count)
SELECT a.store_id, v, 1, 'published', 'rebuilt', '{}', '{"0.0": 5}', s.last_clock, 'bench', now(),
    now(), CASE WHEN v < 10 THEN now() END, '[]', 0
FROM adjunct_store a JOIN stream s USING (stream_id), generate_series(1, 10) v
"""
