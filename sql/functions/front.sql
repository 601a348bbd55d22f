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

-- The front of a cut, with the offset up to which its owner is read at each key: 0 where it is future.
CREATE FUNCTION weir.front(in_stream_id bigint, cut jsonb)
RETURNS TABLE (keys double precision[], owners bigint[], offsets bigint[])
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 1
AS $$
    SELECT f.keys, f.owners,
           array(SELECT coalesce(c.event_offset, 0)
                 FROM unnest(f.owners) WITH ORDINALITY AS o (segment_id, place)
                 LEFT JOIN weir.cut_entries(cut) c USING (segment_id)
                 ORDER BY o.place)
    FROM (SELECT array_agg(c.segment_id) AS ids, array_agg(c.key_low) AS lows,
                 array_agg(c.key_high) AS highs
          FROM weir.cut_segments(in_stream_id, cut) c) s
    CROSS JOIN LATERAL weir.front(s.ids, s.lows, s.highs) f
$$;
COMMENT ON FUNCTION weir.front(bigint, jsonb) IS 'At every key the oldest segment of a cut, owners[width_bucket(key, keys)], and up to where it is read.';

-- What a cut has passed, in one place: of a segment that begins at a key everything, if the front is
-- newer there; what lies before the offset, if it is the front; nothing, if the front is older.
CREATE FUNCTION weir.has_passed(keys double precision[], owners bigint[], offsets bigint[],
    key_low double precision, segment_id bigint, till bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN owners[width_bucket(key_low, keys)] > segment_id
    OR owners[width_bucket(key_low, keys)] = segment_id
       AND offsets[width_bucket(key_low, keys)] >= till;
COMMENT ON FUNCTION weir.has_passed(double precision[], bigint[], bigint[], double precision, bigint, bigint) IS 'Whether a cut, given by its front, has passed a segment up to an offset.';

-- The same for all of a segment at once.
CREATE FUNCTION weir.passed_till(keys double precision[], owners bigint[], offsets bigint[],
    key_low double precision, segment_id bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN owners[width_bucket(key_low, keys)] > segment_id THEN 9223372036854775807
            WHEN owners[width_bucket(key_low, keys)] = segment_id
            THEN offsets[width_bucket(key_low, keys)] ELSE 0 END;
COMMENT ON FUNCTION weir.passed_till(double precision[], bigint[], bigint[], double precision, bigint) IS 'Up to which offset a cut, given by its front, has passed a segment; the largest number there is for all of it.';

CREATE FUNCTION weir.first_behind(in_stream_id bigint, cut jsonb, other jsonb) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    SELECT min(e.segment_id)
    FROM weir.front(in_stream_id, cut) f
    CROSS JOIN weir.cut_segments(in_stream_id, other) e
    WHERE e.event_offset IS NOT NULL
      AND weir.has_passed(f.keys, f.owners, f.offsets, e.key_low, e.segment_id, e.event_offset + 1)
$$;
COMMENT ON FUNCTION weir.first_behind(bigint, jsonb, jsonb) IS 'The first segment of the second cut of which the first has read more: why it is not at or before it; null when it is.';

CREATE FUNCTION weir.at_or_before(in_stream_id bigint, cut jsonb, other jsonb) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$ SELECT weir.first_behind(in_stream_id, cut, other) IS NULL $$;
COMMENT ON FUNCTION weir.at_or_before(bigint, jsonb, jsonb) IS 'Whether everything that the first cut has passed the second has passed too.';
