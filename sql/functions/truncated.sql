-- What is gone (semantics 10). The time index is pruned below the head, so it can't say how many events of a time are
-- gone. Transactions are kept as long as the stream: what was committed after a time, without what can still be read
-- of it, was truncated. A stream of which nothing was truncated after the time is not counted.
CREATE OR REPLACE FUNCTION weir_internal.truncated_after(in_stream_id bigint, in_clock bigint) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- No event has a clock beyond these, and Postgres no time.
    at CONSTANT bigint := greatest(least(in_clock, 200000000000000000), -60000000000000000);
    s weir_internal.stream;
    here jsonb;
    later bigint;
BEGIN
    SELECT * INTO s FROM weir_internal.stream o WHERE o.stream_id = in_stream_id;
    IF EXISTS (SELECT FROM weir_internal.epoch e WHERE e.stream_id = in_stream_id AND e.created_at <= at) THEN
        SELECT jsonb_object_agg(weir_internal.segment_name(a.segment_id), coalesce((
                   SELECT i.start_offset + i.events
                   FROM weir_internal.commit_by(in_stream_id, a.segment_id, at) i), 0))
        INTO here FROM weir_internal.active_segments_at(
            in_stream_id, weir_internal.epoch_at(in_stream_id, at)) a;
        IF weir_internal.at_or_before(in_stream_id, s.head, here) THEN
            RETURN 0;
        END IF;
    END IF;
    SELECT coalesce(sum(t.events), 0) INTO later FROM weir_internal.transaction t
    WHERE t.stream_name = s.stream_name AND t.stream_id = in_stream_id AND t.state = 'committed'
      AND t.clock > at
      -- As in the index, which has no clock; a microsecond earlier, as it computes with intervals.
      AND ('epoch'::timestamp + t.clock * interval '1 microsecond') AT TIME ZONE 'UTC'
          >= weir_internal.clock_time(at - 1);
    RETURN greatest(0, later - (
        SELECT b.events - a.events FROM weir_internal.size_till(in_stream_id, weir_internal.tail_cut(in_stream_id)) b
        CROSS JOIN weir_internal.size_till(in_stream_id, weir.stream_cut_at(s.stream_name, weir_internal.clock_time(at))) a));
END $$;
COMMENT ON FUNCTION weir_internal.truncated_after(bigint, bigint) IS 'How many events of a stream that were committed after a clock are truncated.';

CREATE OR REPLACE FUNCTION weir_internal.truncation_of(in_stream_id bigint, in_number bigint)
RETURNS TABLE (truncated_at timestamptz, rule text, reason text)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT t.truncated_at, t.rule, t.reason FROM (
        SELECT * FROM weir_internal.truncation o
        WHERE o.stream_id = in_stream_id AND o.events_until >= in_number ORDER BY o.events_until LIMIT 1) t
    WHERE t.events_until - t.events < in_number;
END $$;
COMMENT ON FUNCTION weir_internal.truncation_of(bigint, bigint) IS 'When and why the event of a number was truncated, counted from the first event that was truncated; nothing if that is not recorded any more.';

CREATE OR REPLACE FUNCTION weir_internal.truncated_from(in_stream_id bigint, in_cut jsonb) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT b.events - a.events FROM weir_internal.stream s
    CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, in_cut) a
    CROSS JOIN LATERAL weir_internal.size_till(
        s.stream_id, weir_internal.join_cuts(s.stream_id, in_cut, s.head)) b
    WHERE s.stream_id = in_stream_id;
$$;
COMMENT ON FUNCTION weir_internal.truncated_from(bigint, jsonb) IS 'How many events of a stream after a cut are truncated.';

CREATE OR REPLACE FUNCTION weir_internal.truncated_part(in_stream_id bigint, after_start bigint, after_end bigint)
RETURNS TABLE (events bigint, truncated_at timestamptz, rule text, reason text)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT f.events, t.truncated_at, t.rule, t.reason
    FROM weir_internal.stream s
    CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, s.head) z
    CROSS JOIN LATERAL (SELECT greatest(0, coalesce(after_start, z.events) - after_end) AS events) f
    LEFT JOIN LATERAL weir_internal.truncation_of(s.stream_id, z.events - after_end) t ON f.events > 0
    WHERE s.stream_id = in_stream_id;
$$;
COMMENT ON FUNCTION weir_internal.truncated_part(bigint, bigint, bigint) IS 'How many events between two points of a stream are truncated, and when and why the last of them was. Given is how many truncated events lie after each point; null: all.';

CREATE OR REPLACE FUNCTION weir.truncated_between(stream text, since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL)
RETURNS TABLE (events bigint, truncated_at timestamptz, rule text, reason text)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
DECLARE
    sid CONSTANT bigint := weir_internal.stream_id(stream);
    later bigint := 0;
    found bigint;
BEGIN
    IF EXISTS (SELECT FROM weir_internal.stream s CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, s.head) z
               WHERE s.stream_id = sid AND z.events > 0) THEN
        IF until IS NOT NULL THEN
            later := weir_internal.truncated_after(sid, weir_internal.time_clock(until));
        END IF;
        IF since IS NOT NULL THEN
            found := weir_internal.truncated_after(sid, weir_internal.time_clock(since));
        END IF;
    ELSE
        found := 0;
    END IF;
    RETURN QUERY SELECT * FROM weir_internal.truncated_part(sid, found, later);
END $$;
COMMENT ON FUNCTION weir.truncated_between(text, timestamptz, timestamptz) IS 'How many events of a stream that were committed after a time (null: from the beginning) and up to another (null: up to now) are truncated, so that no read returns them; and when and why the last of them was truncated (null if that is not recorded any more).';
