-- The segments of an epoch, by walking the tiling: from key 0, the newest segment created by then
-- that starts there, then on at its end. One index probe per segment, whatever the history.
CREATE FUNCTION weir.active_segments_at(in_stream_id bigint, in_epoch integer)
RETURNS TABLE (segment_id bigint, key_low double precision, key_high double precision)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 16
AS $$
    WITH RECURSIVE walk AS (
        (SELECT s.segment_id, s.key_low, s.key_high, s.sealed_epoch
         FROM weir.segment s
         WHERE s.stream_id = in_stream_id AND s.key_low = 0 AND s.creation_epoch <= in_epoch
         ORDER BY s.creation_epoch DESC LIMIT 1)
        UNION ALL
        SELECT s.segment_id, s.key_low, s.key_high, s.sealed_epoch
        FROM walk w CROSS JOIN LATERAL (
            SELECT n.segment_id, n.key_low, n.key_high, n.sealed_epoch
            FROM weir.segment n
            WHERE n.stream_id = in_stream_id AND n.key_low = w.key_high
              AND n.creation_epoch <= in_epoch
            ORDER BY n.creation_epoch DESC LIMIT 1) s
        WHERE w.key_high < 1
    )
    SELECT w.segment_id, w.key_low, w.key_high FROM walk w
    WHERE w.sealed_epoch IS NULL OR w.sealed_epoch > in_epoch
$$;
COMMENT ON FUNCTION weir.active_segments_at(bigint, integer) IS 'The segments that tile [0, 1) in an epoch (PDP-32).';
