-- What becomes of the files that no snapshot names any more. Metadata of the table becomes garbage. A data file that is
-- garbage already is kept for a grace period from now on, because until now somebody could begin to read it.
CREATE OR REPLACE FUNCTION weir_internal.expire_published(in_stream_id bigint, in_below bigint, in_grace double precision,
                                                          in_compacted_grace double precision)
RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    WITH gone AS (
        DELETE FROM weir_internal.published_file p WHERE p.stream_id = in_stream_id AND p.until <= in_below
        RETURNING p.path, p.manifest
    ), metadata AS (
        INSERT INTO weir_internal.garbage (root, path, stream_id, reason)
        SELECT '', g.path, in_stream_id, 'expired' FROM gone g WHERE g.manifest IS NULL
        ON CONFLICT (root, path) DO NOTHING
    ), kept AS (
        UPDATE weir_internal.garbage w SET garbage_since = greatest(w.garbage_since, clock_timestamp()
            - CASE w.reason WHEN 'compacted' THEN greatest(in_compacted_grace - in_grace, 0) ELSE 0 END * interval '1 second')
        FROM gone g WHERE g.manifest IS NOT NULL AND w.root = '' AND w.path = g.path
    )
    SELECT count(*) FROM gone
$$;
COMMENT ON FUNCTION weir_internal.expire_published(bigint, bigint, double precision, double precision) IS 'Forgets the published files that only snapshots below a sequence number named, and makes garbage of metadata. Returns how many.';

CREATE OR REPLACE FUNCTION weir_internal.forget_publication(in_stream_id bigint) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    WITH files AS (
        DELETE FROM weir_internal.published_file p WHERE p.stream_id = in_stream_id RETURNING p.path, p.manifest
    ), ended AS (
        DELETE FROM weir_internal.publication p WHERE p.stream_id = in_stream_id RETURNING p.number, p.lease_until
    ), metadata AS (
        INSERT INTO weir_internal.garbage (root, path, stream_id, reason)
        SELECT '', f.path, in_stream_id, 'expired' FROM files f WHERE f.manifest IS NULL
        UNION ALL
        SELECT '', in_stream_id || '/_weir_iceberg/' || e.number || '/', in_stream_id, 'aborted' FROM ended e
        WHERE e.lease_until IS NOT NULL
        ON CONFLICT (root, path) DO NOTHING
    ), kept AS (
        UPDATE weir_internal.garbage w SET garbage_since = clock_timestamp()
        FROM files f WHERE f.manifest IS NOT NULL AND w.root = '' AND w.path = f.path AND w.reason <> 'compacted'
    )
    SELECT EXISTS (SELECT FROM ended)
$$;
COMMENT ON FUNCTION weir_internal.forget_publication(bigint) IS 'Ends the publication of a locked stream: its table is gone from the catalogue, its metadata is garbage, and its data files are only the stream''s again. Returns whether there was one.';
