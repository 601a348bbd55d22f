-- The position in a completed segment (the end of a sealed stream) is the end of the segment, its next_offset.
CREATE OR REPLACE FUNCTION weir_internal.group_cut(in_group_id bigint, in_stream_id bigint) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT jsonb_object_agg(
               weir_internal.segment_name(p.segment_id), coalesce(to_jsonb(p.next_offset), '"future"'::jsonb)
               ORDER BY p.segment_id)
    FROM weir_internal.reader_group_segment p
    WHERE p.group_id = in_group_id AND p.stream_id = in_stream_id
$$;
COMMENT ON FUNCTION weir_internal.group_cut(bigint, bigint) IS 'The positions of a reader group in a stream, as a cut.';

-- Postgres puts the body in place of a call, so that it costs one index probe if no batch is open.
CREATE OR REPLACE FUNCTION weir_internal.held_segments(in_group_id bigint)
RETURNS TABLE (batch_id bigint, stream_id bigint, segment_id bigint)
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT DISTINCT b.batch_id, (h.bound ->> 'stream')::bigint, (h.bound ->> 'segment')::bigint
    FROM weir_internal.reader_batch b CROSS JOIN LATERAL (
        SELECT bound FROM jsonb_array_elements(b.bounds) bound
        UNION ALL
        SELECT bound FROM jsonb_array_elements(b.rest) part, jsonb_array_elements(part) bound) h
    WHERE b.group_id = in_group_id AND b.state = 'open'
$$;
COMMENT ON FUNCTION weir_internal.held_segments(bigint) IS 'The segments that the open batches of a reader group read, with those that were split off them: segments in which the group has a position, and successors into which a batch continues.';

-- The newest by creation: a checkpoint that waited may become complete after a later one.
CREATE OR REPLACE FUNCTION weir_internal.last_checkpoint(in_group_id bigint)
RETURNS TABLE (name text, created_at timestamptz, cuts jsonb)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT c.name, c.created_at, c.cuts FROM weir_internal.checkpoint c
    WHERE c.group_id = in_group_id AND c.state = 'complete'
    ORDER BY c.created_at DESC LIMIT 1
$$;
COMMENT ON FUNCTION weir_internal.last_checkpoint(bigint) IS 'The newest complete checkpoint of a reader group.';
