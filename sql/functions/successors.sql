-- Whatever overlaps a sealed segment in the epoch that sealed it was created there, and its
-- predecessors are what that epoch sealed: two index ranges, whatever the history.
CREATE FUNCTION weir.successors(stream text, segment text)
RETURNS TABLE (successor text, key_low double precision, key_high double precision,
               predecessors text[])
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 4
AS $$
    SELECT weir.segment_name(n.segment_id), n.key_low, n.key_high,
           array(SELECT weir.segment_name(p.segment_id) FROM weir.segment p
                 WHERE p.stream_id = s.stream_id AND p.sealed_epoch = s.sealed_epoch
                   AND p.key_low < n.key_high AND p.key_high > n.key_low
                 ORDER BY p.segment_id)
    FROM weir.segment_of(weir.stream_id(stream), segment) s
    CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
        SELECT * FROM weir.segment g WHERE g.stream_id = s.stream_id
        AND g.segment_id >= s.sealed_epoch::bigint << 32
        AND g.segment_id < (s.sealed_epoch + 1)::bigint << 32 OFFSET 0) n
    WHERE n.key_low < s.key_high AND n.key_high > s.key_low
    ORDER BY n.segment_id
$$;
COMMENT ON FUNCTION weir.successors(text, text) IS 'The segments that follow a segment over its keys, each with all its predecessors. None while it is active.';

CREATE FUNCTION weir.predecessors(stream text, segment text)
RETURNS TABLE (predecessor text, key_low double precision, key_high double precision,
               successors text[])
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 4
AS $$
    SELECT weir.segment_name(p.segment_id), p.key_low, p.key_high,
           array(SELECT weir.segment_name(n.segment_id) FROM (
                     SELECT * FROM weir.segment g WHERE g.stream_id = s.stream_id
                     AND g.segment_id >= s.creation_epoch::bigint << 32
                     AND g.segment_id < (s.creation_epoch + 1)::bigint << 32 OFFSET 0) n
                 WHERE n.key_low < p.key_high AND n.key_high > p.key_low
                 ORDER BY n.segment_id)
    FROM weir.segment_of(weir.stream_id(stream), segment) s
    JOIN weir.segment p ON p.stream_id = s.stream_id AND p.sealed_epoch = s.creation_epoch
        AND p.key_low < s.key_high AND p.key_high > s.key_low
    ORDER BY p.segment_id
$$;
COMMENT ON FUNCTION weir.predecessors(text, text) IS 'The segments that a segment follows, each with all its successors. None for those of epoch 0.';
