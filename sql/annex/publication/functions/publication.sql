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

CREATE OR REPLACE FUNCTION weir_internal.streams_to_publish(in_names text[])
RETURNS TABLE (stream_id bigint, stream text, wanted boolean)
LANGUAGE sql STABLE ROWS 100
AS $$
    SELECT s.stream_id, s.stream_name, true FROM weir_internal.stream s
    WHERE s.state <> 'deleted' AND s.publish <> 'none' AND (in_names IS NULL OR s.stream_name = ANY (in_names))
    UNION ALL
    SELECT s.stream_id, s.stream_name, false
    FROM weir_internal.publication p JOIN weir_internal.stream s USING (stream_id)
    WHERE s.publish = 'none' AND (in_names IS NULL OR s.stream_name = ANY (in_names))
$$;
COMMENT ON FUNCTION weir_internal.streams_to_publish(text[]) IS 'The streams (null: of all) to publish, and those whose publication is to end.';

CREATE OR REPLACE FUNCTION weir_internal.snapshots_expire_below(in_stream_id bigint, in_grace double precision,
                                                                in_compacted double precision) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(max(p.until), 0) FROM weir_internal.published_file p
    LEFT JOIN weir_internal.garbage g ON g.root = '' AND g.path = p.path
    WHERE p.stream_id = in_stream_id AND p.until IS NOT NULL AND p.manifest IS NOT NULL
        AND (g.reason IS DISTINCT FROM 'compacted' OR g.garbage_since < clock_timestamp()
             - greatest(in_compacted - in_grace, 0) * interval '1 second')
$$;
COMMENT ON FUNCTION weir_internal.snapshots_expire_below(bigint, double precision, double precision) IS 'The sequence number below which snapshots must go, because they name files that a sweep is to delete: what was truncated at once, what was compacted before its time is over.';

CREATE OR REPLACE FUNCTION weir_internal.is_behind(in_stream_id bigint, in_grace double precision,
                                                   in_compacted double precision) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN p.metadata IS NULL
        THEN EXISTS (SELECT FROM weir_internal.stream_schema v WHERE v.stream_id = s.stream_id)
        ELSE p.events <> (SELECT t.events FROM weir_internal.size_till(s.stream_id, weir_internal.tail_cut(s.stream_id)) t)
            OR p.head <> s.head OR p.schema_version <> s.schema_version
            OR p.compacted < (SELECT max(c.number) FROM weir_internal.compaction c
                              WHERE c.stream_id = s.stream_id AND c.state = 'done')
            OR weir_internal.snapshots_expire_below(s.stream_id, in_grace, in_compacted) > 0 END
    FROM weir_internal.stream s LEFT JOIN weir_internal.publication p USING (stream_id)
    WHERE s.stream_id = in_stream_id
$$;
COMMENT ON FUNCTION weir_internal.is_behind(bigint, double precision, double precision) IS 'Whether the table of a stream may not be what the stream is now, or has snapshots that must go.';
