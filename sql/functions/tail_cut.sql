-- Where the next event of every active segment goes.
CREATE FUNCTION weir.tail_cut(in_stream_id bigint) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    SELECT jsonb_object_agg(weir.segment_name(t.segment_id), t.tail_offset ORDER BY t.segment_id)
    FROM weir.segment_tail t WHERE t.stream_id = in_stream_id
$$;
COMMENT ON FUNCTION weir.tail_cut(bigint) IS 'The tail of a stream as a cut.';
