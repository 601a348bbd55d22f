-- Lock streams by id and by name, in the order of their ids, until the end of the transaction. What
-- comes back is as it is once the locks are held. FOR NO KEY UPDATE: see weir.controller.locks.
CREATE FUNCTION weir.lock_streams(in_ids bigint[], in_scopes text[], in_names text[])
RETURNS SETOF weir.stream
LANGUAGE plpgsql SET search_path = pg_catalog ROWS 1
AS $$
BEGIN
    RETURN QUERY
    SELECT * FROM weir.stream
    WHERE state <> 'deleted' AND stream_id = ANY (in_ids || array(
        SELECT n.stream_id FROM unnest(in_scopes, in_names) AS w (scope, name)
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT o.stream_id FROM weir.stream o
            WHERE o.scope = w.scope AND o.name = w.name AND o.state <> 'deleted' OFFSET 0) n))
    ORDER BY stream_id FOR NO KEY UPDATE;
END $$;
COMMENT ON FUNCTION weir.lock_streams(bigint[], text[], text[]) IS 'For jobs: the rows of streams, locked.';
