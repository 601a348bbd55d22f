-- The clock of the oldest event at or after a cut. From a segment that the cut has read to its end
-- the successors are looked at; from any other its first unread commit, which is its oldest.
CREATE FUNCTION weir.clock_after(in_stream_id bigint, in_cut jsonb) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    WITH RECURSIVE front AS (
        SELECT c.segment_id, coalesce(c.event_offset, 0) AS next_offset
        FROM weir.cut_entries(in_cut) c
        UNION
        SELECT n.segment_id, 0
        FROM front f
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir.segment g
            WHERE g.stream_id = in_stream_id AND g.segment_id = f.segment_id
              AND g.events <= f.next_offset OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT * FROM weir.segment g WHERE g.stream_id = in_stream_id
            AND g.segment_id >= s.sealed_epoch::bigint << 32
            AND g.segment_id < (s.sealed_epoch + 1)::bigint << 32 OFFSET 0) n
        WHERE n.key_low < s.key_high AND n.key_high > s.key_low
    )
    SELECT min(first.clock)
    FROM front f
    CROSS JOIN LATERAL (
        SELECT i.clock FROM weir.time_index i
        WHERE i.stream_id = in_stream_id AND i.segment_id = f.segment_id
          AND i.start_offset + i.events > f.next_offset
          AND i.start_offset >= coalesce((
              SELECT max(b.start_offset) FROM weir.time_index b
              WHERE b.stream_id = in_stream_id AND b.segment_id = f.segment_id
                AND b.start_offset <= f.next_offset), 0)
        ORDER BY i.start_offset LIMIT 1) first
$$;
COMMENT ON FUNCTION weir.clock_after(bigint, jsonb) IS 'The clock of the oldest event at or after a cut; null when there is none.';
