-- What Weir has nothing of. DuckDB asks for all of them.
CREATE OR REPLACE VIEW weir_ducklake.ducklake_column_tag AS
SELECT NULL::bigint AS table_id, NULL::bigint AS column_id, NULL::bigint AS begin_snapshot,
       NULL::bigint AS end_snapshot, NULL::varchar AS key, NULL::varchar AS value WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_column_tag IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_delete_file AS
SELECT NULL::bigint AS delete_file_id, NULL::bigint AS table_id, NULL::bigint AS begin_snapshot,
       NULL::bigint AS end_snapshot, NULL::bigint AS data_file_id, NULL::varchar AS path,
       NULL::boolean AS path_is_relative, NULL::varchar AS format, NULL::bigint AS delete_count,
       NULL::bigint AS file_size_bytes, NULL::bigint AS footer_size, NULL::varchar AS encryption_key,
       NULL::bigint AS partial_max WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_delete_file IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_file_partition_value AS
SELECT NULL::bigint AS data_file_id, NULL::bigint AS table_id, NULL::bigint AS partition_key_index,
       NULL::varchar AS partition_value WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_file_partition_value IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_file_variant_stats AS
SELECT NULL::bigint AS data_file_id, NULL::bigint AS table_id, NULL::bigint AS column_id,
       NULL::varchar AS variant_path, NULL::varchar AS shredded_type, NULL::bigint AS column_size_bytes,
       NULL::bigint AS value_count, NULL::bigint AS null_count, NULL::varchar AS min_value,
       NULL::varchar AS max_value, NULL::boolean AS contains_nan, NULL::varchar AS extra_stats WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_file_variant_stats IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_files_scheduled_for_deletion AS
SELECT NULL::bigint AS data_file_id, NULL::varchar AS path, NULL::boolean AS path_is_relative,
       NULL::timestamptz AS schedule_start WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_files_scheduled_for_deletion IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_inlined_data_tables AS
SELECT NULL::bigint AS table_id, NULL::varchar AS table_name, NULL::bigint AS schema_version WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_inlined_data_tables IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_macro AS
SELECT NULL::bigint AS schema_id, NULL::bigint AS macro_id, NULL::varchar AS macro_name,
       NULL::bigint AS begin_snapshot, NULL::bigint AS end_snapshot WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_macro IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_macro_impl AS
SELECT NULL::bigint AS macro_id, NULL::bigint AS impl_id, NULL::varchar AS dialect, NULL::varchar AS sql,
       NULL::varchar AS type WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_macro_impl IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_macro_parameters AS
SELECT NULL::bigint AS macro_id, NULL::bigint AS impl_id, NULL::bigint AS column_id, NULL::varchar AS parameter_name,
       NULL::varchar AS parameter_type, NULL::varchar AS default_value, NULL::varchar AS default_value_type WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_macro_parameters IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_partition_column AS
SELECT NULL::bigint AS partition_id, NULL::bigint AS table_id, NULL::bigint AS partition_key_index,
       NULL::bigint AS column_id, NULL::varchar AS transform WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_partition_column IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_partition_info AS
SELECT NULL::bigint AS partition_id, NULL::bigint AS table_id, NULL::bigint AS begin_snapshot,
       NULL::bigint AS end_snapshot WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_partition_info IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_schema_versions AS
SELECT NULL::bigint AS begin_snapshot, NULL::bigint AS schema_version, NULL::bigint AS table_id WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_schema_versions IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_snapshot_changes AS
SELECT NULL::bigint AS snapshot_id, NULL::varchar AS changes_made, NULL::varchar AS author,
       NULL::varchar AS commit_message, NULL::varchar AS commit_extra_info WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_snapshot_changes IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_sort_expression AS
SELECT NULL::bigint AS sort_id, NULL::bigint AS table_id, NULL::bigint AS sort_key_index, NULL::varchar AS expression,
       NULL::varchar AS dialect, NULL::varchar AS sort_direction, NULL::varchar AS null_order WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_sort_expression IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_sort_info AS
SELECT NULL::bigint AS sort_id, NULL::bigint AS table_id, NULL::bigint AS begin_snapshot,
       NULL::bigint AS end_snapshot WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_sort_info IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_table_column_stats AS
SELECT NULL::bigint AS table_id, NULL::bigint AS column_id, NULL::boolean AS contains_null,
       NULL::boolean AS contains_nan, NULL::varchar AS min_value, NULL::varchar AS max_value,
       NULL::varchar AS extra_stats WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_table_column_stats IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_tag AS
SELECT NULL::bigint AS object_id, NULL::bigint AS begin_snapshot, NULL::bigint AS end_snapshot, NULL::varchar AS key,
       NULL::varchar AS value WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_tag IS 'Nothing.';
CREATE OR REPLACE VIEW weir_ducklake.ducklake_view AS
SELECT NULL::bigint AS view_id, NULL::uuid AS view_uuid, NULL::bigint AS begin_snapshot, NULL::bigint AS end_snapshot,
       NULL::bigint AS schema_id, NULL::varchar AS view_name, NULL::varchar AS dialect, NULL::varchar AS sql,
       NULL::varchar AS column_aliases WHERE false;
COMMENT ON VIEW weir_ducklake.ducklake_view IS 'Nothing.';
