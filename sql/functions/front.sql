-- The front of a cut (weir.stream_cut): at every key the oldest of its segments. As arrays, so that
-- it can be asked again and again: the owner at a key is owners[width_bucket(key, keys)], a search by
-- halves. Where there is none it is the largest number there is, not null: an array without nulls is
-- read at once.
CREATE FUNCTION weir.front(segment_ids bigint[], key_lows double precision[], key_highs double precision[])
RETURNS TABLE (keys double precision[], owners bigint[])
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1
AS $$
    WITH border AS (
        SELECT b.segment_id, b.key, dense_rank() OVER (ORDER BY b.key) AS place
        FROM (SELECT s.segment_id, v.key
              FROM unnest(segment_ids, key_lows, key_highs) AS s (segment_id, key_low, key_high)
              CROSS JOIN LATERAL (VALUES (s.key_low), (s.key_high)) v (key)
              UNION ALL SELECT NULL, 0.0) b
    ), spread AS (
        SELECT b.segment_id, min(b.place) AS first, max(b.place) AS past
        FROM border b WHERE b.segment_id IS NOT NULL GROUP BY b.segment_id
    ), place AS (
        SELECT b.place, b.key, NULL::bigint AS owner FROM border b
        UNION ALL
        SELECT p.place, NULL, s.segment_id
        FROM spread s CROSS JOIN LATERAL generate_series(s.first, s.past - 1) AS p (place)
    ), front AS (
        SELECT p.place, max(p.key) AS key, coalesce(min(p.owner), 9223372036854775807) AS owner
        FROM place p GROUP BY p.place
    )
    SELECT array_agg(f.key ORDER BY f.place), array_agg(f.owner ORDER BY f.place) FROM front f
$$;
COMMENT ON FUNCTION weir.front(bigint[], double precision[], double precision[]) IS 'At every key the oldest of some segments: owners[width_bucket(key, keys)].';

CREATE FUNCTION weir.front(in_stream_id bigint, cut jsonb)
RETURNS TABLE (keys double precision[], owners bigint[])
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 1
AS $$
    SELECT f.keys, f.owners
    FROM (SELECT array_agg(c.segment_id) AS ids, array_agg(c.key_low) AS lows,
                 array_agg(c.key_high) AS highs
          FROM weir.cut_segments(in_stream_id, cut) c) s
    CROSS JOIN LATERAL weir.front(s.ids, s.lows, s.highs) f
$$;
COMMENT ON FUNCTION weir.front(bigint, jsonb) IS 'At every key the oldest segment of a cut: owners[width_bucket(key, keys)].';
