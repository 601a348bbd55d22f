-- The join of two valid cuts: what at least one of them has passed. A listed segment is kept that
-- neither has passed; it is future where another one that is kept comes before it.
CREATE FUNCTION weir.join_cuts(in_stream_id bigint, cut jsonb, other jsonb) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    WITH entries AS MATERIALIZED (
        SELECT c.side, c.segment_id, c.event_offset, s.key_low, s.key_high
        FROM (SELECT 1 AS side, * FROM weir.cut_entries(cut)
              UNION ALL SELECT 2, * FROM weir.cut_entries(other)) c
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir.segment g
            WHERE g.stream_id = in_stream_id AND g.segment_id = c.segment_id OFFSET 0) s
    ), kept AS MATERIALIZED (
        SELECT e.segment_id, e.key_low, e.key_high, max(e.event_offset) AS event_offset
        FROM entries e
        WHERE EXISTS (SELECT FROM entries o WHERE o.side <> e.side AND o.segment_id <= e.segment_id
                      AND o.key_low < e.key_high AND o.key_high > e.key_low)
        GROUP BY e.segment_id, e.key_low, e.key_high
    )
    SELECT jsonb_object_agg(
               weir.segment_name(k.segment_id),
               CASE WHEN EXISTS (SELECT FROM kept o WHERE o.segment_id < k.segment_id
                                 AND o.key_low < k.key_high AND o.key_high > k.key_low)
                    THEN '"future"'::jsonb ELSE to_jsonb(coalesce(k.event_offset, 0)) END
               ORDER BY k.segment_id)
    FROM kept k
$$;
COMMENT ON FUNCTION weir.join_cuts(bigint, jsonb, jsonb) IS 'The cut of what at least one of two cuts has passed.';
