-- Bytes of a segment before an offset, from the time index; within one commit in proportion.
CREATE FUNCTION weir.bytes_till(in_stream_id bigint, in_segment_id bigint, in_offset bigint)
RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    SELECT coalesce(
        (SELECT i.start_byte
                + (i.bytes::numeric * least(in_offset - i.start_offset, i.events) / i.events)::bigint
         FROM weir.time_index i
         WHERE i.stream_id = in_stream_id AND i.segment_id = in_segment_id
           AND i.start_offset < in_offset
         ORDER BY i.start_offset DESC LIMIT 1), 0)
$$;
COMMENT ON FUNCTION weir.bytes_till(bigint, bigint, bigint) IS 'Bytes of a segment before an offset, as first committed.';
