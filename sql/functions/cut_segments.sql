-- A stream cut as rows with the key ranges of its segments; an error names what is no entry of a cut,
-- or a segment that the stream doesn't have. (OFFSET 0: an index probe per entry, whatever Postgres
-- believes of the average stream; else it may read all segments of a long history.)
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
    wrong text;
BEGIN
    IF jsonb_typeof(cut) <> 'object' OR cut = '{}' THEN
        RAISE EXCEPTION '% is no stream cut: list the segments to read next, such as {"0.0": 12, "5.1": "future"}.', cut
            USING ERRCODE = 'WEIR2', DETAIL = 'cut_invalid';
    END IF;
    SELECT entry.key || ': ' || entry.value INTO wrong FROM jsonb_each(cut) entry
    WHERE weir.segment_id(entry.key) IS NULL
       OR entry.value <> '"future"' AND entry.value::text !~ '\A[0-9]{1,18}\Z'
    LIMIT 1;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'the stream cut has %: write a segment as number.epoch, such as 5.1, and its offset as a whole number, 0 or more, or "future".', wrong
            USING ERRCODE = 'WEIR2', DETAIL = 'cut_invalid';
    END IF;
    RETURN QUERY
    SELECT c.segment_id, c.event_offset, s.key_low, s.key_high, s.creation_epoch, s.sealed_epoch,
           s.events, s.bytes
    FROM weir.cut_entries(cut) c
    CROSS JOIN LATERAL (
        SELECT * FROM weir.segment g
        WHERE g.stream_id = in_stream_id AND g.segment_id = c.segment_id OFFSET 0) s;
    GET DIAGNOSTICS found = ROW_COUNT;
    IF found <> (SELECT count(*) FROM weir.cut_entries(cut)) THEN
        SELECT weir.segment_name(c.segment_id) INTO missing FROM weir.cut_entries(cut) c
        WHERE NOT EXISTS (SELECT FROM weir.segment s WHERE s.stream_id = in_stream_id
                          AND s.segment_id = c.segment_id)
        ORDER BY c.segment_id LIMIT 1;
        RAISE EXCEPTION 'the stream has no segment %: it never existed or was deleted; choose a cut at or after the head.', missing
            USING ERRCODE = 'WEIR2', DETAIL = 'cut_segment_unknown';
    END IF;
END $$;
COMMENT ON FUNCTION weir.cut_segments(bigint, jsonb) IS 'The entries of a stream cut with their segments.';
