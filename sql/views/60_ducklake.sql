-- The catalogue of DuckLake, version 1.0 (https://ducklake.select/docs/stable/specification/tables/overview), of which
-- DuckDB reads all tables. A snapshot is the clock of a commit, a table a stream, a schema a scope.
-- Who attaches it to write could delete files, as DuckLake's maintenance does. That needs a version that DuckDB knows.
CREATE OR REPLACE VIEW weir_ducklake.ducklake_metadata AS
SELECT m.key::varchar AS key, m.value::varchar AS value, NULL::varchar AS scope, NULL::bigint AS scope_id
FROM (VALUES ('version', CASE current_setting('transaction_read_only') WHEN 'on' THEN '1.0'
                         ELSE 'read-only: ATTACH it with (READ_ONLY, ...)' END),
             ('created_by', 'Weir'), ('encrypted', 'false')) AS m (key, value)
UNION ALL
SELECT 'data_path', i.warehouse || '/', NULL, NULL FROM weir_internal.installation i WHERE i.warehouse IS NOT NULL;
COMMENT ON VIEW weir_ducklake.ducklake_metadata IS 'The version of the catalogue, and where the warehouse is.';

-- A commit is a snapshot once all transactions have ended that may yet commit with an earlier clock: then it is the same
-- whenever it is asked for. A number that this server has not reached is of the one from which the database was restored.
-- What is there now has a number above all clocks, which is never found again.
-- One half is a plain table, the other one is sorted, and the condition has no subquery: so Postgres finds the largest
-- number, which each query of DuckDB asks for, by an index.
-- DuckDB keeps a catalogue for each schema_version: it changes with the columns of any stream, and with each stream that is
-- deleted, because that takes it out of all snapshots.
CREATE OR REPLACE VIEW weir_ducklake.ducklake_snapshot AS
SELECT n.clock AS snapshot_id,
       CASE WHEN n.clock < 4611686018427387904 THEN weir_internal.clock_time(n.clock) ELSE now() END AS snapshot_time,
       (SELECT coalesce(max(v.number), 0) FROM weir_internal.stream_schema v
        WHERE n.clock >= 4611686018427387904 OR v.created_at <= weir_internal.clock_time(n.clock)) << 20
       | (SELECT count(*) & 1048575 FROM weir_internal.stream d WHERE d.state = 'deleted') AS schema_version,
       0::bigint AS next_catalog_id,
       (SELECT coalesce(max(v.number), 0) + 1 FROM weir_internal.stream_schema v) AS next_file_id
FROM (SELECT t.clock, t.final_after FROM weir_internal.transaction t
      UNION ALL
      (SELECT 4611686018427387904 + m.clock, NULL
       FROM (VALUES (weir_internal.time_clock(now())),
                    ((SELECT coalesce(max(l.clock), 0) FROM weir_internal.transaction l))) AS m (clock)
       ORDER BY 1 DESC LIMIT 1)) n
WHERE n.clock IS NOT NULL AND (n.final_after > pg_snapshot_xmin(pg_current_snapshot())
                               AND n.final_after <= pg_snapshot_xmax(pg_current_snapshot())) IS NOT TRUE;
COMMENT ON VIEW weir_ducklake.ducklake_snapshot IS 'A snapshot per commit, whose number is the clock, and one more of what is there now.';

CREATE OR REPLACE VIEW weir_ducklake.ducklake_schema AS
SELECT ('x' || left(md5(s.scope), 15))::bit(60)::bigint AS schema_id, md5(s.scope)::uuid AS schema_uuid,
       0::bigint AS begin_snapshot, NULL::bigint AS end_snapshot, s.scope::varchar AS schema_name, ''::varchar AS path, true AS path_is_relative
FROM (SELECT o.scope FROM weir_internal.stream o WHERE o.state <> 'deleted' AND o.schema_version > 0
      UNION SELECT 'main') s;
COMMENT ON VIEW weir_ducklake.ducklake_schema IS 'The scopes, and main, which DuckDB looks for.';

CREATE OR REPLACE VIEW weir_ducklake.ducklake_table AS
SELECT s.stream_id AS table_id, md5('stream ' || s.stream_id)::uuid AS table_uuid,
       weir_internal.time_clock(v.created_at) AS begin_snapshot, NULL::bigint AS end_snapshot,
       ('x' || left(md5(s.scope), 15))::bit(60)::bigint AS schema_id, s.name::varchar AS table_name, ''::varchar AS path,
       true AS path_is_relative
FROM weir_internal.stream s
JOIN weir_internal.stream_schema v ON v.stream_id = s.stream_id AND v.version = 1
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir_ducklake.ducklake_table IS 'The streams that have columns, since they have.';

-- A column has the same number in all versions: its place among all columns that the stream ever had, and what is in them.
-- Variants are left out: pyarrow writes a file anew without the mark of a variant, and DuckDB takes it for a struct.
CREATE OR REPLACE VIEW weir_ducklake.ducklake_column AS
SELECT c.*, s.stream_id AS table_id
FROM weir_internal.stream s
CROSS JOIN LATERAL (
    WITH RECURSIVE part AS (
        SELECT v.version, v.number, v.begin_snapshot, v.end_snapshot,
               ARRAY[coalesce(f.field ->> 'stored', f.field ->> 'name')] AS path, ARRAY[f.i] AS place,
               f.field ->> 'name' AS name, f.field -> 'type' AS type, f.field ->> 'default' AS value
        FROM (SELECT o.version, o.number, o.fields, weir_internal.time_clock(o.created_at) AS begin_snapshot,
                     weir_internal.time_clock(lead(o.created_at) OVER (ORDER BY o.version)) AS end_snapshot
              FROM weir_internal.stream_schema o WHERE o.stream_id = s.stream_id) v
        CROSS JOIN LATERAL jsonb_array_elements(v.fields) WITH ORDINALITY AS f (field, i)
        WHERE NOT f.field @? '$.**.type ? (@ == "variant")' AND NOT f.field @? '$.**.elementType ? (@ == "variant")'
          AND NOT f.field @? '$.**.valueType ? (@ == "variant")'
        UNION ALL
        SELECT p.version, p.number, p.begin_snapshot, p.end_snapshot, p.path || i.name, p.place || i.i, i.name, i.type, NULL
        FROM part p CROSS JOIN LATERAL (
            SELECT f.field ->> 'name', f.field -> 'type', f.i
            FROM jsonb_array_elements(p.type -> 'fields') WITH ORDINALITY AS f (field, i)
            UNION ALL SELECT 'element', p.type -> 'elementType', 1 WHERE p.type ? 'elementType'
            UNION ALL SELECT 'key', p.type -> 'keyType', 1 WHERE p.type ? 'keyType'
            UNION ALL SELECT 'value', p.type -> 'valueType', 2 WHERE p.type ? 'keyType') AS i (name, type, i)
        WHERE jsonb_typeof(p.type) = 'object'
    ), numbered AS (
        SELECT n.path, row_number() OVER (ORDER BY n.version, n.place) AS number
        FROM (SELECT DISTINCT ON (o.path) o.path, o.version, o.place FROM part o ORDER BY o.path, o.version) n
    )
    SELECT n.number AS column_id, p.begin_snapshot, p.end_snapshot,
           row_number() OVER (PARTITION BY p.version ORDER BY p.place) AS column_order, p.name::varchar AS column_name,
           (CASE p.type ->> 'type' WHEN 'array' THEN 'list' WHEN 'map' THEN 'map' WHEN 'struct' THEN 'struct'
            ELSE CASE p.type #>> '{}'
                WHEN 'byte' THEN 'int8' WHEN 'short' THEN 'int16' WHEN 'integer' THEN 'int32' WHEN 'long' THEN 'int64'
                WHEN 'float' THEN 'float32' WHEN 'double' THEN 'float64' WHEN 'string' THEN 'varchar'
                WHEN 'binary' THEN 'blob' WHEN 'timestamp' THEN 'timestamptz' WHEN 'timestamp_ntz' THEN 'timestamp'
                ELSE p.type #>> '{}' END END)::varchar AS column_type,
           p.value::varchar AS initial_default, NULL::varchar AS default_value, true AS nulls_allowed,
           m.number AS parent_column, 'literal'::varchar AS default_value_type,
           'duckdb'::varchar AS default_value_dialect, p.path[cardinality(p.path)]::varchar AS source_name,
           p.number AS mapping_id
    FROM part p JOIN numbered n ON n.path = p.path
    LEFT JOIN numbered m ON m.path = p.path[:cardinality(p.path) - 1]) c
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir_ducklake.ducklake_column IS 'The columns of each version of each stream''s schema, and what is in them. A column keeps its number when it is renamed or widened.';

-- DuckDB keeps the mappings that it has read, and when it meets a new one, asks for those from the last next_file_id on. So
-- each version of a schema has a mapping of its own, whose number is higher than all before it.
CREATE OR REPLACE VIEW weir_ducklake.ducklake_column_mapping AS
SELECT v.number AS mapping_id, v.stream_id AS table_id, 'map_by_name'::varchar AS type
FROM weir_internal.stream_schema v;
COMMENT ON VIEW weir_ducklake.ducklake_column_mapping IS 'That files name columns by their stored names: a mapping for each version of a schema.';

CREATE OR REPLACE VIEW weir_ducklake.ducklake_name_mapping AS
SELECT c.mapping_id, c.column_id, c.source_name, c.column_id AS target_field_id, c.parent_column, false AS is_partition
FROM weir_ducklake.ducklake_column c;
COMMENT ON VIEW weir_ducklake.ducklake_name_mapping IS 'The name of each column in files.';

CREATE OR REPLACE VIEW weir_ducklake.ducklake_data_file AS
SELECT f.file_id AS data_file_id, f.stream_id AS table_id, f.since AS begin_snapshot, NULL::bigint AS end_snapshot,
       NULL::bigint AS file_order, f.path::varchar AS path, true AS path_is_relative, 'parquet'::varchar AS file_format,
       f.events - f.erased AS record_count, f.bytes AS file_size_bytes, NULL::bigint AS footer_size,
       CASE WHEN f.erased = 0 THEN ((f.segment_id & 4194303) << 41) + f.start_offset END AS row_id_start, NULL::bigint AS partition_id,
       NULL::varchar AS encryption_key, v.number AS mapping_id,
       f.last_clock AS partial_max
FROM weir_internal.data_file f
LEFT JOIN weir_internal.stream_schema v ON v.stream_id = f.stream_id AND v.version = f.schema_version;
COMMENT ON VIEW weir_ducklake.ducklake_data_file IS 'The files of the streams. row_id_start: the number of the segment and the offset; null if the file has those of each row, as events were erased.';

-- Of files of one commit, if the event time is just a column. The bounds are those of the commit, so they may be wider than
-- the file's; what is no event time, such as 9999-12-31, is in no bounds, so a commit must have none. The numbers are those that clock_time keeps exactly.
CREATE OR REPLACE VIEW weir_ducklake.ducklake_file_column_stats AS
SELECT f.file_id AS data_file_id, f.stream_id AS table_id, c.column_id, NULL::bigint AS column_size_bytes,
       f.events - f.erased AS value_count, 0::bigint AS null_count, (b.low || c.zone)::varchar AS min_value,
       (b.high || c.zone)::varchar AS max_value, NULL::boolean AS contains_nan, NULL::varchar AS extra_stats
FROM weir_internal.stream s
JOIN LATERAL (
    SELECT o.column_id, CASE o.column_type WHEN 'timestamptz' THEN '+00' ELSE '' END AS zone
    FROM weir_ducklake.ducklake_column o
    WHERE o.table_id = s.stream_id AND o.end_snapshot IS NULL AND o.parent_column IS NULL
      AND s.event_time IN (o.column_name, '`' || o.column_name || '`')
      AND o.column_type IN ('timestamp', 'timestamptz') OFFSET 0) c ON true
JOIN weir_internal.data_file f ON f.stream_id = s.stream_id
JOIN weir_internal.transaction t ON t.stream_id = f.stream_id AND t.transaction_number = f.transaction_number
CROSS JOIN LATERAL (
    SELECT to_char(weir_internal.clock_time(t.min_event_time) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') AS low,
           to_char(weir_internal.clock_time(t.max_event_time) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') AS high) b
WHERE s.event_time IS NOT NULL AND t.clock > s.event_time_since AND t.untimed = 0
  AND t.min_event_time > -9007199254740992 AND t.max_event_time < 9007199254740992;
COMMENT ON VIEW weir_ducklake.ducklake_file_column_stats IS 'The event times of files, by which DuckDB leaves files out.';

-- DuckDB only estimates by it.
CREATE OR REPLACE VIEW weir_ducklake.ducklake_table_stats AS
SELECT s.stream_id AS table_id, e.sealed_events + t.events AS record_count, 0::bigint AS next_row_id,
       e.sealed_bytes + t.bytes AS file_size_bytes
FROM weir_internal.stream s
JOIN weir_internal.epoch e ON e.stream_id = s.stream_id AND e.epoch = s.current_epoch
CROSS JOIN LATERAL (
    SELECT coalesce(sum(o.tail_offset), 0)::bigint AS events, coalesce(sum(o.tail_bytes), 0)::bigint AS bytes
    FROM weir_internal.segment_tail o WHERE o.stream_id = s.stream_id) t
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir_ducklake.ducklake_table_stats IS 'How much each stream ever had.';

-- DuckLake looks for the deleted rows of a table in ducklake_inlined_delete_<its number>: a trigger makes such a view for
-- each stream (functions/ducklake.sql). A head can be in the middle of a file.
CREATE OR REPLACE VIEW weir_ducklake.truncated_rows AS
SELECT s.stream_id AS table_id, f.file_id, r.row_id, 0::bigint AS begin_snapshot
FROM weir_internal.stream s
CROSS JOIN LATERAL (
    SELECT split_part(e.key, '.', 2)::bigint << 32 | split_part(e.key, '.', 1)::bigint AS segment_id,
           CASE jsonb_typeof(e.value) WHEN 'number' THEN e.value::bigint END AS event_offset
    FROM jsonb_each(s.head) e) h
CROSS JOIN LATERAL (
    SELECT o.file_id, o.segment_id, o.start_offset, o.events, o.erased FROM weir_internal.data_file o
    WHERE o.stream_id = s.stream_id AND o.segment_id = h.segment_id AND o.start_offset < h.event_offset
    ORDER BY o.start_offset DESC LIMIT 1) f
CROSS JOIN LATERAL generate_series(0, h.event_offset - f.start_offset - 1 - CASE WHEN f.erased = 0 THEN 0
    ELSE weir_internal.holes_in(s.stream_id, f.segment_id, f.start_offset, h.event_offset) END) AS r (row_id)
WHERE f.start_offset + f.events > h.event_offset;
COMMENT ON VIEW weir_ducklake.truncated_rows IS 'The rows of files that are below the heads of their streams.';
