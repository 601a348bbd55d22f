-- What was committed where and when: one function for each way in which the time index is asked. All others, and the
-- statements in Python, go through these. Postgres puts their bodies in place of the calls, so that each is a probe of
-- an index in the plan of whoever asks. In a segment commits follow one another without gaps, by offset as by clock.
--
-- Old commits are packed, several into a row (packed_commits); in a segment they come before those that are not.
-- width_bucket searches an array by halves: it returns how many of its values are not larger. Each use of an array
-- that is stored decompresses it; of one with || '{}', which changes nothing, only the first.
CREATE OR REPLACE FUNCTION weir_internal.unpacked(p weir_internal.packed_commits, lo integer, hi integer)
RETURNS TABLE (start_offset bigint, events bigint, start_byte bigint, bytes bigint, clock bigint,
               transaction_number bigint, min_event_time bigint, max_event_time bigint, digest bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 100
AS $$
    SELECT u.start_offset, u.past - u.start_offset, u.start_byte, u.past_byte - u.start_byte, u.clock,
           u.transaction_number, u.min_event_time, u.max_event_time, u.digest
    FROM (SELECT p.offsets || '{}' AS offsets, p.bytes_before || '{}' AS bytes_before OFFSET 0) a
    CROSS JOIN LATERAL unnest(
                a.offsets[lo:hi], a.offsets[lo + 1:hi] || coalesce(a.offsets[hi + 1], p.past),
                a.bytes_before[lo:hi], a.bytes_before[lo + 1:hi] || coalesce(a.bytes_before[hi + 1], p.past_byte),
                p.clocks[lo:hi], p.transaction_numbers[lo:hi], p.min_event_times[lo:hi],
                p.max_event_times[lo:hi], p.digests[lo:hi])
        AS u (start_offset, past, start_byte, past_byte, clock, transaction_number, min_event_time, max_event_time,
              digest)
    WHERE lo <= hi
$$;
COMMENT ON FUNCTION weir_internal.unpacked(weir_internal.packed_commits, integer, integer) IS 'The commits of a row of packed ones, from one number (1, 2 ...) to another.';

-- What is packed is seldom asked for: the functions packed_* have plans of their own, so that whoever asks has less to
-- plan.
CREATE OR REPLACE FUNCTION weir_internal.packed_commit_at(in_stream_id bigint, in_segment_id bigint, in_offset bigint)
RETURNS TABLE (start_offset bigint, events bigint, start_byte bigint, bytes bigint, clock bigint,
               transaction_number bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT p.offsets[w.n], coalesce(p.offsets[w.n + 1], p.past) - p.offsets[w.n], p.bytes_before[w.n],
           coalesce(p.bytes_before[w.n + 1], p.past_byte) - p.bytes_before[w.n], p.clocks[w.n],
           p.transaction_numbers[w.n]
    FROM (SELECT o.past, o.past_byte, o.offsets || '{}' AS offsets, o.bytes_before || '{}' AS bytes_before,
                 o.clocks || '{}' AS clocks, o.transaction_numbers || '{}' AS transaction_numbers
          FROM weir_internal.packed_commits o
          WHERE o.stream_id = in_stream_id AND o.segment_id = in_segment_id AND o.start_offset <= in_offset
          ORDER BY o.start_offset DESC LIMIT 1) p
    CROSS JOIN LATERAL (SELECT width_bucket(in_offset, p.offsets) AS n OFFSET 0) w
    WHERE NOT EXISTS (SELECT FROM weir_internal.time_index i WHERE i.stream_id = in_stream_id
                      AND i.segment_id = in_segment_id AND i.start_offset <= in_offset)
$$;
COMMENT ON FUNCTION weir_internal.packed_commit_at(bigint, bigint, bigint) IS 'As commit_at, if that commit is packed.';

CREATE OR REPLACE FUNCTION weir_internal.commit_at(in_stream_id bigint, in_segment_id bigint, in_offset bigint)
RETURNS TABLE (start_offset bigint, events bigint, start_byte bigint, bytes bigint, clock bigint,
               transaction_number bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    (SELECT i.start_offset, i.events, i.start_byte, i.bytes, i.clock, i.transaction_number
     FROM weir_internal.time_index i
     WHERE i.stream_id = in_stream_id AND i.segment_id = in_segment_id AND i.start_offset <= in_offset
     ORDER BY i.start_offset DESC LIMIT 1)
    UNION ALL
    SELECT p.* FROM weir_internal.packed_commit_at(in_stream_id, in_segment_id, in_offset) p
    LIMIT 1
$$;
COMMENT ON FUNCTION weir_internal.commit_at(bigint, bigint, bigint) IS 'The commit that has an offset of a segment; the last one, if the offset is at the end.';

CREATE OR REPLACE FUNCTION weir_internal.packed_commit_by(in_stream_id bigint, in_segment_id bigint, in_clock bigint)
RETURNS TABLE (start_offset bigint, events bigint, clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT p.offsets[w.n], coalesce(p.offsets[w.n + 1], p.past) - p.offsets[w.n], p.clocks[w.n]
    FROM (SELECT o.past, o.offsets || '{}' AS offsets, o.clocks || '{}' AS clocks
          FROM weir_internal.packed_commits o
          WHERE o.stream_id = in_stream_id AND o.segment_id = in_segment_id AND o.first_clock <= in_clock
          ORDER BY o.first_clock DESC LIMIT 1) p
    CROSS JOIN LATERAL (SELECT width_bucket(in_clock, p.clocks) AS n OFFSET 0) w
    WHERE NOT EXISTS (SELECT FROM weir_internal.time_index i WHERE i.stream_id = in_stream_id
                      AND i.segment_id = in_segment_id AND i.clock <= in_clock)
$$;
COMMENT ON FUNCTION weir_internal.packed_commit_by(bigint, bigint, bigint) IS 'As commit_by, if that commit is packed.';

CREATE OR REPLACE FUNCTION weir_internal.commit_by(in_stream_id bigint, in_segment_id bigint, in_clock bigint)
RETURNS TABLE (start_offset bigint, events bigint, clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    (SELECT i.start_offset, i.events, i.clock FROM weir_internal.time_index i
     WHERE i.stream_id = in_stream_id AND i.segment_id = in_segment_id AND i.clock <= in_clock
     ORDER BY i.clock DESC LIMIT 1)
    UNION ALL
    SELECT p.* FROM weir_internal.packed_commit_by(in_stream_id, in_segment_id, in_clock) p
    LIMIT 1
$$;
COMMENT ON FUNCTION weir_internal.commit_by(bigint, bigint, bigint) IS 'The last commit to a segment at or before a clock.';

-- A commit that begins after the offset is the first one if the offset lies below all that was not pruned.
CREATE OR REPLACE FUNCTION weir_internal.commit_from(in_stream_id bigint, in_segment_id bigint, in_offset bigint)
RETURNS TABLE (clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT coalesce(
        (SELECT c.clock FROM weir_internal.commit_at(in_stream_id, in_segment_id, in_offset) c
         WHERE c.start_offset + c.events > in_offset),
        (SELECT p.first_clock FROM weir_internal.packed_commits p
         WHERE p.stream_id = in_stream_id AND p.segment_id = in_segment_id AND p.start_offset > in_offset
         ORDER BY p.start_offset LIMIT 1),
        (SELECT i.clock FROM weir_internal.time_index i
         WHERE i.stream_id = in_stream_id AND i.segment_id = in_segment_id AND i.start_offset > in_offset
         ORDER BY i.start_offset LIMIT 1))
$$;
COMMENT ON FUNCTION weir_internal.commit_from(bigint, bigint, bigint) IS 'The clock of the first event of a segment at or after an offset; null if there is none.';

CREATE OR REPLACE FUNCTION weir_internal.commits_in(in_stream_id bigint, in_segment_id bigint, in_first bigint, in_past bigint)
RETURNS TABLE (start_offset bigint, events bigint, clock bigint, transaction_number bigint, digest bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
AS $$
    SELECT i.start_offset, i.events, i.clock, i.transaction_number, i.digest FROM weir_internal.time_index i
    WHERE i.stream_id = in_stream_id AND i.segment_id = in_segment_id AND i.start_offset < in_past
      AND i.start_offset + i.events > in_first
      AND i.start_offset >= coalesce((
          SELECT max(n.start_offset) FROM weir_internal.time_index n
          WHERE n.stream_id = in_stream_id AND n.segment_id = in_segment_id AND n.start_offset <= in_first), 0)
    UNION ALL
    SELECT u.start_offset, u.events, u.clock, u.transaction_number, u.digest
    FROM weir_internal.packed_commits p
    CROSS JOIN LATERAL (
        SELECT greatest(width_bucket(in_first, a.offsets), 1) AS lo, width_bucket(in_past - 1, a.offsets) AS hi
        FROM (SELECT p.offsets || '{}' AS offsets OFFSET 0) a OFFSET 0) w
    CROSS JOIN LATERAL weir_internal.unpacked(p, w.lo, w.hi) u
    WHERE p.stream_id = in_stream_id AND p.segment_id = in_segment_id AND p.start_offset < in_past AND p.past > in_first
      AND p.start_offset >= coalesce((
          SELECT max(n.start_offset) FROM weir_internal.packed_commits n
          WHERE n.stream_id = in_stream_id AND n.segment_id = in_segment_id AND n.start_offset <= in_first), 0)
$$;
COMMENT ON FUNCTION weir_internal.commits_in(bigint, bigint, bigint, bigint) IS 'The commits with events of a segment from one offset up to another.';

CREATE OR REPLACE FUNCTION weir_internal.commits_to(in_stream_id bigint, in_segment_id bigint, in_first bigint, in_last bigint)
RETURNS TABLE (start_offset bigint, events bigint, bytes bigint, clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
AS $$
    SELECT i.start_offset, i.events, i.bytes, i.clock FROM weir_internal.time_index i
    WHERE i.stream_id = in_stream_id AND i.segment_id = in_segment_id AND i.clock >= in_first AND i.clock <= in_last
    UNION ALL
    SELECT u.start_offset, u.events, u.bytes, u.clock
    FROM weir_internal.packed_commits p
    CROSS JOIN LATERAL (
        SELECT width_bucket(in_first - 1, a.clocks) + 1 AS lo, width_bucket(in_last, a.clocks) AS hi
        FROM (SELECT p.clocks || '{}' AS clocks OFFSET 0) a OFFSET 0) w
    CROSS JOIN LATERAL weir_internal.unpacked(p, w.lo, w.hi) u
    WHERE p.stream_id = in_stream_id AND p.segment_id = in_segment_id AND p.first_clock <= in_last
      AND p.first_clock >= coalesce((
          SELECT max(n.first_clock) FROM weir_internal.packed_commits n
          WHERE n.stream_id = in_stream_id AND n.segment_id = in_segment_id AND n.first_clock <= in_first), in_first)
$$;
COMMENT ON FUNCTION weir_internal.commits_to(bigint, bigint, bigint, bigint) IS 'The commits to a segment from one clock to another, both included.';

CREATE OR REPLACE FUNCTION weir_internal.commits_between(in_stream_id bigint, in_first bigint, in_last bigint)
RETURNS TABLE (segment_id bigint, start_offset bigint, events bigint, bytes bigint, clock bigint,
               transaction_number bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
AS $$
    SELECT i.segment_id, i.start_offset, i.events, i.bytes, i.clock, i.transaction_number
    FROM weir_internal.time_index i
    WHERE i.stream_id = in_stream_id AND i.clock >= in_first AND i.clock <= in_last
    UNION ALL
    SELECT p.segment_id, u.start_offset, u.events, u.bytes, u.clock, u.transaction_number
    FROM weir_internal.packed_commits p
    CROSS JOIN LATERAL (
        SELECT width_bucket(in_first - 1, a.clocks) + 1 AS lo, width_bucket(in_last, a.clocks) AS hi
        FROM (SELECT p.clocks || '{}' AS clocks OFFSET 0) a OFFSET 0) w
    CROSS JOIN LATERAL weir_internal.unpacked(p, w.lo, w.hi) u
    WHERE p.stream_id = in_stream_id AND p.last_clock >= in_first AND p.first_clock <= in_last
$$;
COMMENT ON FUNCTION weir_internal.commits_between(bigint, bigint, bigint) IS 'What was committed to the segments of a stream from one clock to another, both included.';

CREATE OR REPLACE FUNCTION weir_internal.commit_before(in_stream_id bigint, in_clock bigint) RETURNS TABLE (clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT greatest(
        (SELECT max(i.clock) FROM weir_internal.time_index i
         WHERE i.stream_id = in_stream_id AND i.clock < in_clock),
        (SELECT max(p.last_clock) FROM weir_internal.packed_commits p
         WHERE p.stream_id = in_stream_id AND p.last_clock < in_clock),
        (SELECT max(p.clocks[width_bucket(in_clock - 1, p.clocks)]) FROM weir_internal.packed_commits p
         WHERE p.stream_id = in_stream_id AND p.last_clock >= in_clock AND p.first_clock < in_clock))
$$;
COMMENT ON FUNCTION weir_internal.commit_before(bigint, bigint) IS 'The clock of the last commit of events to a stream before a clock; null if there is none.';

CREATE OR REPLACE FUNCTION weir_internal.commit_after(in_stream_id bigint, in_clock bigint) RETURNS TABLE (clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT least(
        (SELECT min(i.clock) FROM weir_internal.time_index i
         WHERE i.stream_id = in_stream_id AND i.clock > in_clock),
        (SELECT min(p.clocks[width_bucket(in_clock, p.clocks) + 1]) FROM weir_internal.packed_commits p
         WHERE p.stream_id = in_stream_id AND p.last_clock > in_clock))
$$;
COMMENT ON FUNCTION weir_internal.commit_after(bigint, bigint) IS 'The clock of the first commit of events to a stream after a clock; null if there is none.';

-- From which clock on these are is asked of the transactions: one index has all of them, packed or not.
CREATE OR REPLACE FUNCTION weir_internal.newest_commits(in_stream_id bigint, in_before bigint, in_most bigint)
RETURNS TABLE (clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
AS $$
    SELECT DISTINCT c.clock
    FROM (SELECT coalesce((
              SELECT t.clock FROM weir_internal.stream s
              CROSS JOIN LATERAL (
                  SELECT t.clock FROM weir_internal.transaction t
                  WHERE t.stream_name = s.stream_name
                    AND weir_internal.clock_time(t.clock) <= weir_internal.clock_time(least(in_before, s.last_clock + 1) - 1)
                    AND t.events IS DISTINCT FROM 0
                  ORDER BY weir_internal.clock_time(t.clock) DESC OFFSET in_most - 1 LIMIT 1) t
              WHERE s.stream_id = in_stream_id), 0) AS clock OFFSET 0) l
    CROSS JOIN LATERAL weir_internal.commits_between(in_stream_id, l.clock, in_before - 1) c
$$;
COMMENT ON FUNCTION weir_internal.newest_commits(bigint, bigint, bigint) IS 'The clocks of the newest commits of events to a stream before a clock, so many of them.';

-- As a function with rights of its own, because views ask it.
CREATE OR REPLACE FUNCTION weir_internal.newest_clock(in_stream_id bigint) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT greatest(
        (SELECT max(i.clock) FROM weir_internal.time_index i WHERE i.stream_id = in_stream_id),
        (SELECT max(p.last_clock) FROM weir_internal.packed_commits p WHERE p.stream_id = in_stream_id))
$$;
COMMENT ON FUNCTION weir_internal.newest_clock(bigint) IS 'The clock of the last commit of events to a stream; null if there is none.';

CREATE OR REPLACE FUNCTION weir.commits(stream text, since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL)
RETURNS TABLE (segment text, start_offset bigint, events bigint, bytes bigint, clock timestamptz,
               transaction_number bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 100
AS $$
    SELECT weir_internal.segment_name(c.segment_id), c.start_offset, c.events, c.bytes,
           weir_internal.clock_time(c.clock), c.transaction_number
    FROM (SELECT weir_internal.stream_id(stream) AS stream_id OFFSET 0) s
    CROSS JOIN LATERAL weir_internal.commits_between(s.stream_id,
        CASE WHEN since IS NULL THEN 0 ELSE least(weir_internal.time_clock(since), 9223372036854775806) + 1 END,
        CASE WHEN until IS NULL THEN 9223372036854775807 ELSE weir_internal.time_clock(until) END) c
    ORDER BY c.clock, c.segment_id
$$;
COMMENT ON FUNCTION weir.commits(text, timestamptz, timestamptz) IS 'What was committed to the segments of a stream after one time (null: from the beginning) and up to another (null: until now), in that order: of weir.time_indexes, but reading no more of it than it returns.';

CREATE OR REPLACE FUNCTION weir.commit_of(stream text, segment text, event_offset bigint)
RETURNS TABLE (start_offset bigint, events bigint, bytes bigint, clock timestamptz, transaction_number bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT c.start_offset, c.events, c.bytes, weir_internal.clock_time(c.clock), c.transaction_number
    FROM (SELECT weir_internal.stream_id(stream) AS stream_id OFFSET 0) s
    CROSS JOIN LATERAL (
        SELECT (weir_internal.segment_of(s.stream_id, commit_of.segment)).segment_id AS segment_id OFFSET 0) g
    CROSS JOIN LATERAL weir_internal.commit_at(s.stream_id, g.segment_id, event_offset) c
    WHERE c.start_offset + c.events > event_offset
$$;
COMMENT ON FUNCTION weir.commit_of(text, text, bigint) IS 'The commit of an event, by its segment and offset; nothing if there is no such event, or if it was pruned.';
