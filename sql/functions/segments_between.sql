-- U(from) less U(to), found from the first cut on, successor by successor, and the present segments
-- of the second: the cost is that of the answer.
CREATE FUNCTION weir.segments_between(stream text, "from" jsonb DEFAULT NULL, "to" jsonb DEFAULT NULL)
RETURNS TABLE (segment text, key_low double precision, key_high double precision,
               from_offset bigint, to_offset bigint, segment_id bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 64
AS $$
#variable_conflict use_column
DECLARE
    sid CONSTANT bigint := weir.stream_id(stream);
    a CONSTANT jsonb := coalesce("from", (SELECT head FROM weir.stream WHERE stream_id = sid));
    b CONSTANT jsonb := coalesce("to", weir.tail_cut(sid));
    ahead text;
BEGIN
    SELECT weir.segment_name(e.segment_id) INTO ahead
    FROM weir.cut_segments(sid, b) e
    WHERE e.event_offset IS NOT NULL AND NOT EXISTS (
        SELECT FROM weir.cut_segments(sid, a) o
        WHERE o.segment_id <= e.segment_id AND o.key_low < e.key_high AND o.key_high > e.key_low
          AND (o.segment_id < e.segment_id OR coalesce(o.event_offset, 0) <= e.event_offset))
    ORDER BY e.segment_id LIMIT 1;
    IF ahead IS NOT NULL THEN
        RAISE EXCEPTION 'the first cut lies after the second in segment %; give the earlier cut first.', ahead
            USING ERRCODE = 'WEIR2';
    END IF;
    RETURN QUERY
    WITH RECURSIVE first AS MATERIALIZED (
        SELECT * FROM weir.cut_segments(sid, a)
    ), second AS MATERIALIZED (
        SELECT * FROM weir.cut_segments(sid, b)
    ), walk AS (
        SELECT f.segment_id, f.key_low, f.key_high, f.sealed_epoch, f.events FROM first f
        WHERE NOT EXISTS (SELECT FROM second e WHERE e.segment_id <= f.segment_id
                          AND e.key_low < f.key_high AND e.key_high > f.key_low)
        UNION
        SELECT n.segment_id, n.key_low, n.key_high, n.sealed_epoch, n.events
        FROM walk w
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir.segment g WHERE g.stream_id = sid
            AND g.segment_id >= w.sealed_epoch::bigint << 32
            AND g.segment_id < (w.sealed_epoch + 1)::bigint << 32 OFFSET 0) n
        WHERE n.key_low < w.key_high AND n.key_high > w.key_low
          AND NOT EXISTS (SELECT FROM second e WHERE e.segment_id <= n.segment_id
                          AND e.key_low < n.key_high AND e.key_high > n.key_low)
    ), found AS (
        SELECT w.segment_id, w.key_low, w.key_high, w.events AS past FROM walk w
        UNION ALL
        SELECT e.segment_id, e.key_low, e.key_high, e.event_offset FROM second e
        WHERE e.event_offset IS NOT NULL
    )
    SELECT weir.segment_name(x.segment_id), x.key_low, x.key_high, coalesce(f.event_offset, 0),
           x.past, x.segment_id
    FROM found x LEFT JOIN first f USING (segment_id)
    ORDER BY x.segment_id;
END $$;
COMMENT ON FUNCTION weir.segments_between(text, jsonb, jsonb) IS 'The segments to read from one cut (null: the head) to another (null: the tail), each with its first offset and the one to stop at.';

CREATE FUNCTION weir.span(stream text, cut jsonb)
RETURNS TABLE (segment text, epoch integer)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 32
AS $$
    SELECT weir.segment_name(c.segment_id),
           least(c.sealed_epoch - 1, max(c.creation_epoch) OVER ())
    FROM weir.cut_segments(weir.stream_id(stream), cut) c
    ORDER BY c.segment_id
$$;
COMMENT ON FUNCTION weir.span(text, jsonb) IS 'Per segment of a cut the last epoch it lived in, up to the epoch of the newest of them (PDP-32).';
