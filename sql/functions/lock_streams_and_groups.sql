CREATE FUNCTION weir.lock_groups(in_stream_ids bigint[], in_group text, in_wait boolean)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
    IF in_wait THEN
        PERFORM FROM weir.reader_group g
        WHERE CASE WHEN in_group IS NULL THEN g.group_id IN (
                  SELECT gs.group_id FROM weir.reader_group_stream gs
                  WHERE gs.stream_id = ANY (in_stream_ids))
              ELSE g.name = in_group END
        ORDER BY group_id FOR NO KEY UPDATE;
    ELSE
        PERFORM FROM weir.reader_group g
        WHERE CASE WHEN in_group IS NULL THEN g.group_id IN (
                  SELECT gs.group_id FROM weir.reader_group_stream gs
                  WHERE gs.stream_id = ANY (in_stream_ids))
              ELSE g.name = in_group END
        ORDER BY group_id FOR NO KEY UPDATE NOWAIT;
    END IF;
END $$;
COMMENT ON FUNCTION weir.lock_groups(bigint[], text, boolean) IS 'For jobs: locks one reader group, or those that read streams; an error if another session has one and it is not to wait.';

-- Streams first, then groups. A group may be locked for long (by a commit that fills a table), and appends
-- wait for streams. So who has to wait for a group lets go of its streams, waits with nothing locked,
-- and starts over; if that is in vain for half a minute, it keeps them, so that its turn comes.
CREATE FUNCTION weir.lock_streams_and_groups(in_ids bigint[], in_scopes text[], in_names text[],
                                             in_group text DEFAULT NULL)
RETURNS SETOF weir.stream
LANGUAGE plpgsql SET search_path = pg_catalog ROWS 1
AS $$
DECLARE
    until CONSTANT timestamptz := clock_timestamp() + interval '30 seconds';
    locked weir.stream[];
    ids bigint[];
    wait boolean;
BEGIN
    LOOP
        BEGIN
            locked := array(SELECT s FROM weir.lock_streams(in_ids, in_scopes, in_names) s);
            ids := array(SELECT s.stream_id FROM unnest(locked) s);
            wait := ids = '{}' OR clock_timestamp() > until;
            BEGIN
                PERFORM weir.lock_groups(ids, in_group, wait);
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
            PERFORM weir.lock_groups(ids, in_group, true);
            RAISE EXCEPTION USING ERRCODE = 'WEIR3', MESSAGE = 'it is free now';
        EXCEPTION WHEN SQLSTATE 'WEIR3' THEN
            NULL;
        END;
    END LOOP;
END $$;
COMMENT ON FUNCTION weir.lock_streams_and_groups(bigint[], text[], text[], text) IS 'For jobs: the rows of streams, locked together with one reader group, or with those that read them.';
