-- In the body of a query like a view, so that a group without an open batch costs one look.
CREATE FUNCTION weir.held_segments(in_group_id bigint)
RETURNS TABLE (batch_id bigint, stream_id bigint, segment_id bigint)
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT DISTINCT b.batch_id, (h.bound ->> 'stream')::bigint, (h.bound ->> 'segment')::bigint
    FROM weir.reader_batch b CROSS JOIN LATERAL (
        SELECT bound FROM jsonb_array_elements(b.bounds) bound
        UNION ALL
        SELECT bound FROM jsonb_array_elements(b.rest) part, jsonb_array_elements(part) bound) h
    WHERE b.group_id = in_group_id AND b.state = 'open'
$$;
COMMENT ON FUNCTION weir.held_segments(bigint) IS 'The segments that the open batches of a reader group read, and what was split off them: those it stands in, and successors that they run on into.';
