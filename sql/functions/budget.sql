-- What fits into the budget of a batch (semantics 16.2), of the segments and offsets that it could read. If
-- everything does, one row says so, with its bytes: its stream is NULL. `in_unit`: see budget.py of the reader groups.
--
-- Each OFFSET 0 makes Postgres probe an index for each row, whatever it believes of the average stream.
CREATE OR REPLACE FUNCTION weir_internal.what_fits(
    in_streams bigint[], in_segments bigint[], in_starts bigint[], in_ends bigint[],
    in_events bigint, in_bytes bigint, in_files bigint, in_unit text)
RETURNS TABLE (stream_id bigint, segment_id bigint, past bigint, bytes bigint, clock bigint)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    fits boolean;
BEGIN
    -- All files, if they begin at the starts: then their events add up to what is wanted.
    SELECT f.bytes, f.files <= in_files AND f.events <= in_events AND f.bytes <= in_bytes AND f.events = (
               SELECT coalesce(sum(e.past - e.first), 0) FROM unnest(in_starts, in_ends) AS e (first, past)
               WHERE e.first < e.past)
    INTO bytes, fits
    FROM (SELECT count(*) AS files, coalesce(sum(f.events), 0) AS events, coalesce(sum(f.bytes), 0)::bigint AS bytes
          FROM (SELECT f.* FROM unnest(in_streams, in_segments, in_starts, in_ends)
                    AS w (stream_id, segment_id, first, past)
                CROSS JOIN LATERAL (
                    SELECT c.events, f.bytes * c.events / f.events AS bytes FROM weir_internal.data_file f
                    CROSS JOIN LATERAL (
                        SELECT least(w.past, f.start_offset + f.events) - f.start_offset AS events) c
                    WHERE f.stream_id = w.stream_id AND f.segment_id = w.segment_id
                      AND f.start_offset >= w.first AND f.start_offset < w.past OFFSET 0) f
                LIMIT in_files + 1) f) f;
    IF fits THEN
        RETURN NEXT;
        RETURN;
    END IF;
    -- Otherwise by stream where to begin and to end, and for each commit from there on its files in which events
    -- are wanted. A file of several commits counts in each of them, with the events of that commit. Of its ranks only
    -- the smallest and the largest are known, so its part of a commit may make rank runs of that commit one.
    RETURN QUERY
    WITH begun AS MATERIALIZED (
        SELECT w.*, b.start_offset, c.clock, c.transaction_number, (
                SELECT i.clock FROM weir_internal.commit_at(w.stream_id, w.segment_id, w.past - 1) i) AS last_clock, (
                SELECT p.last_clock FROM weir_internal.packed_commits p
                WHERE p.stream_id = w.stream_id AND p.segment_id = w.segment_id
                  AND p.start_offset < w.past AND p.past > w.first
                ORDER BY p.start_offset DESC LIMIT 1) AS packed_till
        FROM unnest(in_streams, in_segments, in_starts, in_ends) AS w (stream_id, segment_id, first, past)
        LEFT JOIN LATERAL (  -- from the file on that holds the first offset
            SELECT f.start_offset FROM weir_internal.data_file f
            WHERE f.stream_id = w.stream_id AND f.segment_id = w.segment_id
              AND f.start_offset < w.past AND f.start_offset + f.events > w.first
              AND f.start_offset >= coalesce((
                  SELECT n.start_offset FROM weir_internal.data_file n
                  WHERE n.stream_id = w.stream_id AND n.segment_id = w.segment_id AND n.start_offset <= w.first
                  ORDER BY n.start_offset DESC LIMIT 1), 0)
            ORDER BY f.start_offset LIMIT 1) b ON true
        LEFT JOIN LATERAL weir_internal.commit_at(w.stream_id, w.segment_id, greatest(w.first, b.start_offset)) c
            ON true
        WHERE w.first < w.past
    ), span AS (
        SELECT b.stream_id, min(b.clock) AS clock, max(b.last_clock) AS last_clock,
               CASE WHEN max(b.packed_till) > 0 THEN least(max(b.packed_till), max(b.last_clock)) END AS packed_till,
               (SELECT n.stream_name FROM weir_internal.stream n WHERE n.stream_id = b.stream_id) AS stream_name,
               (array_agg(b.transaction_number ORDER BY b.clock))[1] AS transaction_number,
               jsonb_object_agg(b.segment_id, jsonb_build_array(b.first, b.past, b.start_offset)) AS bounds,
               array_agg(b.segment_id) AS segments
        FROM begun b WHERE b.start_offset IS NOT NULL GROUP BY b.stream_id
    ), found AS (
        SELECT x.*
        FROM span s CROSS JOIN LATERAL (
            -- One commit after the other, as far as LIMIT asks for them. Where commits are packed more and more
            -- at once, of the segments that are wanted: to look into a packed row costs more than a commit.
            WITH RECURSIVE done AS (
                SELECT s.clock AS first, s.clock AS last, s.clock <= s.packed_till AS packed, 1::bigint AS commits
                UNION ALL
                SELECT n.*
                FROM done d CROSS JOIN LATERAL (
                    SELECT d.last + 1 AS first, least(s.packed_till, (
                               SELECT t.clock FROM weir_internal.transaction t
                               WHERE t.stream_name = s.stream_name
                                 AND weir_internal.clock_time(t.clock) > weir_internal.clock_time(d.last)
                               ORDER BY weir_internal.clock_time(t.clock) OFFSET d.commits LIMIT 1)) AS last,
                           true AS packed, 2 * d.commits AS commits
                    WHERE d.last < s.packed_till
                    UNION ALL
                    SELECT t.clock, t.clock, false, 1
                    FROM (SELECT min(t.clock) AS clock FROM weir_internal.time_index t
                          WHERE t.stream_id = s.stream_id AND t.clock > d.last) t
                    WHERE t.clock IS NOT NULL AND coalesce(d.last >= s.packed_till, true)) n
                WHERE d.last < s.last_clock
            )
            SELECT c.* FROM done d CROSS JOIN LATERAL (
                SELECT i.clock, f.*
                FROM (
                    SELECT t.segment_id, t.start_offset, t.events, t.clock FROM weir_internal.time_index t
                    WHERE NOT coalesce(d.packed, false) AND t.stream_id = s.stream_id AND t.clock = d.first
                    UNION ALL
                    SELECT w.segment_id, t.start_offset, t.events, t.clock
                    FROM unnest(s.segments) AS w (segment_id)
                    CROSS JOIN LATERAL weir_internal.commits_to(s.stream_id, w.segment_id, d.first, d.last) t
                    WHERE d.packed) i
                CROSS JOIN LATERAL (
                    SELECT (bound ->> 0)::bigint AS first, (bound ->> 1)::bigint AS past,
                           (bound ->> 2)::bigint AS start_offset
                    FROM (SELECT s.bounds -> i.segment_id::text AS bound OFFSET 0) p
                    WHERE bound IS NOT NULL OFFSET 0) w
                CROSS JOIN LATERAL (
                    SELECT f.stream_id, f.segment_id,
                           CASE WHEN in_unit = 'run' THEN f.first_seq
                           ELSE c.first - i.start_offset END AS in_commit,
                           f.last_seq, c.past, c.past - c.first AS events,
                           f.bytes * (c.past - c.first) / f.events AS bytes
                    FROM weir_internal.data_file f
                    CROSS JOIN LATERAL (
                        SELECT greatest(w.first, i.start_offset, f.start_offset) AS first,
                               least(w.past, i.start_offset + i.events, f.start_offset + f.events) AS past) c
                    WHERE f.stream_id = s.stream_id AND f.segment_id = i.segment_id
                      AND f.start_offset >= CASE WHEN i.start_offset <= w.first THEN w.start_offset
                          ELSE coalesce((  -- the file that has the first event of the commit
                              SELECT n.start_offset FROM weir_internal.data_file n
                              WHERE n.stream_id = s.stream_id AND n.segment_id = i.segment_id
                                AND n.start_offset <= i.start_offset
                              ORDER BY n.start_offset DESC LIMIT 1), i.start_offset) END
                      AND f.start_offset < least(i.start_offset + i.events, w.past)
                      AND c.first < c.past OFFSET 0) f
                WHERE i.start_offset + i.events > w.first
                ORDER BY i.clock, f.in_commit, f.segment_id) c
            -- The first unit is taken whatever its size, so it must be here as a whole.
            LIMIT in_files + 1 + CASE WHEN in_unit = 'file' THEN 0 ELSE coalesce((
                SELECT t.files FROM weir_internal.transaction t
                WHERE t.stream_id = s.stream_id AND t.transaction_number = s.transaction_number), 0) END) x
    ), begins AS (
        SELECT f.*, coalesce(f.in_commit > max(f.last_seq) OVER (
            PARTITION BY f.stream_id, f.clock ORDER BY f.in_commit, f.segment_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), true) AS run
        FROM found f
    ), numbered AS (
        SELECT b.*, CASE in_unit
            WHEN 'commit' THEN dense_rank() OVER (ORDER BY b.clock)
            WHEN 'run' THEN count(*) FILTER (WHERE b.run)
                OVER (ORDER BY b.clock, b.stream_id, b.in_commit, b.segment_id)
            ELSE row_number() OVER (ORDER BY b.clock, b.in_commit, b.stream_id, b.segment_id)
            END AS unit
        FROM begins b
    ), walked AS (  -- up to the end of each unit
        SELECT n.*, count(*) OVER w AS files, sum(n.events) OVER w AS events_so_far,
               sum(n.bytes) OVER w AS bytes_so_far
        FROM numbered n WINDOW w AS (ORDER BY n.unit)
    )
    SELECT k.stream_id, k.segment_id, max(k.past), sum(k.bytes)::bigint, max(k.clock)
    FROM walked k
    WHERE k.unit = 1
       OR k.files <= in_files AND k.events_so_far <= in_events AND k.bytes_so_far <= in_bytes
    GROUP BY k.stream_id, k.segment_id
    UNION ALL  -- what was truncated meanwhile costs nothing
    SELECT b.stream_id, b.segment_id, b.past, 0, NULL FROM begun b WHERE b.start_offset IS NULL;
END $$;
COMMENT ON FUNCTION weir_internal.what_fits(bigint[], bigint[], bigint[], bigint[], bigint, bigint, bigint, text) IS 'How far a batch may read each segment, and the bytes and the newest clock of that.';
