-- Neighbouring small files of one segment with one schema version, at least `in_fewest` of them in a row. A file
-- that is not small, and one that straddles the head, divides its neighbours, because their offsets do not meet.
CREATE OR REPLACE FUNCTION weir_internal.small_files(in_streams bigint[], in_bytes bigint, in_events bigint,
                                                     in_fewest bigint, in_among bigint)
RETURNS TABLE (stream_id bigint, segment_id bigint, start_offset bigint, events bigint, bytes bigint,
               schema_version integer, transaction_number bigint, first_clock bigint, last_clock bigint,
               first_seq bigint, last_seq bigint, path text, neighbours bigint, erased bigint)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp ROWS 1000
AS $$
    WITH small AS (
        SELECT f.*, f.start_offset IS DISTINCT FROM lag(f.start_offset + f.events) OVER w
                    OR f.schema_version <> lag(f.schema_version) OVER w AS begins
        FROM weir_internal.stream s
        CROSS JOIN LATERAL (
            SELECT * FROM weir_internal.data_file d WHERE d.stream_id = s.stream_id
            ORDER BY d.segment_id, d.start_offset LIMIT in_among) f
        WHERE f.bytes < in_bytes AND f.events < in_events
          AND (in_streams IS NULL OR s.stream_id = ANY (in_streams))
          AND f.start_offset >= CASE jsonb_typeof(s.head -> weir_internal.segment_name(f.segment_id))
              WHEN 'number' THEN (s.head ->> weir_internal.segment_name(f.segment_id))::bigint ELSE 0 END
        WINDOW w AS (PARTITION BY f.stream_id, f.segment_id ORDER BY f.start_offset)
    ), numbered AS (
        SELECT s.*, count(*) FILTER (WHERE s.begins)
            OVER (PARTITION BY s.stream_id, s.segment_id ORDER BY s.start_offset) AS island
        FROM small s
    ), counted AS (
        SELECT n.*, count(*) OVER (PARTITION BY n.stream_id, n.segment_id, n.island) AS neighbours FROM numbered n
    )
    SELECT c.stream_id, c.segment_id, c.start_offset, c.events, c.bytes, c.schema_version, c.transaction_number,
           c.first_clock, c.last_clock, c.first_seq, c.last_seq, c.path, c.neighbours, c.erased
    FROM counted c WHERE c.neighbours >= in_fewest
$$;
COMMENT ON FUNCTION weir_internal.small_files(bigint[], bigint, bigint, bigint, bigint) IS 'The files of streams (null: all) with fewer bytes and events, that have so many such neighbours in a row, themselves counted. Of each stream it looks at so many files, the first (null: at all).';

-- As a function with rights of its own, because views ask it.
CREATE OR REPLACE FUNCTION weir_internal.count_small_files(in_stream_id bigint, in_among bigint)
RETURNS TABLE (files bigint, small_files bigint, segments bigint, small_bytes bigint, small_events bigint,
               last_compacted timestamptz, apart text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT f.files, f.small_files, f.segments, f.small_bytes, f.small_events, c.ended_at,
           CASE WHEN l.apart AND s.last_clock <= weir_internal.time_clock(l.begun_at)
                THEN 'neighbours store columns in different ways, such as files of Spark and of pyarrow'
                WHEN f.neighbours > 0 AND f.alike = 0
                THEN 'the columns of the stream were changed between any two neighbours' END
    FROM weir_internal.stream s
    CROSS JOIN LATERAL (
        SELECT count(*) AS files, count(*) FILTER (WHERE e.small) AS small_files,
               count(DISTINCT e.segment_id) FILTER (WHERE e.small) AS segments,
               coalesce(sum(e.bytes) FILTER (WHERE e.small), 0)::bigint AS small_bytes,
               coalesce(sum(e.events) FILTER (WHERE e.small), 0)::bigint AS small_events,
               count(*) FILTER (WHERE e.small AND e.meets) AS neighbours,
               count(*) FILTER (WHERE e.small AND e.meets AND e.alike) AS alike
        FROM (SELECT d.*, lag(d.small) OVER w AND lag(d.start_offset + d.events) OVER w = d.start_offset AS meets,
                     lag(d.schema_version) OVER w = d.schema_version AS alike
              FROM (SELECT f.segment_id, f.start_offset, f.events, f.bytes, f.schema_version,
                           f.bytes < 67108864 AND f.events < 500000
                               AND f.start_offset >= coalesce(h.event_offset, 0) AS small
                    FROM (SELECT * FROM weir_internal.data_file f WHERE f.stream_id = s.stream_id LIMIT in_among) f
                    LEFT JOIN weir_internal.cut_entries(s.head) h ON h.segment_id = f.segment_id) d
              WINDOW w AS (PARTITION BY d.segment_id ORDER BY d.start_offset)) e) f
    LEFT JOIN LATERAL (
        SELECT c.ended_at FROM weir_internal.compaction c
        WHERE c.stream_name = s.stream_name AND c.state = 'done' AND NOT c.apart
        ORDER BY c.number DESC LIMIT 1) c ON true
    LEFT JOIN LATERAL (
        SELECT c.apart, c.begun_at FROM weir_internal.compaction c
        WHERE c.stream_name = s.stream_name AND c.state = 'done' ORDER BY c.number DESC LIMIT 1) l ON true
    WHERE s.stream_id = in_stream_id
$$;
COMMENT ON FUNCTION weir_internal.count_small_files(bigint, bigint) IS 'How many small files a stream has, and when it was compacted. It looks at so many files (null: all).';

-- Whoever begins with the token that the open one has is the same try, whose answer was lost. Another try of the same
-- request ends the open one, whose process is gone or may put nothing in place any more.
CREATE OR REPLACE FUNCTION weir_internal.begin_compaction(
    in_stream_id bigint, in_lease double precision, in_holder text DEFAULT NULL, in_token text DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    given bigint;
    there weir_internal.compaction;
BEGIN
    PERFORM FROM weir_internal.lock_streams(array[in_stream_id], '{}', '{}');
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT c.* INTO there FROM weir_internal.compaction c WHERE c.stream_id = in_stream_id AND c.state = 'open';
    IF there.token = in_token THEN
        RETURN there.number;
    ELSIF there.holder = in_holder THEN
        UPDATE weir_internal.compaction c SET state = 'aborted', ended_at = clock_timestamp()
        WHERE c.stream_id = in_stream_id AND c.number = there.number;
        INSERT INTO weir_internal.garbage (root, path, stream_id, reason)
        VALUES ('', in_stream_id || '/_weir_tx=' || there.number || '/_weir_attempt=1/', in_stream_id, 'aborted')
        ON CONFLICT (root, path) DO NOTHING;
    ELSIF there.number IS NOT NULL THEN
        RETURN NULL;
    END IF;
    UPDATE weir_internal.stream s SET next_transaction_number = s.next_transaction_number + 1
    WHERE s.stream_id = in_stream_id RETURNING s.next_transaction_number - 1 INTO given;
    INSERT INTO weir_internal.compaction (stream_id, number, stream_name, lease_until, holder, token)
    SELECT s.stream_id, given, s.stream_name,
           clock_timestamp() + in_lease * interval '1 second', in_holder, in_token
    FROM weir_internal.stream s WHERE s.stream_id = in_stream_id;
    RETURN given;
END $$;
COMMENT ON FUNCTION weir_internal.begin_compaction(bigint, double precision, text, text) IS 'Locks a stream and begins a compaction of it, or takes over that of the same holder; returns its number, or null if the stream is gone or another compaction writes.';

-- Each new file takes the place of the files with its offsets, if these are still the ones that it was made of. Of
-- some of their events it may have no row: holes.
CREATE OR REPLACE FUNCTION weir_internal.swap_files(
    in_stream_id bigint, in_number bigint, in_segments bigint[], in_starts bigint[], in_events bigint[],
    in_bytes bigint[], in_paths text[], in_end_hashes bigint[],
    in_old_paths text[], in_old_news integer[], in_erased bigint[],
    OUT outcome text, OUT files_before bigint, OUT files_after bigint, OUT events bigint, OUT bytes_before bigint,
    OUT bytes_after bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    whole integer[];  -- which new files replace what is there
    r record;
BEGIN
    PERFORM FROM weir_internal.lock_streams(array[in_stream_id], '{}', '{}');
    IF NOT FOUND THEN
        outcome := 'no stream';
        RETURN;
    END IF;
    SELECT c.state, c.files_before, c.files_after, c.events, c.bytes_before, c.bytes_after INTO r
    FROM weir_internal.compaction c WHERE c.stream_id = in_stream_id AND c.number = in_number;
    IF r.state IS DISTINCT FROM 'open' THEN
        outcome := coalesce(r.state, 'unknown'); files_before := r.files_before;
        files_after := r.files_after; events := r.events; bytes_before := r.bytes_before;
        bytes_after := r.bytes_after;
        RETURN;
    END IF;
    SELECT coalesce(array_agg(n.i ORDER BY n.i), '{}') INTO whole
    FROM unnest(in_segments, in_starts, in_events) WITH ORDINALITY AS n (segment_id, start_offset, events, i)
    CROSS JOIN LATERAL (
        SELECT sum(f.events) AS events, min(f.start_offset) AS start_offset, min(f.schema_version) AS low,
               max(f.schema_version) AS high, array_agg(f.path ORDER BY f.start_offset) AS paths
        FROM weir_internal.data_file f
        WHERE f.stream_id = in_stream_id AND f.segment_id = n.segment_id
          AND f.start_offset >= n.start_offset AND f.start_offset < n.start_offset + n.events) o
    WHERE o.events = n.events AND o.start_offset = n.start_offset AND o.low = o.high
      AND o.paths = array(SELECT p.path FROM unnest(in_old_paths, in_old_news) WITH ORDINALITY AS p (path, new, j)
                          WHERE p.new = n.i ORDER BY p.j);
    WITH old AS (
        DELETE FROM weir_internal.data_file f
        USING unnest(whole) w CROSS JOIN LATERAL (
            SELECT in_segments[w] AS segment_id, in_starts[w] AS first, in_starts[w] + in_events[w] AS past) n
        WHERE f.stream_id = in_stream_id AND f.segment_id = n.segment_id
          AND f.start_offset >= n.first AND f.start_offset < n.past
        RETURNING f.path, f.bytes, f.events, f.transaction_number, f.first_clock, f.last_clock, f.schema_version,
                  f.first_seq, f.last_seq, f.start_offset, f.stream_name, f.erased, f.end_hash, w AS i
    ), freed AS (
        INSERT INTO weir_internal.garbage (root, path, stream_id, reason, bytes, rows, end_hash)
        SELECT '', o.path, in_stream_id, CASE WHEN in_erased[o.i] > 0 THEN 'erased' ELSE 'compacted' END, o.bytes,
               o.events - o.erased, o.end_hash
        FROM old o
        UNION ALL
        SELECT '', in_paths[n.i], in_stream_id, 'aborted', in_bytes[n.i], NULL, NULL
        FROM generate_subscripts(in_paths, 1) AS n (i)
        -- A file that another append wrote is not its own.
        WHERE n.i <> ALL (whole) AND starts_with(in_paths[n.i], in_stream_id || '/_weir_tx=' || in_number || '/')
    )
    SELECT count(*) AS files, sum(o.events)::bigint AS events, sum(o.bytes)::bigint AS bytes,
           jsonb_agg(to_jsonb(o)) AS rows INTO r
    FROM old o;
    INSERT INTO weir_internal.data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
        transaction_number, first_clock, last_clock, first_seq, last_seq, schema_version, path, end_hash, since,
        erased)
    SELECT in_stream_id, m.stream_name, in_segments[m.i], in_starts[m.i], in_events[m.i], in_bytes[m.i],
           CASE WHEN m.one THEN m.number END, CASE WHEN NOT m.one THEN m.first END,
           CASE WHEN NOT m.one THEN m.last END, m.first_seq, m.last_seq, m.version, in_paths[m.i],
           in_end_hashes[m.i], m.first, m.erased + in_erased[m.i]
    FROM (
        SELECT o.i, min(o.stream_name) AS stream_name, min(o.schema_version) AS version,
               min(o.transaction_number) AS number, sum(o.erased) AS erased, min(o.first_seq) AS first_seq, max(o.last_seq) AS last_seq,
               bool_and(o.transaction_number IS NOT NULL) AND min(o.transaction_number) = max(o.transaction_number)
                   AS one,
               min(coalesce(o.first_clock, t.clock)) AS first, max(coalesce(o.last_clock, t.clock)) AS last
        FROM jsonb_to_recordset(coalesce(r.rows, '[]'))
            AS o (i integer, stream_name text, schema_version integer, transaction_number bigint,
                  first_clock bigint, last_clock bigint, first_seq bigint, last_seq bigint, erased bigint)
        LEFT JOIN LATERAL (
            SELECT a.clock FROM weir_internal.transaction a
            WHERE a.stream_id = in_stream_id AND a.transaction_number = o.transaction_number OFFSET 0) t ON true
        GROUP BY o.i) m;
    outcome := 'done'; files_before := r.files; files_after := cardinality(whole);
    events := coalesce(r.events, 0); bytes_before := coalesce(r.bytes, 0);
    SELECT coalesce(sum(in_bytes[w]), 0) INTO bytes_after FROM unnest(whole) w;
    UPDATE weir_internal.compaction c
    SET state = 'done', ended_at = clock_timestamp(), files_before = swap_files.files_before,
        files_after = swap_files.files_after, events = swap_files.events, bytes_before = swap_files.bytes_before,
        bytes_after = swap_files.bytes_after
    WHERE c.stream_id = in_stream_id AND c.number = in_number;
END $$;
COMMENT ON FUNCTION weir_internal.swap_files(bigint, bigint, bigint[], bigint[], bigint[], bigint[], text[], bigint[], text[], integer[], bigint[]) IS 'Locks a stream and puts the files of a compaction in the place of those that they were made of; what is not there any more makes the new file garbage.';
