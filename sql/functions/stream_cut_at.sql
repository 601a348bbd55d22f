-- Where the tail was at a time. A commit in flight may still get an earlier clock than now: a time
-- becomes an address only when it was closed first (closed_cut_at in weir.controller.queries).
CREATE FUNCTION weir.stream_cut_at(stream text, at timestamptz) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    SELECT weir.readable_cut(s.stream_id, c.cut, s.head)
    FROM weir.stream s
    CROSS JOIN LATERAL (
        SELECT jsonb_object_agg(weir.segment_name(a.segment_id), coalesce((
                   SELECT i.start_offset + i.events FROM weir.time_index i
                   WHERE i.stream_id = s.stream_id AND i.segment_id = a.segment_id
                     AND i.clock <= weir.time_clock(at)
                   ORDER BY i.clock DESC LIMIT 1), 0) ORDER BY a.segment_id) AS cut
        FROM weir.active_segments_at(
            s.stream_id, weir.epoch_at(s.stream_id, weir.time_clock(at))) a) c
    WHERE s.stream_id = weir.stream_id(stream)
$$;
COMMENT ON FUNCTION weir.stream_cut_at(text, timestamptz) IS 'The cut that was the tail at a time, or the head where that is later: what was committed after the time begins there.';

CREATE FUNCTION weir.recorded_cut(stream text, at timestamptz)
RETURNS TABLE (recorded_at timestamptz, cut jsonb, events bigint, bytes bigint)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 1
AS $$
    SELECT c.recorded_at, c.cut, c.events, c.bytes FROM weir.stream_cut c
    WHERE c.stream_id = weir.stream_id(stream) AND c.recorded_at <= at
    ORDER BY c.recorded_at DESC LIMIT 1
$$;
COMMENT ON FUNCTION weir.recorded_cut(text, timestamptz) IS 'The newest cut of the retention set recorded at or before a time.';
