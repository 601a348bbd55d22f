-- What was committed where and when: one function for each way in which the time index is asked. All others, and the
-- statements in Python, go through these. Postgres puts their bodies in place of the calls, so that each is a probe of
-- an index in the plan of whoever asks. In a segment commits follow one another without gaps, by offset as by clock.
CREATE OR REPLACE FUNCTION weir_internal.commit_at(in_stream_id bigint, in_segment_id bigint, in_offset bigint)
RETURNS TABLE (start_offset bigint, events bigint, start_byte bigint, bytes bigint, clock bigint,
               transaction_number bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT i.start_offset, i.events, i.start_byte, i.bytes, i.clock, i.transaction_number
    FROM weir_internal.time_index i
    WHERE i.stream_id = in_stream_id AND i.segment_id = in_segment_id AND i.start_offset <= in_offset
    ORDER BY i.start_offset DESC LIMIT 1
$$;
COMMENT ON FUNCTION weir_internal.commit_at(bigint, bigint, bigint) IS 'The commit that has an offset of a segment; the last one, if the offset is at the end.';

CREATE OR REPLACE FUNCTION weir_internal.commit_from(in_stream_id bigint, in_segment_id bigint, in_offset bigint)
RETURNS TABLE (start_offset bigint, events bigint, clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT i.start_offset, i.events, i.clock FROM weir_internal.time_index i
    WHERE i.stream_id = in_stream_id AND i.segment_id = in_segment_id
      AND i.start_offset + i.events > in_offset
      AND i.start_offset >= coalesce((
          SELECT max(b.start_offset) FROM weir_internal.time_index b
          WHERE b.stream_id = in_stream_id AND b.segment_id = in_segment_id
            AND b.start_offset <= in_offset), 0)
    ORDER BY i.start_offset LIMIT 1
$$;
COMMENT ON FUNCTION weir_internal.commit_from(bigint, bigint, bigint) IS 'The first commit with an event of a segment at or after an offset.';

CREATE OR REPLACE FUNCTION weir_internal.commit_by(in_stream_id bigint, in_segment_id bigint, in_clock bigint)
RETURNS TABLE (start_offset bigint, events bigint, clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT i.start_offset, i.events, i.clock FROM weir_internal.time_index i
    WHERE i.stream_id = in_stream_id AND i.segment_id = in_segment_id AND i.clock <= in_clock
    ORDER BY i.clock DESC LIMIT 1
$$;
COMMENT ON FUNCTION weir_internal.commit_by(bigint, bigint, bigint) IS 'The last commit to a segment at or before a clock.';

CREATE OR REPLACE FUNCTION weir_internal.commits_in(in_stream_id bigint, in_segment_id bigint, first bigint, past bigint)
RETURNS TABLE (start_offset bigint, events bigint, clock bigint, transaction_number bigint, digest bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
AS $$
    SELECT i.start_offset, i.events, i.clock, i.transaction_number, i.digest FROM weir_internal.time_index i
    WHERE i.stream_id = in_stream_id AND i.segment_id = in_segment_id AND i.start_offset < past
      AND i.start_offset + i.events > first
      AND i.start_offset >= coalesce((
          SELECT max(n.start_offset) FROM weir_internal.time_index n
          WHERE n.stream_id = in_stream_id AND n.segment_id = in_segment_id AND n.start_offset <= first), 0)
$$;
COMMENT ON FUNCTION weir_internal.commits_in(bigint, bigint, bigint, bigint) IS 'The commits with events of a segment from one offset up to another.';

CREATE OR REPLACE FUNCTION weir_internal.commits_to(in_stream_id bigint, in_segment_id bigint, after bigint)
RETURNS TABLE (events bigint, bytes bigint, clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
AS $$
    SELECT i.events, i.bytes, i.clock FROM weir_internal.time_index i
    WHERE i.stream_id = in_stream_id AND i.segment_id = in_segment_id AND i.clock > after
$$;
COMMENT ON FUNCTION weir_internal.commits_to(bigint, bigint, bigint) IS 'The commits to a segment after a clock.';

CREATE OR REPLACE FUNCTION weir_internal.commits_between(in_stream_id bigint, first bigint, last bigint)
RETURNS TABLE (segment_id bigint, start_offset bigint, events bigint, bytes bigint, clock bigint,
               transaction_number bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
AS $$
    SELECT i.segment_id, i.start_offset, i.events, i.bytes, i.clock, i.transaction_number
    FROM weir_internal.time_index i
    WHERE i.stream_id = in_stream_id AND i.clock >= first AND i.clock <= last
$$;
COMMENT ON FUNCTION weir_internal.commits_between(bigint, bigint, bigint) IS 'What was committed to the segments of a stream from one clock to another, both included.';

CREATE OR REPLACE FUNCTION weir_internal.commit_before(in_stream_id bigint, in_clock bigint) RETURNS TABLE (clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT max(i.clock) FROM weir_internal.time_index i WHERE i.stream_id = in_stream_id AND i.clock < in_clock
$$;
COMMENT ON FUNCTION weir_internal.commit_before(bigint, bigint) IS 'The clock of the last commit of events to a stream before a clock; null if there is none.';

CREATE OR REPLACE FUNCTION weir_internal.commit_after(in_stream_id bigint, in_clock bigint) RETURNS TABLE (clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT min(i.clock) FROM weir_internal.time_index i WHERE i.stream_id = in_stream_id AND i.clock > in_clock
$$;
COMMENT ON FUNCTION weir_internal.commit_after(bigint, bigint) IS 'The clock of the first commit of events to a stream after a clock; null if there is none.';

CREATE OR REPLACE FUNCTION weir_internal.newest_commits(in_stream_id bigint, before bigint, most bigint)
RETURNS TABLE (clock bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
AS $$
    SELECT DISTINCT i.clock FROM weir_internal.time_index i WHERE i.stream_id = in_stream_id AND i.clock < before
    ORDER BY i.clock DESC LIMIT most
$$;
COMMENT ON FUNCTION weir_internal.newest_commits(bigint, bigint, bigint) IS 'The clocks of the newest commits of events to a stream before a clock, so many of them.';

-- As a function with rights of its own, because views ask it.
CREATE OR REPLACE FUNCTION weir_internal.newest_clock(in_stream_id bigint) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT max(i.clock) FROM weir_internal.time_index i WHERE i.stream_id = in_stream_id
$$;
COMMENT ON FUNCTION weir_internal.newest_clock(bigint) IS 'The clock of the last commit of events to a stream; null if there is none.';
