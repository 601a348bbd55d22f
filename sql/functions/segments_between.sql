-- U(from) less U(to), and the present segments of the second. A segment is in U of a cut if the cut's
-- front at its first key is as old as it is, or older (see front). What follows the first cut was
-- created by the epochs that sealed its segments, and so on, epoch by epoch: the cost is that of the
-- answer, and nothing is compared in pairs.
CREATE FUNCTION weir.segments_between(in_stream_id bigint, "from" jsonb, "to" jsonb)
RETURNS TABLE (segment text, key_low double precision, key_high double precision,
               from_offset bigint, to_offset bigint, segment_id bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 64
AS $$
#variable_conflict use_column
DECLARE
    sid CONSTANT bigint := in_stream_id;
    a CONSTANT jsonb := coalesce("from", (SELECT head FROM weir.stream WHERE stream_id = sid));
    b CONSTANT jsonb := coalesce("to", weir.tail_cut(sid));
    a_keys double precision[];
    a_owners bigint[];
    b_keys double precision[];
    b_owners bigint[];
    ahead CONSTANT text := weir.segment_name(weir.first_behind(sid, a, b));
BEGIN
    IF ahead IS NOT NULL THEN
        RAISE EXCEPTION 'the first cut lies after the second in segment %; give the earlier cut first.', ahead
            USING ERRCODE = 'WEIR2', DETAIL = 'cuts_out_of_order';
    END IF;
    SELECT keys, owners INTO b_keys, b_owners FROM weir.front(sid, b);
    SELECT keys, owners INTO a_keys, a_owners FROM weir.front(sid, a);
    RETURN QUERY
    WITH RECURSIVE first AS MATERIALIZED (
        SELECT * FROM weir.cut_segments(sid, a)
    ), passed AS (
        SELECT f.segment_id, f.key_low, f.key_high, f.sealed_epoch, f.events FROM first f
        WHERE b_owners[width_bucket(f.key_low, b_keys)] > f.segment_id
    ), sealing AS (
        SELECT p.sealed_epoch AS epoch FROM passed p
        UNION
        SELECT n.sealed_epoch
        FROM sealing s
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir.segment g WHERE g.stream_id = sid
            AND g.segment_id >= s.epoch::bigint << 32
            AND g.segment_id < (s.epoch + 1)::bigint << 32 OFFSET 0) n
        WHERE a_owners[width_bucket(n.key_low, a_keys)] <= n.segment_id
          AND b_owners[width_bucket(n.key_low, b_keys)] > n.segment_id
    ), found AS (
        SELECT p.segment_id, p.key_low, p.key_high, p.events AS past FROM passed p
        UNION
        SELECT n.segment_id, n.key_low, n.key_high, n.events
        FROM sealing s
        CROSS JOIN LATERAL (
            SELECT * FROM weir.segment g WHERE g.stream_id = sid
            AND g.segment_id >= s.epoch::bigint << 32
            AND g.segment_id < (s.epoch + 1)::bigint << 32 OFFSET 0) n
        WHERE a_owners[width_bucket(n.key_low, a_keys)] <= n.segment_id
          AND b_owners[width_bucket(n.key_low, b_keys)] > n.segment_id
        UNION ALL
        SELECT e.segment_id, e.key_low, e.key_high, e.event_offset
        FROM weir.cut_segments(sid, b) e WHERE e.event_offset IS NOT NULL
    )
    SELECT weir.segment_name(x.segment_id), x.key_low, x.key_high, coalesce(f.event_offset, 0),
           x.past, x.segment_id
    FROM found x LEFT JOIN first f USING (segment_id)
    ORDER BY x.segment_id;
END $$;
COMMENT ON FUNCTION weir.segments_between(bigint, jsonb, jsonb) IS 'The same for a stream''s id and cuts that are known to be valid.';

CREATE FUNCTION weir.segments_between(stream text, "from" jsonb DEFAULT NULL, "to" jsonb DEFAULT NULL)
RETURNS TABLE (segment text, key_low double precision, key_high double precision,
               from_offset bigint, to_offset bigint, segment_id bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 64
AS $$
DECLARE
    sid CONSTANT bigint := weir.stream_id(stream);
BEGIN
    RETURN QUERY SELECT * FROM weir.segments_between(
        sid, weir.valid_cut(sid, "from"), weir.valid_cut(sid, "to"));
END $$;
COMMENT ON FUNCTION weir.segments_between(text, jsonb, jsonb) IS 'The segments to read from one cut (null: the head) to another (null: the tail), each with its first offset and the one to stop at.';

CREATE FUNCTION weir.span(stream text, cut jsonb)
RETURNS TABLE (segment text, epoch integer)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 32
AS $$
    SELECT weir.segment_name(c.segment_id),
           least(c.sealed_epoch - 1, max(c.creation_epoch) OVER ())
    FROM (SELECT weir.stream_id(stream) AS stream_id OFFSET 0) s
    CROSS JOIN LATERAL weir.cut_segments(s.stream_id, weir.valid_cut(s.stream_id, cut)) c
    ORDER BY c.segment_id
$$;
COMMENT ON FUNCTION weir.span(text, jsonb) IS 'Per segment of a cut the last epoch it lived in, up to the epoch of the newest of them (PDP-32).';
