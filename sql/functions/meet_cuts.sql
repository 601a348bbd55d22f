-- The lower bound of valid cuts: what all of them have passed. Its front is that of all their segments
-- together; one that is the front over a part of its range only is future.
CREATE FUNCTION weir.meet_cuts(in_stream_id bigint, cuts jsonb[]) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    WITH entry AS MATERIALIZED (
        SELECT c.segment_id, min(c.event_offset) AS event_offset, s.key_low, s.key_high
        FROM unnest(cuts) AS u (cut)
        CROSS JOIN LATERAL weir.cut_entries(u.cut) c
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir.segment g
            WHERE g.stream_id = in_stream_id AND g.segment_id = c.segment_id OFFSET 0) s
        GROUP BY c.segment_id, s.key_low, s.key_high
    ), front AS MATERIALIZED (
        SELECT f.keys, f.owners
        FROM (SELECT array_agg(e.segment_id) AS ids, array_agg(e.key_low) AS lows,
                     array_agg(e.key_high) AS highs FROM entry e) a
        CROSS JOIN LATERAL weir.front(a.ids, a.lows, a.highs) f
    ), owner AS (
        SELECT o.segment_id, count(*) AS places
        FROM front f CROSS JOIN LATERAL unnest(f.owners) AS o (segment_id) GROUP BY o.segment_id
    )
    SELECT jsonb_object_agg(
               weir.segment_name(e.segment_id),
               CASE WHEN o.places = width_bucket(e.key_high, f.keys) - width_bucket(e.key_low, f.keys)
                    THEN to_jsonb(e.event_offset) ELSE '"future"'::jsonb END
               ORDER BY e.segment_id)
    FROM entry e JOIN owner o USING (segment_id) CROSS JOIN front f
$$;
COMMENT ON FUNCTION weir.meet_cuts(bigint, jsonb[]) IS 'The cut of what all of several cuts have passed.';
