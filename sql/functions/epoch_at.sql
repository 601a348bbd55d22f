-- The last epoch created at or before a clock; the first that there is for any time before it.
CREATE FUNCTION weir.epoch_at(in_stream_id bigint, in_clock bigint) RETURNS integer
LANGUAGE sql STABLE STRICT PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    SELECT coalesce(
        (SELECT e.epoch FROM weir.epoch e
         WHERE e.stream_id = in_stream_id AND e.created_at <= in_clock
         ORDER BY e.created_at DESC LIMIT 1),
        (SELECT min(f.epoch) FROM weir.epoch f WHERE f.stream_id = in_stream_id), 0)
$$;
COMMENT ON FUNCTION weir.epoch_at(bigint, bigint) IS 'The epoch that was current at a clock.';

CREATE FUNCTION weir.epoch_at(stream text, at timestamptz) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$ SELECT weir.epoch_at(weir.stream_id(stream), weir.time_clock(at)) $$;
COMMENT ON FUNCTION weir.epoch_at(text, timestamptz) IS 'The epoch that was current at a time; the first that was not pruned for any time before it.';

CREATE FUNCTION weir.scale_metadata(stream text, "from" timestamptz, "to" timestamptz)
RETURNS TABLE (epoch integer, created_at timestamptz, cause text, splits bigint, merges bigint,
               segments jsonb)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    SELECT e.epoch, weir.clock_time(e.created_at), e.cause,
           e.splits - lag(e.splits, 1, e.splits) OVER w,
           e.merges - lag(e.merges, 1, e.merges) OVER w,
           (SELECT jsonb_object_agg(weir.segment_name(a.segment_id),
                                    jsonb_build_array(a.key_low, a.key_high) ORDER BY a.segment_id)
            FROM weir.active_segments_at(e.stream_id, e.epoch) a)
    FROM (SELECT weir.stream_id(stream) AS stream_id OFFSET 0) s
    JOIN weir.epoch e ON e.stream_id = s.stream_id
        AND e.epoch BETWEEN weir.epoch_at(s.stream_id, weir.time_clock("from"))
                    AND weir.epoch_at(s.stream_id, weir.time_clock("to"))
    WINDOW w AS (ORDER BY e.epoch)
    ORDER BY e.epoch
$$;
COMMENT ON FUNCTION weir.scale_metadata(text, timestamptz, timestamptz) IS 'The epochs between two times with their segments and ranges, and the splits and merges that made each of them (0 for the first one shown).';
