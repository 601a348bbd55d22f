-- Returns what a writer states as a time. The largest bigint means that the writer appends nothing more, and becomes
-- infinity.
CREATE OR REPLACE FUNCTION weir_internal.stated_time(stated bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN stated = 9223372036854775807 THEN 'infinity'::timestamptz
            ELSE ('epoch'::timestamp + stated * interval '1 microsecond') AT TIME ZONE 'UTC' END;
COMMENT ON FUNCTION weir_internal.stated_time(bigint) IS 'The time that a writer states; infinity if it appends nothing more.';

-- What a batch is about to read counts as read; what the group has passed without reading it never does.
CREATE OR REPLACE FUNCTION weir_internal.unread_clock(in_group_id bigint, in_stream_id bigint, in_bounds jsonb)
RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT least(weir_internal.clock_from(in_stream_id, array_agg(f.segment_id), array_agg(f.next_offset)), (
        SELECT gs.passed_clock FROM weir_internal.reader_group_stream gs
        WHERE gs.group_id = in_group_id AND gs.stream_id = in_stream_id))
    FROM (SELECT o.segment_id, max(o.next_offset) AS next_offset
          FROM (SELECT (b ->> 'segment')::bigint AS segment_id, (b ->> 'to')::bigint AS next_offset
                FROM jsonb_array_elements(in_bounds) b WHERE (b ->> 'stream')::bigint = in_stream_id
                UNION ALL
                SELECT p.segment_id, coalesce(p.next_offset, 0) FROM weir_internal.reader_group_segment p
                WHERE p.group_id = in_group_id AND p.stream_id = in_stream_id) o
          GROUP BY o.segment_id) f
$$;
COMMENT ON FUNCTION weir_internal.unread_clock(bigint, bigint, jsonb) IS 'The clock of the oldest event of a stream that a reader group has not read, once the bounds of a batch are; null if there is none.';

-- A reset forward passes what lies between. One back may lead to where the group passed events: then it reads them,
-- unless they were truncated since.
CREATE OR REPLACE FUNCTION weir_internal.passed_before(gs weir_internal.reader_group_stream, in_cut jsonb)
RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT least(
        weir_internal.clock_between(gs.stream_id, weir_internal.group_cut(gs.group_id, gs.stream_id), in_cut),
        CASE WHEN gs.passed_clock IS NULL OR h.truncated THEN gs.passed_clock
             ELSE weir_internal.clock_between(gs.stream_id, weir.stream_cut_at(
                 s.stream_name, weir_internal.clock_time(gs.passed_clock - 1)), in_cut) END)
    FROM weir_internal.stream s
    CROSS JOIN LATERAL (SELECT t.events > 0 AS truncated FROM weir_internal.size_till(s.stream_id, s.head) t) h
    WHERE s.stream_id = gs.stream_id
$$;
COMMENT ON FUNCTION weir_internal.passed_before(weir_internal.reader_group_stream, jsonb) IS 'The clock of the oldest event that a group has passed without reading it, once it is reset to a cut; null if there is none.';

-- Finds the last commit before the clock in an index, so the cost does not grow with history.
CREATE OR REPLACE FUNCTION weir_internal.complete_before(s weir_internal.stream, in_clock bigint)
RETURNS TABLE (complete_until bigint, newest_event_time bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT s.complete_until, s.newest_event_time WHERE in_clock IS NULL
    UNION ALL
    SELECT t.complete_until, t.newest_event_time
    FROM (SELECT WHERE in_clock IS NOT NULL) wanted
    LEFT JOIN LATERAL (
        SELECT o.complete_until, o.newest_event_time, o.clock FROM weir_internal.transaction o
        WHERE o.stream_name = s.stream_name
          AND weir_internal.clock_time(o.clock) < weir_internal.clock_time(in_clock)
        ORDER BY weir_internal.clock_time(o.clock) DESC LIMIT 1) t ON t.clock > s.event_time_since
$$;
COMMENT ON FUNCTION weir_internal.complete_before(weir_internal.stream, bigint) IS 'What a stream was complete to, and its largest event time, before a clock (null: now).';

-- The smallest time over the streams whose writers state one. A sealed stream that is read to its end is left out; if
-- all are, the largest.
CREATE OR REPLACE FUNCTION weir_internal.batch_complete_until(in_group_id bigint, in_bounds jsonb) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN bool_and(r.complete_until IS NOT NULL) THEN
        coalesce(min(r.complete_until) FILTER (WHERE s.state = 'active' OR u.clock IS NOT NULL), max(r.complete_until))
        END
    FROM weir_internal.reader_group_stream gs
    JOIN weir_internal.stream s USING (stream_id)
    CROSS JOIN LATERAL (
        SELECT weir_internal.unread_clock(gs.group_id, gs.stream_id, in_bounds) AS clock OFFSET 0) u
    CROSS JOIN LATERAL weir_internal.complete_before(s, u.clock) r
    WHERE gs.group_id = in_group_id AND s.complete_until IS NOT NULL
$$;
COMMENT ON FUNCTION weir_internal.batch_complete_until(bigint, jsonb) IS 'The event time before which a reader group has read everything once the bounds of a batch are read, as writers state; null if they do not.';
