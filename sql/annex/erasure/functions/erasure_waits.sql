-- What still keeps files with erased events: of the streams that a request has searched, and what is no stream's (files of
-- deleted streams and stores, and attempts at Parquet outputs). With the rights of the caller, who may ask for streams that
-- are hidden from them.
CREATE OR REPLACE FUNCTION weir_internal.erasure_waits(in_streams bigint[], in_grace double precision)
RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp ROWS 2
AS $$
    WITH kept AS (
        SELECT g.stream_id, g.root, g.path, g.garbage_since, s.stream_name
        FROM weir_internal.garbage g LEFT JOIN weir_internal.stream s USING (stream_id)
        WHERE g.reason = 'erased' AND (g.stream_id = ANY (in_streams) OR g.stream_id IS NULL)
    ), reasons AS (
        SELECT k.path, 'batch ' || b.batch_id || ' of ' || b.reader_group AS reason
        FROM kept k JOIN weir_internal.batches_protecting_files(in_grace) b
            ON b.stream_id = k.stream_id AND b.opened_at <= k.garbage_since
        UNION ALL
        SELECT k.path, 'a snapshot of the table of stream ' || k.stream_name
        FROM kept k JOIN weir_internal.published_file p ON p.stream_id = k.stream_id AND p.path = k.path
    )
    SELECT DISTINCT coalesce(r.reason, CASE WHEN k.stream_id IS NOT NULL THEN 'the deletion of files of stream ' || k.stream_name
        WHEN k.root = '' THEN 'the deletion of files of deleted streams and stores'
        ELSE 'the deletion of files below ' || k.root END)
    FROM kept k LEFT JOIN reasons r USING (path) ORDER BY 1
$$;
COMMENT ON FUNCTION weir_internal.erasure_waits(bigint[], double precision) IS 'What files of streams with erased events wait for until they are deleted: open batches (protecting them so many seconds longer than their lease), snapshots of tables, or else a sweep.';

CREATE OR REPLACE FUNCTION weir_internal.certificates_to_sign() RETURNS TABLE (request_id text, streams bigint[])
LANGUAGE sql STABLE ROWS 10
AS $$
    SELECT r.request_id, ARRAY(SELECT (o ->> 'stream_id')::bigint FROM jsonb_array_elements(r.searched) o)
    FROM weir_internal.erasure_request r
    WHERE r.certificate IS NULL AND r.done_at IS NOT NULL ORDER BY r.done_at
$$;
COMMENT ON FUNCTION weir_internal.certificates_to_sign() IS 'The requests that are done and have no certificate yet, with the streams they searched.';
