"""Why files are kept: a question about many files at once."""

import psycopg2
from sqlalchemy import text

from benchmarks.figure import Figure
from benchmarks.setting import Setting

FILES = 160_000


def why_kept(setting: Setting) -> Figure:
    """Return the figure of asking why each of many files is kept, beside the list of the files."""
    dsn = setting.server.dsn("weir", "postgres")
    connection = psycopg2.connect(dsn)
    with connection, connection.cursor() as cursor:
        cursor.execute(_FILES, {"files": FILES})
    with connection, connection.cursor() as cursor:
        cursor.execute("ANALYZE weir_internal.data_file")
    connection.close()

    def run(asked: str) -> None:
        assert len(setting.database.transaction(lambda c: c.execute(text(asked)).all())) == FILES

    return Figure(
        "metadata/why_kept",
        f"why each of {FILES:,} files of a stream with two subscribers is kept, beside the list of "
        "the files; all rows are sent to the client",
        lambda: run("SELECT * FROM why_kept('bench/files')"),
        lambda: run("SELECT * FROM data_files WHERE stream = 'bench/files'"),
        limit=1.5,
    )


# Two subscribers have released some of 16 segments.
_FILES = """
SET LOCAL session_replication_role = replica;
SET LOCAL search_path = weir_internal, weir;
CREATE TEMP TABLE made ON COMMIT DROP AS
WITH s AS (
    INSERT INTO stream (scope, name, routing_key, on_missing_key, on_bad_rows,
        retention, next_segment_number, last_clock, head)
    SELECT 'bench', 'files', 'key', 'fail', 'fail', 'consumed', 16, time_clock(clock_timestamp()),
           jsonb_object_agg(i || '.0', 0) FROM generate_series(0, 15) i
    RETURNING stream_id, stream_name, head
) SELECT * FROM s;
INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at, cause, request_id)
SELECT stream_id, 'bench/files', 0, 0, 1, 'create', '' FROM made;
INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high)
SELECT stream_id, 'bench/files', i, i / 16.0, (i + 1) / 16.0 FROM made, generate_series(0, 15) i;
INSERT INTO segment_tail (stream_id, segment_id, tail_offset, tail_bytes)
SELECT stream_id, i, %(files)s / 16 * 10, %(files)s / 16 * 100 FROM made, generate_series(0, 15) i;
INSERT INTO data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
    transaction_number, first_seq, last_seq, schema_version, path)
SELECT stream_id, stream_name, i %% 16, i / 16 * 10, 10, 100, i, 0, 9, 0,
       stream_id || '/_weir_tx=' || i || '/_weir_attempt=1/_weir_segment=' || i %% 16
       || '/_weir_task=0/part.parquet'
FROM made, generate_series(0, %(files)s - 1) i;
INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events, start_byte, bytes,
    clock, transaction_number)
SELECT stream_id, stream_name, i %% 16, i / 16 * 10, 10, i / 16 * 100, 100,
       time_clock(clock_timestamp()) - %(files)s + i, i
FROM made, generate_series(0, %(files)s - 1) i;
INSERT INTO reader_group (name, subscriber, on_gap)
SELECT 'files-' || i, true, 'fail' FROM generate_series(1, 2) i;
INSERT INTO reader_group_stream (group_id, stream_id, start_cut, released_cut, released_at)
SELECT group_id, stream_id, head, (
    SELECT jsonb_object_agg(i || '.0', %(files)s / 160 * 10 * split_part(name, '-', 2)::integer)
    FROM generate_series(0, 15) i), clock_timestamp()
FROM made, reader_group WHERE name LIKE 'files-_';
INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state, next_offset)
SELECT group_id, stream_id, i, 'unassigned', 0
FROM made, reader_group, generate_series(0, 15) i WHERE name LIKE 'files-_';
"""
