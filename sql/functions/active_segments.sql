-- PDP-32's overlay of the truncation record. In the usual case the whole head lies before the
-- segments (no segment of the head is newer than one of theirs): then only offsets are laid over.
CREATE FUNCTION weir.readable_cut(in_stream_id bigint, in_cut jsonb, in_head jsonb) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    SELECT CASE
        WHEN (SELECT max(h.segment_id) FROM weir.cut_entries(in_head) h)
             <= (SELECT min(c.segment_id) FROM weir.cut_entries(in_cut) c)
             AND NOT in_head ?| (SELECT array_agg(key) FROM jsonb_object_keys(in_cut) AS key)
        THEN in_cut
        ELSE weir.join_cuts(in_stream_id, in_cut, in_head)
    END
$$;
COMMENT ON FUNCTION weir.readable_cut(bigint, jsonb, jsonb) IS 'A cut, or the head where that is later.';

-- Of a long history most epochs lie wholly after the head: no segment of the head is as new as any of
-- theirs. Then there is nothing to lay over them, and they need not be made into a cut.
CREATE FUNCTION weir.active_segments(stream text, at timestamptz DEFAULT NULL)
RETURNS TABLE (segment text, key_low double precision, key_high double precision,
               first_offset bigint, segment_id bigint)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 16
AS $$
    WITH s AS MATERIALIZED (
        SELECT s.stream_id, s.head, weir.time_clock(at) AS clock
        FROM weir.stream s
        WHERE s.stream_id = weir.stream_id(stream)
          AND (s.sealed_clock IS NULL OR weir.time_clock(at) < s.sealed_clock)
    ), tiles AS MATERIALIZED (
        SELECT a.* FROM s
        CROSS JOIN LATERAL weir.active_segments_at(
            s.stream_id, weir.epoch_at(s.stream_id, s.clock)) a
        WHERE s.clock IS NOT NULL
        UNION ALL
        SELECT g.segment_id, g.key_low, g.key_high FROM s
        JOIN weir.segment_tail t ON t.stream_id = s.stream_id
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir.segment g WHERE g.stream_id = t.stream_id
            AND g.segment_id = t.segment_id OFFSET 0) g
        WHERE s.clock IS NULL
    ), usual AS MATERIALIZED (
        SELECT (SELECT max(split_part(key, '.', 2)::integer) FROM jsonb_object_keys(s.head) AS key)
               < (SELECT min(t.segment_id >> 32) FROM tiles t) AS so
        FROM s
    ), readable AS (
        SELECT t.segment_id, t.key_low, t.key_high, 0::bigint AS event_offset
        FROM tiles t WHERE (SELECT so FROM usual)
        UNION ALL
        SELECT c.segment_id, g.key_low, g.key_high, c.event_offset
        FROM s
        CROSS JOIN LATERAL weir.cut_entries(weir.join_cuts(s.stream_id,
            (SELECT jsonb_object_agg(weir.segment_name(t.segment_id), 0) FROM tiles t), s.head)) c
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir.segment g WHERE g.stream_id = s.stream_id
            AND g.segment_id = c.segment_id OFFSET 0) g
        WHERE NOT (SELECT so FROM usual)
    )
    SELECT weir.segment_name(r.segment_id), r.key_low, r.key_high, r.event_offset, r.segment_id
    FROM readable r
    ORDER BY r.key_low, r.segment_id
$$;
COMMENT ON FUNCTION weir.active_segments(text, timestamptz) IS 'The segments that were active at a time (null: now), each with the first offset that can still be read; where all of one is below the head, what follows it there. first_offset is null where a predecessor must be read first. None for a sealed stream.';
