"""What it costs other engines to read streams."""

import duckdb
import psycopg2
import pyarrow as pa

from benchmarks.figure import Figure
from benchmarks.setting import Setting, in_bulk
from benchmarks.writers import lake, with_ducklake
from weir.arrow.append import append_table
from weir.controller.streams import create_stream
from weir.installation.opened import Installation
from weir.model.names import stream_name

FILES = 10_000

# One real file, which stands for all: a plan does not look into them.
_OURS = """
INSERT INTO transaction (stream_id, stream_name, transaction_number, writer_id, batch_id,
    fingerprint, allow_repeated_files, source, state, epoch, opened_at, lease_until, ended_at,
    clock, events, bytes, files, final_after)
SELECT stream_id, stream_name, n + 1, writer_id, CAST(n AS text), fingerprint, false, source, state,
    epoch, opened_at, lease_until, ended_at, clock + n, events, bytes, files, final_after
FROM transaction, generate_series(1, :files - 1) n WHERE stream_id = :s;
INSERT INTO data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
    transaction_number, first_seq, last_seq, schema_version, path, since)
SELECT stream_id, stream_name, segment_id, start_offset + n, events, bytes, n + 1, first_seq,
    last_seq, schema_version, path, since + n
FROM data_file, generate_series(1, :files - 1) n WHERE stream_id = :s
"""
_THEIRS = """
INSERT INTO ducklake_snapshot
SELECT snapshot_id + n, snapshot_time, schema_version, next_catalog_id, next_file_id + n
FROM ducklake_snapshot, generate_series(1, %(files)s - 1) n
WHERE snapshot_id = (SELECT max(snapshot_id) FROM ducklake_snapshot);
INSERT INTO ducklake_file_column_stats
SELECT data_file_id + n, table_id, column_id, column_size_bytes, value_count, null_count, min_value,
    max_value, contains_nan, extra_stats
FROM ducklake_file_column_stats, generate_series(1, %(files)s - 1) n;
INSERT INTO ducklake_data_file
SELECT data_file_id + n, table_id, begin_snapshot + n, end_snapshot, file_order, path,
    path_is_relative, file_format, record_count, file_size_bytes, footer_size, row_id_start + n,
    partition_id, encryption_key, mapping_id, partial_max
FROM ducklake_data_file, generate_series(1, %(files)s - 1) n
"""


def ducklake(setting: Setting) -> Figure:
    """Return the figure of planning a scan of many files through the views, beside DuckLake's own
    catalogue of as many."""
    row = pa.table({"id": [1], "key": ["k"], "value": [0.5]})
    name = stream_name(f"bench/lake{setting.number()}")
    made = create_stream(
        setting.database, name, routing_key="key", segments=1, request_id=str(name)
    )
    app = Installation(setting.settings, setting.database)
    append_table(app, str(name), row, writer_id="bench", batch_id="0")
    in_bulk(setting.database, _OURS, s=made["stream_id"], files=FILES)
    ours = with_ducklake()
    _attach(ours, setting.server.dsn("weir", "weir_view"), "weir_ducklake")

    setting.server.psql("CREATE DATABASE own_lake")
    own = setting.server.dsn("own_lake", "postgres")
    made_with = lake(own, str(setting.folder / "own lake"))
    made_with.register("given", row)
    made_with.execute("CREATE TABLE lake.files AS FROM given")
    made_with.close()
    with psycopg2.connect(own) as connection, connection.cursor() as cursor:
        cursor.execute(_THEIRS, {"files": FILES})
    theirs = with_ducklake()
    _attach(theirs, own, "public")
    for database in ("weir", "own_lake"):
        setting.server.psql("VACUUM ANALYZE", database)

    def plan(duck: duckdb.DuckDBPyConnection, table: str) -> None:
        assert duck.execute(f"FROM {table} LIMIT 1").fetchall() == [(1, "k", 0.5)]

    return Figure(
        name="engines/ducklake",
        what=f"DuckDB plans a scan of {FILES:,} files of a stream, beside DuckLake's own catalogue",
        ours=lambda: plan(ours, f'lake.bench."{name.name}"'),
        reference=lambda: plan(theirs, "lake.files"),
        limit=1.5,
    )


def _attach(duck: duckdb.DuckDBPyConnection, dsn: str, schema: str) -> None:
    dsn = dsn.replace("'", "''")
    duck.execute(
        f"ATTACH 'ducklake:postgres:{dsn}' AS lake (READ_ONLY, METADATA_SCHEMA '{schema}')"
    )
    duck.execute("SET threads = 1")  # else it opens as many files ahead as it has threads


FIGURES = {"engines/ducklake": ducklake}
