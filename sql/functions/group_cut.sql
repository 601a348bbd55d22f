-- A group's positions in a stream as a cut: what it has not read yet begins there. A segment kept
-- as completed (the end of a sealed stream) stands at its end, which is its next_offset.
CREATE FUNCTION weir.group_cut(in_group_id bigint, in_stream_id bigint) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    SELECT jsonb_object_agg(
               weir.segment_name(p.segment_id), coalesce(to_jsonb(p.next_offset), '"future"'::jsonb)
               ORDER BY p.segment_id)
    FROM weir.reader_group_segment p
    WHERE p.group_id = in_group_id AND p.stream_id = in_stream_id
$$;
COMMENT ON FUNCTION weir.group_cut(bigint, bigint) IS 'The positions of a reader group in a stream, as a cut.';
