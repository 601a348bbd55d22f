-- A trigger of stream. DuckLake asks once whether a table has such a view, and keeps the answer. Whoever drops one waits
-- for all that read it, so a view that somebody reads is left, which is then empty.
CREATE OR REPLACE FUNCTION weir_internal.keep_ducklake_deletes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    of_table CONSTANT text := format('weir_ducklake.ducklake_inlined_delete_%s', NEW.stream_id);
    patience CONSTANT text := current_setting('lock_timeout');
BEGIN
    IF NEW.state <> 'deleted' THEN
        EXECUTE format('CREATE VIEW %s WITH (security_invoker = true) AS '
                       'SELECT file_id, row_id, begin_snapshot FROM weir_ducklake.truncated_rows WHERE table_id = %s',
                       of_table, NEW.stream_id);
        EXECUTE format('GRANT SELECT ON %s TO weir_jobs, weir_team, weir_reader', of_table);
        RETURN NULL;
    END IF;
    PERFORM set_config('lock_timeout', '10ms', true);
    BEGIN
        EXECUTE format('DROP VIEW IF EXISTS %s', of_table);
    EXCEPTION WHEN lock_not_available THEN
        NULL;
    END;
    PERFORM set_config('lock_timeout', patience, true);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION weir_internal.keep_ducklake_deletes() IS 'Makes the view with the rows of a new stream that DuckLake leaves out, and drops that of a deleted one.';

-- A trigger of stream_schema. Who has seen a number must have seen all lower ones, so the next one is given out after the
-- commit of the last one. Times have the same order.
CREATE OR REPLACE FUNCTION weir_internal.number_schema() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7305808869231650153);
    NEW.number := nextval(pg_get_serial_sequence('weir_internal.stream_schema', 'number'));
    NEW.created_at := clock_timestamp();
    RETURN NEW;
END $$;
COMMENT ON FUNCTION weir_internal.number_schema() IS 'Gives a version of a schema the next number, once whoever gave out the last one has ended.';
