-- Each reason to keep a file is a cut that has not passed the file (see has_passed). retention_dry_run decides
-- what follows from all reasons together. The path of a file begins with the id of its stream, so the path alone
-- identifies the file, with or without the warehouse before it. The path of a folder stands for all files in it.
-- Between two offsets of a segment at which a cut ends, all files are kept for the same reasons. So the reasons are
-- computed per stretch between two such offsets, a few for a million files. With more work_mem, the rows of some hundred thousand files
-- stay in memory. Otherwise Postgres writes those of 50,000 files to its disk first.
CREATE OR REPLACE FUNCTION weir.why_kept(stream text, path text DEFAULT NULL)
RETURNS TABLE (file text, segment text, start_offset bigint, events bigint, bytes bigint,
               why text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET work_mem = '64MB' ROWS 100
AS $$
    WITH asked AS MATERIALIZED (
        SELECT nullif(rtrim(coalesce(substring(a.path FROM '(?:\A|/)([0-9]{1,18}/_weir_.*)\Z'), a.path),
                            '/'), '') || '/' AS path
        FROM (SELECT regexp_replace(regexp_replace(why_kept.path, '\Afile:/+', '/'),
                                    '\A(\./+)+', '') AS path) a
    ), s AS MATERIALIZED (
        SELECT o.*, (SELECT z.bytes FROM weir_internal.size_till(o.stream_id, weir_internal.tail_cut(o.stream_id)) z)
            AS tail_bytes,
            CASE WHEN o.stream_name <> why_kept.stream THEN 'of stream ' || o.stream_name || ': ' ELSE '' END AS stream_prefix
        FROM weir_internal.stream o CROSS JOIN asked a
        WHERE o.state <> 'deleted' AND o.stream_id = CASE
            WHEN a.path ~ '\A[0-9]{1,18}/' THEN split_part(a.path, '/', 1)::bigint
            WHEN stream IS NOT NULL OR why_kept.path IS NULL THEN weir_internal.stream_id(stream) END
    ), named AS MATERIALIZED (  -- the number in a path, of a transaction or of a compaction, leads to its files
        SELECT f.segment_id, f.start_offset, f.events, f.bytes, f.path, f.erased
        FROM s CROSS JOIN asked a
        CROSS JOIN LATERAL (
            SELECT substring(a.path FROM '\A[0-9]{1,18}/_weir_tx=([0-9]{1,18})/')::bigint AS number) n
        CROSS JOIN LATERAL (
            SELECT * FROM weir_internal.data_file f WHERE f.stream_id = s.stream_id AND n.number IS NULL
            UNION ALL
            SELECT * FROM weir_internal.data_file f
            WHERE f.stream_name = s.stream_name AND f.transaction_number = n.number
            UNION ALL
            SELECT * FROM weir_internal.data_file f
            WHERE f.stream_name = s.stream_name AND f.transaction_number IS NULL AND n.number IS NOT NULL) f
        WHERE why_kept.path IS NOT NULL AND f.stream_id = s.stream_id AND starts_with(f.path || '/', a.path)
    ), subscriber AS MATERIALIZED (
        SELECT h.name, h.cut, coalesce(h.times_out_at <= clock_timestamp(), false) AS timed_out
        FROM s CROSS JOIN LATERAL weir_internal.subscribers_to_ask(s.stream_id) h
        WHERE s.retention = 'consumed'
    ), reason AS (
        SELECT 'subscriber ' || u.name || ' has not released it' AS why, u.cut
        FROM subscriber u WHERE NOT u.timed_out
        UNION ALL
        SELECT 'it is within the ' || m.what, coalesce(l.cut, s.head)
        FROM s CROSS JOIN LATERAL (VALUES
            ('min_age', 'minimum age', s.retain_min_age),
            ('min_bytes', 'minimum size', s.retain_min_bytes)) m (which, what, amount)
        LEFT JOIN LATERAL weir_internal.retention_limits(s.stream_id, clock_timestamp(), s.tail_bytes) l
            ON l.which = m.which
        WHERE m.amount IS NOT NULL
        UNION ALL
        SELECT CASE WHEN s.retention = 'keep' THEN 'retention is keep, so the stream keeps everything'
                    ELSE 'no rule truncates it: there is no subscriber that has not timed out, and no maximum' END,
               s.head
        FROM s WHERE s.retain_max_age IS NULL AND s.retain_max_bytes IS NULL
          AND NOT EXISTS (SELECT FROM subscriber u WHERE NOT u.timed_out)
    ), keeper AS MATERIALIZED (
        SELECT r.why, f.* FROM s CROSS JOIN reason r
        CROSS JOIN LATERAL weir_internal.front(s.stream_id, r.cut) f
        WHERE s.state = 'active'
    ), next_head AS MATERIALIZED (
        SELECT f.* FROM s CROSS JOIN LATERAL weir.retention_dry_run(s.stream_name) d
        CROSS JOIN LATERAL weir_internal.front(s.stream_id, d.cut) f
        WHERE s.state = 'active' AND d.cut IS NOT NULL
    ), wanted AS MATERIALIZED (
        SELECT g.segment_id, g.key_low, weir_internal.segment_name(g.segment_id) AS segment
        FROM s CROSS JOIN LATERAL (
            SELECT DISTINCT n.segment_id FROM named n
            UNION ALL (  -- one look-up per segment, not one row per file
            WITH RECURSIVE one AS (
                (SELECT f.segment_id FROM weir_internal.data_file f
                 WHERE f.stream_id = s.stream_id AND why_kept.path IS NULL
                 ORDER BY f.segment_id LIMIT 1)
                UNION ALL
                SELECT n.segment_id FROM one CROSS JOIN LATERAL (
                    SELECT f.segment_id FROM weir_internal.data_file f
                    WHERE f.stream_id = s.stream_id AND f.segment_id > one.segment_id
                    ORDER BY f.segment_id LIMIT 1) n
            ) SELECT one.segment_id FROM one)) h
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT o.segment_id, o.key_low FROM weir_internal.segment o
            WHERE o.stream_id = s.stream_id AND o.segment_id = h.segment_id OFFSET 0) g
    ), start AS (  -- the same cuts have passed everything from here to the next start
        SELECT h.segment_id, h.key_low, p.start
        FROM wanted h CROSS JOIN LATERAL (
            SELECT 0::bigint AS start
            UNION SELECT weir_internal.passed_until(k.keys, k.owners, k.offsets, h.key_low, h.segment_id)
            FROM keeper k
            UNION SELECT weir_internal.passed_until(n.keys, n.owners, n.offsets, h.key_low, h.segment_id)
            FROM next_head n) p
        WHERE p.start < 9223372036854775807
    ), reasons AS (
        SELECT p.segment_id, p.start,
               s.stream_prefix || CASE
                   WHEN s.state <> 'active'
                   THEN 'the stream is ' || s.state || ', which is kept as it is until it is deleted'
                   WHEN EXISTS (
                       SELECT FROM next_head n WHERE weir_internal.has_passed(n.keys, n.owners, n.offsets,
                           p.key_low, p.segment_id, p.start + 1))
                   THEN 'the next run of retention truncates it'
                        || coalesce(', because it exceeds a maximum, although ' || k.why, '')
                   ELSE coalesce(k.why, 'it is within the limits')
               END AS why
        FROM s CROSS JOIN start p
        CROSS JOIN LATERAL (
            SELECT string_agg(k.why, '; ' ORDER BY k.why) AS why FROM keeper k
            WHERE NOT weir_internal.has_passed(k.keys, k.owners, k.offsets, p.key_low, p.segment_id,
                                      p.start + 1)) k
    ), by_segment AS MATERIALIZED (
        SELECT h.segment_id, h.segment, array_agg(r.start ORDER BY r.start) AS starts,
               array_agg(r.why ORDER BY r.start) AS whys
        FROM wanted h JOIN reasons r USING (segment_id) GROUP BY h.segment_id, h.segment
    ), found AS (
        SELECT f.path, b.segment, f.start_offset, f.events - f.erased AS events, f.bytes,
               b.whys[width_bucket(f.start_offset + f.events - 1, b.starts)] AS why
        FROM s CROSS JOIN LATERAL (
            SELECT n.* FROM named n
            UNION ALL
            SELECT d.segment_id, d.start_offset, d.events, d.bytes, d.path, d.erased FROM weir_internal.data_file d
            WHERE d.stream_id = s.stream_id AND why_kept.path IS NULL) f
        JOIN by_segment b ON b.segment_id = f.segment_id
        UNION ALL
        SELECT o.folder, NULL, NULL, NULL, NULL,
               s.stream_prefix || 'transaction ' || t.transaction_number || ' of ' || t.source
               || ' writes it, and has not committed yet'
        FROM s CROSS JOIN asked a JOIN weir_internal.transaction t ON t.stream_id = s.stream_id AND t.state = 'open'
        CROSS JOIN LATERAL (  -- the name that weir.warehouse gives it
            SELECT t.stream_id || '/_weir_tx=' || t.transaction_number || '/_weir_attempt='
                   || t.attempt || '/' AS folder) o
        WHERE why_kept.path IS NULL OR starts_with(a.path, o.folder)
           OR starts_with(o.folder, a.path)
        UNION ALL
        SELECT p.path, NULL, NULL, NULL, g.bytes,
               coalesce((SELECT s.stream_prefix FROM s), '') || CASE g.reason WHEN 'swept'
                    THEN 'it was swept, and is swept once more, with what its writer wrote since'
                    ELSE 'it is garbage (' || g.reason || ') and ' || coalesce((SELECT 'may be needed by batch ' || min(b.batch_id) || ' of group '
                                   || min(b.reader_group)
                            FROM weir_internal.batches_protecting_files(0) b
                            WHERE b.stream_id = g.stream_id AND b.opened_at <= g.garbage_since),
                           CASE g.reason WHEN 'erased' THEN 'goes with the next sweep'
                               WHEN 'compacted' THEN 'is swept after compacted_grace'
                               ELSE 'is swept after the grace period' END) END
        FROM weir_internal.garbage g CROSS JOIN asked a
        CROSS JOIN LATERAL (
            SELECT CASE g.root WHEN '' THEN g.path ELSE rtrim(g.root, '/') || '/' || g.path END AS path
        ) p
        WHERE CASE WHEN why_kept.path IS NULL THEN g.stream_id = (SELECT s.stream_id FROM s)
              -- In the path that was asked about, or a folder that contains the path.
              ELSE EXISTS (SELECT FROM (VALUES (rtrim(p.path, '/') || '/'),
                                               (rtrim(g.path, '/') || '/')) AS garbage (path)
                           WHERE starts_with(garbage.path, a.path) OR starts_with(a.path, garbage.path))
              END
    )
    SELECT coalesce(f.path, why_kept.path), f.segment, f.start_offset, f.events, f.bytes,
           CASE WHEN f.path IS NULL
                THEN 'the database records no file of this path; give it as in weir.data_files or '
                     'weir.garbage_files (files that are in the warehouse only are listed by '
                     'a recovery)'
                ELSE f.why END
    FROM (VALUES (1)) AS one (row)
    LEFT JOIN found f ON true
    WHERE f.path IS NOT NULL OR why_kept.path IS NOT NULL
$$;
COMMENT ON FUNCTION weir.why_kept(text, text) IS 'Why a file of a stream (null: each file) is still there: which subscriber has not released it, which minimum keeps it, or what it waits for. The path of a file or a folder is given as in data_files or in full; with it the stream may be null.';

CREATE OR REPLACE FUNCTION weir_internal.warning_time(in_stream_id bigint) RETURNS interval
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT greatest(interval '1 day', interval '1 second' / 5 * s.retain_max_age)
    FROM weir_internal.stream s WHERE s.stream_id = in_stream_id
$$;
COMMENT ON FUNCTION weir_internal.warning_time(bigint) IS 'How long before retention overtakes a subscriber there is an alert: a day, or a fifth of the maximum age.';

-- With plans for any values, also of what it calls: see clock_from.
CREATE OR REPLACE FUNCTION weir_internal.alerts_of(in_stream_id bigint)
RETURNS TABLE (reader_group text, alert text, at timestamptz, message text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan ROWS 1
AS $$
    WITH s AS MATERIALIZED (
        SELECT o.stream_id, o.stream_name AS name, clock_timestamp() AS now, o.retention
        FROM weir_internal.stream o WHERE o.stream_id = in_stream_id
    ), subscriber AS MATERIALIZED (
        SELECT g.name, weir_internal.times_out_at(g.group_id, s.stream_id) AS times_out_at,
               weir_internal.loses_after(g.group_id, s.stream_id) AS loses_after
        FROM s JOIN weir_internal.reader_group_stream gs ON gs.stream_id = s.stream_id
        JOIN weir_internal.reader_group g ON g.group_id = gs.group_id AND g.subscriber
    )
    SELECT u.name, 'timed out', u.times_out_at,
           'subscriber ' || u.name || ' of stream ' || s.name || ' has timed out and holds nothing back; '
           || 'let its readers run, or delete it'
    FROM s CROSS JOIN subscriber u WHERE u.times_out_at <= s.now AND s.retention = 'consumed'
    UNION ALL
    SELECT u.name, 'soon lost', u.loses_after,
           'at the present rates retention will truncate events of stream ' || s.name
           || ' that subscriber ' || u.name || ' has not released, from '
           || to_char(u.loses_after AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') || ' UTC on'
    FROM s CROSS JOIN subscriber u WHERE u.loses_after - weir_internal.warning_time(s.stream_id) < s.now
    UNION ALL
    SELECT l.key, 'lost', d.decided_at,
           'subscriber ' || l.key || ' lost ' || l.value || ' unread events of stream ' || s.name || ' ('
           || d.reason || ')'
    FROM s JOIN weir_internal.retention_decision d ON d.stream_id = s.stream_id
        AND d.decided_at > s.now - interval '7 days'
    CROSS JOIN LATERAL jsonb_each_text(d.lost) l
$$;
COMMENT ON FUNCTION weir_internal.alerts_of(bigint) IS 'The alerts of a stream, as in the view retention_alerts.';
