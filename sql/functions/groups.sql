-- The position in a completed segment (the end of a sealed stream) is the end of the segment, its next_offset.
CREATE OR REPLACE FUNCTION weir_internal.group_cut(in_group_id bigint, in_stream_id bigint) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT jsonb_object_agg(
               weir_internal.segment_name(p.segment_id), coalesce(to_jsonb(p.next_offset), '"future"'::jsonb)
               ORDER BY p.segment_id)
    FROM weir_internal.reader_group_segment p
    WHERE p.group_id = in_group_id AND p.stream_id = in_stream_id
$$;
COMMENT ON FUNCTION weir_internal.group_cut(bigint, bigint) IS 'The positions of a reader group in a stream, as a cut.';

-- Postgres puts the body in place of a call, so that it costs one index probe if no batch is open.
CREATE OR REPLACE FUNCTION weir_internal.held_segments(in_group_id bigint)
RETURNS TABLE (batch_id bigint, stream_id bigint, segment_id bigint)
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT DISTINCT b.batch_id, (h.bound ->> 'stream')::bigint, (h.bound ->> 'segment')::bigint
    FROM weir_internal.reader_batch b CROSS JOIN LATERAL (
        SELECT o.value AS bound FROM jsonb_array_elements(b.bounds) o
        UNION ALL
        SELECT o.value FROM jsonb_array_elements(b.rest) part, jsonb_array_elements(part) o) h
    WHERE b.group_id = in_group_id AND b.state = 'open'
$$;
COMMENT ON FUNCTION weir_internal.held_segments(bigint) IS 'The segments that the open batches of a reader group read, with those that were split off them: segments in which the group has a position, and successors into which a batch continues.';

-- The newest by creation: a checkpoint that waited may become complete after a later one.
CREATE OR REPLACE FUNCTION weir_internal.last_checkpoint(in_group_id bigint)
RETURNS TABLE (name text, created_at timestamptz, cuts jsonb)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT c.name, c.created_at, c.cuts FROM weir_internal.checkpoint c
    WHERE c.group_id = in_group_id AND c.state = 'complete'
    ORDER BY c.created_at DESC LIMIT 1
$$;
COMMENT ON FUNCTION weir_internal.last_checkpoint(bigint) IS 'The newest complete checkpoint of a reader group.';

-- Of each reader only batches of half the size of its largest count: small ones take as long as their fixed costs,
-- which says nothing about how fast it is; nor does less than a second. A part of a batch that was split was opened
-- with the whole, so times are united.
CREATE OR REPLACE FUNCTION weir_internal.read_rates(in_group_name text)
RETURNS TABLE (reader_id text, rate double precision)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 8
AS $$
    SELECT b.reader_id, b.events / s.seconds
    FROM (
        SELECT b.reader_id, sum(b.events)::double precision AS events,
               range_agg(tstzrange(least(b.opened_at, b.committed_at), b.committed_at)) AS times
        FROM (SELECT r.*, max(r.events) OVER (PARTITION BY r.reader_id) AS largest
          FROM (SELECT b.reader_id, b.events, b.opened_at, b.committed_at FROM weir_internal.reader_batch b
                WHERE b.group_name = in_group_name AND b.state = 'committed' AND b.attempt = 1
                  AND b.committed_at > statement_timestamp() - interval '1 hour'
                ORDER BY b.committed_at DESC LIMIT 200) r) b
        WHERE b.events >= b.largest / 2.0
        GROUP BY b.reader_id) b
    CROSS JOIN LATERAL (
        SELECT extract(epoch FROM sum(upper(busy) - lower(busy)))::double precision AS seconds
        FROM unnest(b.times) AS busy) s
    WHERE s.seconds >= 1
$$;
COMMENT ON FUNCTION weir_internal.read_rates(text) IS 'Events per second of each reader that committed batches of a reader group in the last hour (of the newest 200), over the time in which one of them was open.';

-- What lies beyond the end of the group is never read, so nobody waits for it. (In JSON, "future" is less than any
-- number.) What follows a sealed segment is later than the scale that sealed it.
CREATE OR REPLACE FUNCTION weir_internal.oldest_unread(in_group_id bigint)
RETURNS TABLE (stream_id bigint, segment_id bigint, reader_id text, clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT p.stream_id, p.segment_id, p.reader_id, coalesce(i.clock, s.sealed_clock)
    FROM weir_internal.reader_group_segment p
    JOIN weir_internal.reader_group_stream gs USING (group_id, stream_id)
    JOIN weir_internal.segment s USING (stream_id, segment_id)
    LEFT JOIN LATERAL weir_internal.commit_at(p.stream_id, p.segment_id, p.next_offset) i
        ON i.start_offset + i.events > p.next_offset
    WHERE p.group_id = in_group_id AND p.next_offset IS NOT NULL AND coalesce(i.clock, s.sealed_clock) IS NOT NULL
      AND coalesce(gs.end_cut -> weir_internal.segment_name(p.segment_id) > to_jsonb(p.next_offset), true)
$$;
COMMENT ON FUNCTION weir_internal.oldest_unread(bigint) IS 'The clock of the oldest unread event at each position of a reader group, where there is one; at the end of a sealed segment, that of the scale that sealed it.';

-- Lateness is counted between batches only: within one, its order says what a consumer gets. Clocks are of commits,
-- so events of one commit are never late. Called after the positions have moved.
-- If nothing of a stream is unread, it takes the clock of the last commit as the newest one: whatever comes is later.
-- Otherwise it looks into the time index once per position, and once more for a segment of the batch that it completed
-- or in which the next commit is unread. Only a position in a sealed segment, or an end of the group, makes it look at
-- what follows. It looks at the entries of a batch only if there was a hole before it, because
-- otherwise nothing is late.
CREATE OR REPLACE FUNCTION weir_internal.measure_disorder(in_group_id bigint, in_batch_id bigint) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    WITH bound AS MATERIALIZED (
        SELECT i.stream_id, i.segment_id, i.from_offset AS first, i.to_offset AS past
        FROM weir_internal.reader_batch r CROSS JOIN LATERAL weir_internal.inputs_of(r.bounds) i
        WHERE r.group_id = in_group_id AND r.batch_id = in_batch_id
    ), behind AS MATERIALIZED (
        SELECT p.stream_id, bool_or(p.next_offset IS NOT NULL AND t.tail_offset IS NULL) AS sealed
        FROM weir_internal.reader_group_segment p
        LEFT JOIN weir_internal.segment_tail t USING (stream_id, segment_id)
        WHERE p.group_id = in_group_id AND p.next_offset IS DISTINCT FROM t.tail_offset
        GROUP BY p.stream_id
    ), beyond AS MATERIALIZED (
        SELECT u.stream_id, weir_internal.clock_from(u.stream_id, array_agg(p.segment_id),
                   array_agg(coalesce(p.next_offset, 0)), gs.end_cut) AS oldest
        FROM behind u
        JOIN weir_internal.reader_group_stream gs ON gs.group_id = in_group_id AND gs.stream_id = u.stream_id
        JOIN weir_internal.reader_group_segment p ON p.group_id = in_group_id AND p.stream_id = u.stream_id
        WHERE u.sealed OR gs.end_cut IS NOT NULL
        GROUP BY u.stream_id, gs.end_cut
    ), progress AS MATERIALIZED (
        SELECT r.stream_id, NULL::bigint AS oldest, i.newest  -- all that there is has been read
        FROM (SELECT DISTINCT b.stream_id FROM bound b) r
        CROSS JOIN LATERAL (SELECT weir_internal.newest_clock(r.stream_id) AS newest OFFSET 0) i
        WHERE r.stream_id NOT IN (SELECT u.stream_id FROM behind u)
        UNION ALL
        SELECT e.stream_id, CASE WHEN e.stream_id IN (SELECT o.stream_id FROM beyond o)
                   THEN (SELECT o.oldest FROM beyond o WHERE o.stream_id = e.stream_id)
                   ELSE min(e.clock) FILTER (WHERE e.past > e.next_offset) END,
               max(CASE WHEN e.next_offset = e.read_to AND e.start_offset < e.read_to THEN e.clock
                   WHEN e.read_to IS NOT NULL THEN (
                       SELECT i.clock FROM weir_internal.commit_at(e.stream_id, e.segment_id, e.read_to - 1) i) END)
        FROM (  -- at most one row of each kind per segment; grouped, because a join might compare each with each
            SELECT l.stream_id, l.segment_id, max(l.next_offset) AS next_offset, max(l.clock) AS clock,
                   max(l.start_offset) AS start_offset, max(l.past) AS past, max(l.read_to) AS read_to
            FROM (
                SELECT p.stream_id, p.segment_id, p.next_offset, i.clock, i.start_offset,
                       i.start_offset + i.events AS past, NULL::bigint AS read_to
                FROM weir_internal.reader_group_segment p
                CROSS JOIN LATERAL weir_internal.commit_at(p.stream_id, p.segment_id, p.next_offset) i
                WHERE p.group_id = in_group_id AND p.stream_id IN (SELECT u.stream_id FROM behind u)
                UNION ALL
                SELECT b.stream_id, b.segment_id, NULL, NULL, NULL, NULL, b.past FROM bound b
                WHERE b.stream_id IN (SELECT u.stream_id FROM behind u)) l
            GROUP BY l.stream_id, l.segment_id) e
        GROUP BY e.stream_id
    ), late AS MATERIALIZED (
        SELECT gs.newest_read - i.clock AS lateness,
               least(i.start_offset + i.events, b.past) - greatest(i.start_offset, b.first) AS events
        FROM weir_internal.reader_group_stream gs
        JOIN bound b ON b.stream_id = gs.stream_id
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT i.* FROM weir_internal.commits_in(b.stream_id, b.segment_id, b.first, b.past) i
            WHERE i.clock < gs.newest_read OFFSET 0) i
        WHERE gs.group_id = in_group_id AND gs.hole > 0
    ), ranked AS (
        SELECT l.lateness, sum(l.events) OVER (ORDER BY l.lateness DESC) AS later FROM late l
    ), moved AS (
        UPDATE weir_internal.reader_group_stream gs SET newest_read = greatest(gs.newest_read, p.newest),
            hole = greatest(0, greatest(gs.newest_read, p.newest) - p.oldest)
        FROM progress p WHERE gs.group_id = in_group_id AND gs.stream_id = p.stream_id
        RETURNING gs.hole
    )
    UPDATE weir_internal.reader_batch b SET
        max_lateness = coalesce((SELECT max(l.lateness) FROM late l), 0),
        p99_lateness = coalesce((SELECT max(r.lateness) FROM ranked r WHERE r.later > b.events / 100.0), 0),
        hole = coalesce((SELECT max(m.hole) FROM moved m), 0)
    WHERE b.group_id = in_group_id AND b.batch_id = in_batch_id
$$;
COMMENT ON FUNCTION weir_internal.measure_disorder(bigint, bigint) IS 'Records how far from write order a batch is that is being committed.';

-- Called after the positions have moved. In one function, because Postgres keeps the plans of its statements: to plan
-- them for each batch takes longer than to run them for a small one.
CREATE OR REPLACE FUNCTION weir_internal.end_batch(
    in_group_id bigint, in_batch_id bigint, in_reader_id text, in_token bigint, in_lease double precision,
    in_outputs jsonb, in_lost jsonb, in_rejected bigint, in_function text, in_version text)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    ended CONSTANT timestamptz := clock_timestamp();
BEGIN
    UPDATE weir_internal.reader_batch SET state = 'committed', outputs = in_outputs, committed_at = ended,
        ended_at = ended, rejected = in_rejected,
        complete_until = CASE WHEN in_lost = '{}' THEN complete_until END,
        function = in_function, function_version = in_version
    WHERE group_id = in_group_id AND batch_id = in_batch_id;
    INSERT INTO weir_internal.batch_input (stream_id, segment_id, from_offset, to_offset, size_class, group_id, batch_id)
    SELECT i.*, in_group_id, in_batch_id
    FROM weir_internal.reader_batch r CROSS JOIN LATERAL weir_internal.inputs_of(r.bounds) i
    WHERE r.group_id = in_group_id AND r.batch_id = in_batch_id;
    -- A range that this batch goes on with becomes longer, but not if its first event went while it was open: when that
    -- went, the range had been read, and the batch had not. events counts what a batch read twice.
    INSERT INTO weir_internal.delivered_range AS d (group_id, stream_id, segment_id, placement, from_offset, to_offset,
        events, lost, first_batch, last_batch, first_at, last_at)
    SELECT in_group_id, i.stream_id, i.segment_id, coalesce(l.placement, p.number), coalesce(l.from_offset, i.from_offset),
           i.to_offset, i.to_offset - i.from_offset,
           CASE WHEN i.first THEN coalesce((in_lost ->> i.stream_id::text)::bigint, 0) ELSE 0 END,
           in_batch_id, in_batch_id, ended, ended
    FROM (SELECT n.*, row_number() OVER (PARTITION BY n.stream_id ORDER BY n.segment_id) = 1 AS first
          FROM weir_internal.reader_batch r CROSS JOIN LATERAL weir_internal.inputs_of(r.bounds) n
          WHERE r.group_id = in_group_id AND r.batch_id = in_batch_id) i
    CROSS JOIN LATERAL (
        SELECT coalesce(max(o.number), 1) AS number FROM weir_internal.placement o
        WHERE o.group_id = in_group_id AND o.stream_id = i.stream_id) p
    LEFT JOIN LATERAL (
        SELECT * FROM (
            SELECT o.placement, o.from_offset, o.to_offset FROM weir_internal.delivered_range o
            WHERE o.group_id = in_group_id AND o.stream_id = i.stream_id AND o.segment_id = i.segment_id
              AND o.placement = p.number
            ORDER BY o.from_offset DESC LIMIT 1) o
        WHERE o.to_offset = i.from_offset AND NOT EXISTS (
            SELECT FROM (SELECT r.to_offset FROM weir_internal.truncated_range r
                         WHERE r.stream_id = i.stream_id AND r.segment_id = i.segment_id
                           AND r.from_offset <= i.from_offset ORDER BY r.from_offset DESC LIMIT 1) r
            WHERE r.to_offset > i.from_offset)) l ON true
    ON CONFLICT (group_id, stream_id, segment_id, placement, from_offset) DO UPDATE SET to_offset = excluded.to_offset,
        events = d.events + excluded.events, lost = d.lost + excluded.lost, last_batch = excluded.last_batch,
        last_at = excluded.last_at;
    -- That of a streaming query stays infinite.
    UPDATE weir_internal.reader SET lease_until = greatest(lease_until, clock_timestamp() + in_lease * interval '1 second')
    WHERE group_id = in_group_id AND reader_id = in_reader_id AND token = in_token;
    IF in_outputs @> '[{"kind": "parquet"}]' THEN
        INSERT INTO weir_internal.parquet_output (group_id, group_name, output, number, batch_id, root, path, partitions,
                                                  committed_at)
        SELECT in_group_id, g.name, o ->> 'output', coalesce(1 + (
                SELECT max(p.number) FROM weir_internal.parquet_output p
                WHERE p.group_id = in_group_id AND p.output = o ->> 'output'), 0),
            in_batch_id, o ->> 'root', o ->> 'path', coalesce(o ->> 'partitions', ''), clock_timestamp()
        FROM weir_internal.reader_group g CROSS JOIN LATERAL jsonb_array_elements(in_outputs) o
        WHERE g.group_id = in_group_id AND o ->> 'kind' = 'parquet';
    END IF;
    IF in_lost <> '{}' THEN
        UPDATE weir_internal.reader_group_stream gs SET lost_events = lost_events + l.value::bigint,
            passed_clock = least(passed_clock, (
                SELECT weir_internal.clock_from(gs.stream_id, array_agg(i.segment_id), array_agg(i.from_offset))
                FROM weir_internal.reader_batch r CROSS JOIN LATERAL weir_internal.inputs_of(r.bounds) i
                WHERE r.group_id = in_group_id AND r.batch_id = in_batch_id AND i.stream_id = gs.stream_id))
        FROM jsonb_each_text(in_lost) l
        WHERE gs.group_id = in_group_id AND gs.stream_id = l.key::bigint;
    END IF;
    PERFORM weir_internal.measure_disorder(in_group_id, in_batch_id);
END $$;
COMMENT ON FUNCTION weir_internal.end_batch(bigint, bigint, text, bigint, double precision, jsonb, jsonb, bigint, text, text) IS 'Records that a batch is committed: what it has read and written, how much of it was lost, and how far from write order it was.';
