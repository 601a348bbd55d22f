-- In the order of their ids. The rows are read again after the locks were taken. FOR NO KEY UPDATE: see
-- weir.controller.locks.
CREATE OR REPLACE FUNCTION weir_internal.lock_streams(in_ids bigint[], in_scopes text[], in_names text[])
RETURNS SETOF weir_internal.stream
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
BEGIN
    RETURN QUERY
    SELECT * FROM weir_internal.stream
    WHERE state <> 'deleted' AND stream_id = ANY (in_ids || array(
        SELECT n.stream_id FROM unnest(in_scopes, in_names) AS w (scope, name)
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT o.stream_id FROM weir_internal.stream o
            WHERE o.scope = w.scope AND o.name = w.name AND o.state <> 'deleted' OFFSET 0) n))
    ORDER BY stream_id FOR NO KEY UPDATE;
END $$;
COMMENT ON FUNCTION weir_internal.lock_streams(bigint[], text[], text[]) IS 'The rows of streams, locked until the end of the transaction.';

CREATE OR REPLACE FUNCTION weir_internal.lock_groups(in_stream_ids bigint[], in_group text, in_wait boolean)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF in_wait THEN
        PERFORM FROM weir_internal.reader_group g
        WHERE CASE WHEN in_group IS NULL THEN g.group_id IN (
                  SELECT gs.group_id FROM weir_internal.reader_group_stream gs
                  WHERE gs.stream_id = ANY (in_stream_ids))
              ELSE g.name = in_group END
        ORDER BY group_id FOR NO KEY UPDATE;
    ELSE
        PERFORM FROM weir_internal.reader_group g
        WHERE CASE WHEN in_group IS NULL THEN g.group_id IN (
                  SELECT gs.group_id FROM weir_internal.reader_group_stream gs
                  WHERE gs.stream_id = ANY (in_stream_ids))
              ELSE g.name = in_group END
        ORDER BY group_id FOR NO KEY UPDATE NOWAIT;
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.lock_groups(bigint[], text, boolean) IS 'Locks one reader group, or all that read some streams. If it is not to wait and another session has a lock, it raises an error.';

-- Streams first, then groups. A commit that fills a table may lock its group for long, and appends wait for
-- streams. So a session that has to wait for a group releases its locks on streams, waits without any lock, and
-- begins again. After half a minute it waits with the streams locked, so that it succeeds in the end.
CREATE OR REPLACE FUNCTION weir_internal.lock_streams_and_groups(in_ids bigint[], in_scopes text[], in_names text[],
                                             in_group text DEFAULT NULL)
RETURNS SETOF weir_internal.stream
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
DECLARE
    until CONSTANT timestamptz := clock_timestamp() + interval '30 seconds';
    locked weir_internal.stream[];
    ids bigint[];
    wait boolean;
BEGIN
    LOOP
        BEGIN
            locked := array(SELECT s FROM weir_internal.lock_streams(in_ids, in_scopes, in_names) s);
            ids := array(SELECT s.stream_id FROM unnest(locked) s);
            wait := ids = '{}' OR clock_timestamp() > until;
            BEGIN
                PERFORM weir_internal.lock_groups(ids, in_group, wait);
            EXCEPTION WHEN lock_not_available THEN
                IF wait THEN
                    RAISE;
                END IF;
                RAISE EXCEPTION USING ERRCODE = 'WEIR3', MESSAGE = 'another session has a group';
            END;
            RETURN QUERY SELECT * FROM unnest(locked);
            RETURN;
        EXCEPTION WHEN SQLSTATE 'WEIR3' THEN
            NULL;  -- the streams are free again
        END;
        BEGIN
            PERFORM weir_internal.lock_groups(ids, in_group, true);
            RAISE EXCEPTION USING ERRCODE = 'WEIR3', MESSAGE = 'it is free now';
        EXCEPTION WHEN SQLSTATE 'WEIR3' THEN
            NULL;
        END;
    END LOOP;
END $$;
COMMENT ON FUNCTION weir_internal.lock_streams_and_groups(bigint[], text[], text[], text) IS 'The rows of streams, locked together with one reader group, or with all groups that read them.';
