-- A stream cut as rows with the key ranges of its segments; an error names a segment that the
-- stream doesn't have.
CREATE FUNCTION weir.cut_segments(in_stream_id bigint, cut jsonb)
RETURNS TABLE (segment_id bigint, event_offset bigint, key_low double precision,
               key_high double precision, creation_epoch integer, sealed_epoch integer,
               events bigint, bytes bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 32
AS $$
#variable_conflict use_column
DECLARE
    found integer;
    missing text;
BEGIN
    RETURN QUERY
    SELECT c.segment_id, c.event_offset, s.key_low, s.key_high, s.creation_epoch, s.sealed_epoch,
           s.events, s.bytes
    FROM weir.cut_entries(cut) c
    JOIN weir.segment s ON s.stream_id = in_stream_id AND s.segment_id = c.segment_id;
    GET DIAGNOSTICS found = ROW_COUNT;
    IF found <> (SELECT count(*) FROM weir.cut_entries(cut)) THEN
        SELECT weir.segment_name(c.segment_id) INTO missing FROM weir.cut_entries(cut) c
        WHERE NOT EXISTS (SELECT FROM weir.segment s WHERE s.stream_id = in_stream_id
                          AND s.segment_id = c.segment_id)
        ORDER BY c.segment_id LIMIT 1;
        RAISE EXCEPTION 'the stream has no segment %: it never existed or was deleted; choose a cut at or after the head.', missing
            USING ERRCODE = 'WEIR2';
    END IF;
END $$;
COMMENT ON FUNCTION weir.cut_segments(bigint, jsonb) IS 'The entries of a stream cut with their segments.';
