-- What a decision of retention rests on, as functions: planned once per session, and asked for by
-- the run and by people alike. The rules are in weir.retention.decision.

-- Whether everything that the first cut has passed the second has passed too.
CREATE FUNCTION weir.at_or_before(in_stream_id bigint, cut jsonb, other jsonb) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    WITH mine AS MATERIALIZED (
        SELECT * FROM weir.cut_segments(in_stream_id, cut)
    )
    SELECT NOT EXISTS (
        SELECT FROM weir.cut_segments(in_stream_id, other) e
        WHERE e.event_offset IS NOT NULL AND NOT EXISTS (
            SELECT FROM mine m
            WHERE m.segment_id <= e.segment_id AND m.key_low < e.key_high AND m.key_high > e.key_low
              AND (m.segment_id < e.segment_id OR coalesce(m.event_offset, 0) <= e.event_offset)))
$$;
COMMENT ON FUNCTION weir.at_or_before(bigint, jsonb, jsonb) IS 'Whether one cut lies at or before another.';

-- Semantics 11.4. Where a minimum is not set it counts as 0; ties go to the first.
CREATE FUNCTION weir.retention_limits(in_stream_id bigint, in_now timestamptz, in_bytes bigint)
RETURNS TABLE (which text, recorded_at timestamptz, cut jsonb, bytes bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 5
AS $$
#variable_conflict use_column
DECLARE
    p weir.stream;
    old_enough timestamptz;
    big_enough bigint;
BEGIN
    SELECT * INTO p FROM weir.stream s WHERE s.stream_id = in_stream_id;
    old_enough := in_now - coalesce(p.retain_min_age, 0) * interval '1 second';
    big_enough := in_bytes - coalesce(p.retain_min_bytes, 0);
    IF p.retain_min_age IS NOT NULL THEN
        RETURN QUERY SELECT 'min_age', c.recorded_at, c.cut, c.bytes FROM weir.stream_cut c
        WHERE c.stream_id = in_stream_id AND c.recorded_at <= old_enough
        ORDER BY c.recorded_at DESC LIMIT 1;
    END IF;
    IF p.retain_min_bytes IS NOT NULL THEN
        RETURN QUERY SELECT 'min_bytes', c.recorded_at, c.cut, c.bytes FROM weir.stream_cut c
        WHERE c.stream_id = in_stream_id AND c.bytes <= big_enough
        ORDER BY c.bytes DESC, c.recorded_at LIMIT 1;
    END IF;
    IF p.retain_max_age IS NOT NULL THEN
        RETURN QUERY SELECT 'past_max_age', c.recorded_at, c.cut, c.bytes FROM weir.stream_cut c
        WHERE c.stream_id = in_stream_id
          AND c.recorded_at <= in_now - p.retain_max_age * interval '1 second'
        ORDER BY c.recorded_at DESC LIMIT 1;
        RETURN QUERY SELECT 'within_max_age', c.recorded_at, c.cut, c.bytes FROM weir.stream_cut c
        WHERE c.stream_id = in_stream_id
          AND c.recorded_at >= in_now - p.retain_max_age * interval '1 second'
          AND c.recorded_at <= old_enough
        ORDER BY c.recorded_at LIMIT 1;
        IF NOT FOUND THEN
            RETURN QUERY SELECT 'within_max_age', c.recorded_at, c.cut, c.bytes
            FROM weir.stream_cut c
            WHERE c.stream_id = in_stream_id AND c.recorded_at <= old_enough
            ORDER BY c.recorded_at DESC LIMIT 1;
        END IF;
    END IF;
    IF p.retain_max_bytes IS NOT NULL THEN
        RETURN QUERY SELECT 'within_max_bytes', c.recorded_at, c.cut, c.bytes
        FROM weir.stream_cut c
        WHERE c.stream_id = in_stream_id AND c.bytes >= in_bytes - p.retain_max_bytes
          AND c.bytes <= big_enough
        ORDER BY c.bytes, c.recorded_at LIMIT 1;
        IF NOT FOUND THEN
            RETURN QUERY SELECT 'within_max_bytes', c.recorded_at, c.cut, c.bytes
            FROM weir.stream_cut c
            WHERE c.stream_id = in_stream_id AND c.bytes <= big_enough
            ORDER BY c.bytes DESC, c.recorded_at LIMIT 1;
        END IF;
    END IF;
END $$;
COMMENT ON FUNCTION weir.retention_limits(bigint, timestamptz, bigint) IS 'The recorded cuts that stand for the limits of a stream''s retention at a time and a size of the stream: min_age and min_bytes may not be passed; what past_max_age has passed is too old, and within_max_age and within_max_bytes are where a maximum truncates.';

-- A subscriber with something unread has this long from the last activity of its readers, or from
-- when there was first something to read, whichever is later. Readers at work are activity.
CREATE FUNCTION weir.times_out_at(in_group_id bigint, in_stream_id bigint) RETURNS timestamptz
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
DECLARE
    g weir.reader_group;
    unread bigint;
BEGIN
    SELECT * INTO g FROM weir.reader_group r WHERE r.group_id = in_group_id;
    IF g.time_out IS NULL OR NOT g.subscriber OR EXISTS (
        SELECT FROM weir.reader_batch b JOIN weir.reader r USING (group_id, reader_id)
        WHERE b.group_id = in_group_id AND b.state = 'open' AND r.token = b.token
          AND r.lease_until > clock_timestamp())
    THEN
        RETURN NULL;
    END IF;
    unread := weir.clock_after(in_stream_id, weir.readable_cut(in_stream_id,
        weir.group_cut(in_group_id, in_stream_id),
        (SELECT s.head FROM weir.stream s WHERE s.stream_id = in_stream_id)));
    RETURN CASE WHEN unread IS NOT NULL
        THEN greatest(g.moved_at, weir.clock_time(unread)) + g.time_out * interval '1 second' END;
END $$;
COMMENT ON FUNCTION weir.times_out_at(bigint, bigint) IS 'When a subscriber holds nothing of a stream back any more; null: not while nothing is unread, its readers are at work, or it has no time-out.';

-- All that a decision about one locked stream rests on, and when time alone will change it.
CREATE FUNCTION weir.retention_inputs(in_stream_id bigint)
RETURNS TABLE (now timestamptz, tail_events bigint, tail_bytes bigint, head_events bigint,
               head_bytes bigint, subscribers jsonb, limits jsonb, next_at timestamptz)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 1
AS $$
#variable_conflict use_column
BEGIN
    now := clock_timestamp();
    SELECT z.events, z.bytes INTO tail_events, tail_bytes
    FROM weir.size_till(in_stream_id, weir.tail_cut(in_stream_id)) z;
    SELECT z.events, z.bytes INTO head_events, head_bytes
    FROM weir.stream s CROSS JOIN LATERAL weir.size_till(s.stream_id, s.head) z
    WHERE s.stream_id = in_stream_id;
    SELECT coalesce(jsonb_agg(jsonb_build_object('name', g.name, 'cut', gs.published_cut,
               'timed_out', coalesce(t.at <= now, false)) ORDER BY g.name), '[]'),
           min(t.at) FILTER (WHERE t.at > now)
    INTO subscribers, next_at
    FROM weir.reader_group_stream gs
    JOIN weir.reader_group g USING (group_id)
    CROSS JOIN LATERAL (SELECT weir.times_out_at(g.group_id, gs.stream_id) AS at) t
    WHERE gs.stream_id = in_stream_id AND g.subscriber;
    SELECT coalesce(jsonb_object_agg(l.which, jsonb_build_object(
               'recorded_at', extract(epoch FROM l.recorded_at), 'cut', l.cut, 'bytes', l.bytes)),
           '{}')
    INTO limits FROM weir.retention_limits(in_stream_id, now, tail_bytes) l;
    -- The next record that comes of an age.
    next_at := least(next_at, (
        SELECT min(n.at) FROM weir.stream s
        CROSS JOIN LATERAL unnest(ARRAY[s.retain_min_age, s.retain_max_age]) AS a (age)
        CROSS JOIN LATERAL (
            SELECT c.recorded_at + a.age * interval '1 second' AS at FROM weir.stream_cut c
            WHERE c.stream_id = s.stream_id
              AND c.recorded_at > now - a.age * interval '1 second'
            ORDER BY c.recorded_at LIMIT 1) n
        WHERE s.stream_id = in_stream_id AND a.age IS NOT NULL));
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION weir.retention_inputs(bigint) IS 'For jobs: what a decision of retention rests on.';
