-- The join of two valid cuts: what at least one of them has passed. At every key it is the newer of
-- their fronts (see front); a segment that is the front over a part of its range only is future. Every
-- step groups or sorts, and none compares segments in pairs: two cuts of thousands take no square.
-- Two cuts of the same segments, as most are, have the same front: then only offsets differ.
CREATE FUNCTION weir.join_cuts(in_stream_id bigint, cut jsonb, other jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
DECLARE
    same boolean;
    furthest jsonb;
BEGIN
    SELECT bool_and(a.value IS NOT NULL AND b.value IS NOT NULL),
           jsonb_object_agg(key, greatest(a.value, b.value))
    INTO same, furthest
    FROM jsonb_each(join_cuts.cut) a FULL JOIN jsonb_each(join_cuts.other) b USING (key);
    IF same THEN
        RETURN furthest;
    END IF;
    RETURN (
        WITH border AS (
            SELECT c.side, c.segment_id, c.event_offset, dense_rank() OVER (ORDER BY v.key) AS place
            FROM (SELECT 1 AS side, * FROM weir.cut_entries(cut)
                  UNION ALL SELECT 2, * FROM weir.cut_entries(other)) c
            CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
                SELECT * FROM weir.segment g
                WHERE g.stream_id = in_stream_id AND g.segment_id = c.segment_id OFFSET 0) s
            CROSS JOIN LATERAL (VALUES (s.key_low), (s.key_high)) v (key)
        ), entry AS MATERIALIZED (
            SELECT b.side, b.segment_id, max(b.event_offset) AS event_offset,
                   min(b.place) AS first, max(b.place) AS past
            FROM border b GROUP BY b.side, b.segment_id
        ), front AS (
            SELECT e.side, p.place, min(e.segment_id) AS segment_id
            FROM entry e CROSS JOIN LATERAL generate_series(e.first, e.past - 1) p (place)
            GROUP BY e.side, p.place
        ), newer AS (
            SELECT f.place, max(f.segment_id) AS segment_id FROM front f GROUP BY f.place
        ), kept AS (
            SELECT k.segment_id, max(k.event_offset) AS event_offset,
                   count(k.place) = max(k.places) AS whole
            FROM (SELECT n.segment_id, NULL::bigint AS event_offset, NULL::bigint AS places, n.place
                  FROM newer n
                  UNION ALL
                  SELECT e.segment_id, e.event_offset, e.past - e.first, NULL FROM entry e) k
            GROUP BY k.segment_id HAVING count(k.place) > 0
        )
        SELECT jsonb_object_agg(
                   weir.segment_name(k.segment_id),
                   CASE WHEN k.whole THEN to_jsonb(coalesce(k.event_offset, 0))
                        ELSE '"future"'::jsonb END ORDER BY k.segment_id)
        FROM kept k);
END $$;
COMMENT ON FUNCTION weir.join_cuts(bigint, jsonb, jsonb) IS 'The cut of what at least one of two cuts has passed.';
