-- Each reason to keep a file is a cut that has not passed it, asked by its front (see has_passed). What
-- comes of all of them together is for retention_dry_run to say. A file's path begins with the number
-- of its stream, so it can be asked about by its path alone, also with the warehouse in front of it. A
-- folder asks about all that is in it. Files are asked about by segment: between two places of a segment
-- where some cut stands, all files are kept for the same reasons, so that a million files have the
-- reasons of a few places.
CREATE FUNCTION weir.why_kept(stream text, path text DEFAULT NULL)
RETURNS TABLE (file text, segment text, start_offset bigint, events bigint, bytes bigint,
               why text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog ROWS 100
AS $$
    WITH asked AS MATERIALIZED (
        SELECT nullif(rtrim(coalesce(substring(a.path FROM '(?:\A|/)([0-9]{1,18}/_weir_.*)\Z'), a.path),
                            '/'), '') || '/' AS path
        FROM (SELECT regexp_replace(regexp_replace(why_kept.path, '\Afile:/+', '/'),
                                    '\A(\./+)+', '') AS path) a
    ), s AS MATERIALIZED (
        SELECT o.*, (SELECT z.bytes FROM weir.size_till(o.stream_id, weir.tail_cut(o.stream_id)) z)
            AS tail_bytes
        FROM weir.stream o CROSS JOIN asked a
        WHERE o.state <> 'deleted' AND o.stream_id = CASE
            WHEN a.path ~ '\A[0-9]{1,18}/' THEN split_part(a.path, '/', 1)::bigint
            WHEN stream IS NOT NULL OR why_kept.path IS NULL THEN weir.stream_id(stream) END
    ), subscriber AS MATERIALIZED (
        SELECT h.name, h.cut, coalesce(h.times_out_at <= clock_timestamp(), false) AS timed_out
        FROM s CROSS JOIN LATERAL weir.holders(s.stream_id) h
        WHERE s.retain_by_consumption
    ), reason AS (
        SELECT 'subscriber ' || u.name || ' has not released it' AS why, u.cut
        FROM subscriber u WHERE NOT u.timed_out
        UNION ALL
        SELECT 'it is within the ' || m.what, coalesce(l.cut, s.head)
        FROM s CROSS JOIN LATERAL (VALUES
            ('min_age', 'minimum age', s.retain_min_age),
            ('min_bytes', 'minimum size', s.retain_min_bytes)) m (which, what, amount)
        LEFT JOIN LATERAL weir.retention_limits(s.stream_id, clock_timestamp(), s.tail_bytes) l
            ON l.which = m.which
        WHERE m.amount IS NOT NULL
        UNION ALL
        SELECT 'nothing says that it may go: there is no ' || CASE WHEN s.retain_by_consumption
               THEN 'subscriber that has not timed out' ELSE 'consumption' END || ' and no limit',
               s.head
        FROM s WHERE s.retain_min_age IS NULL AND s.retain_min_bytes IS NULL
          AND s.retain_max_age IS NULL AND s.retain_max_bytes IS NULL
          AND NOT EXISTS (SELECT FROM subscriber u WHERE NOT u.timed_out)
    ), keeper AS MATERIALIZED (
        SELECT r.why, f.* FROM s CROSS JOIN reason r
        CROSS JOIN LATERAL weir.front(s.stream_id, r.cut) f
        WHERE s.state = 'active'
    ), next_head AS MATERIALIZED (
        SELECT f.* FROM s CROSS JOIN LATERAL weir.retention_dry_run(s.scope || '/' || s.name) d
        CROSS JOIN LATERAL weir.front(s.stream_id, d.cut) f
        WHERE s.state = 'active' AND d.cut IS NOT NULL
    ), held AS MATERIALIZED (
        SELECT g.segment_id, g.key_low, weir.segment_name(g.segment_id) AS segment
        FROM s CROSS JOIN LATERAL (
            SELECT DISTINCT f.segment_id FROM asked a JOIN weir.data_file f ON f.stream_id = s.stream_id
            WHERE why_kept.path IS NULL OR starts_with(f.path || '/', a.path)) h
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT o.segment_id, o.key_low FROM weir.segment o
            WHERE o.stream_id = s.stream_id AND o.segment_id = h.segment_id OFFSET 0) g
    ), place AS (  -- what lies behind it, up to the next one, has been passed by the same cuts
        SELECT h.segment_id, h.key_low, p.place
        FROM held h CROSS JOIN LATERAL (
            SELECT 0::bigint AS place
            UNION SELECT weir.passed_till(k.keys, k.owners, k.offsets, h.key_low, h.segment_id)
            FROM keeper k
            UNION SELECT weir.passed_till(n.keys, n.owners, n.offsets, h.key_low, h.segment_id)
            FROM next_head n) p
        WHERE p.place < 9223372036854775807
    ), reasons AS (
        SELECT p.segment_id, p.place,
               CASE
                   WHEN s.state <> 'active'
                   THEN 'the stream is ' || s.state || ', which is kept as it is until it is deleted'
                   WHEN EXISTS (
                       SELECT FROM next_head n WHERE weir.has_passed(n.keys, n.owners, n.offsets,
                           p.key_low, p.segment_id, p.place + 1))
                   THEN 'it goes with the ' || coalesce('first run of weir_retention after '
                            || to_char(w.at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') || ' UTC',
                            'next run of weir_retention')
                        || coalesce(', as a maximum rules, though ' || k.why, '')
                   ELSE coalesce(k.why, 'it is within the limits')
               END AS why
        FROM s CROSS JOIN place p
        CROSS JOIN LATERAL (
            SELECT string_agg(k.why, '; ' ORDER BY k.why) AS why FROM keeper k
            WHERE NOT weir.has_passed(k.keys, k.owners, k.offsets, p.key_low, p.segment_id,
                                      p.place + 1)) k
        LEFT JOIN LATERAL (SELECT s.retained_at + s.retention_every * interval '1 second' AS at) w
            ON w.at > clock_timestamp()
    ), by_segment AS MATERIALIZED (
        SELECT h.segment_id, h.segment, array_agg(r.place ORDER BY r.place) AS places,
               array_agg(r.why ORDER BY r.place) AS whys
        FROM held h JOIN reasons r USING (segment_id) GROUP BY h.segment_id, h.segment
    ), found AS (
        SELECT f.path, b.segment, f.start_offset, f.events, f.bytes,
               b.whys[width_bucket(f.start_offset + f.events - 1, b.places)] AS why
        FROM s CROSS JOIN asked a JOIN weir.data_file f ON f.stream_id = s.stream_id
        JOIN by_segment b ON b.segment_id = f.segment_id
        WHERE why_kept.path IS NULL OR starts_with(f.path || '/', a.path)
        UNION ALL
        SELECT o.folder, NULL, NULL, NULL, NULL,
               'transaction ' || t.transaction_number || ' of ' || t.source
               || ' writes it, and has not committed yet'
        FROM s CROSS JOIN asked a JOIN weir.transaction t ON t.stream_id = s.stream_id AND t.state = 'open'
        CROSS JOIN LATERAL (  -- as weir.warehouse names it
            SELECT t.stream_id || '/_weir_tx=' || t.transaction_number || '/_weir_attempt='
                   || t.attempt || '/' AS folder) o
        WHERE why_kept.path IS NULL OR starts_with(a.path, o.folder)
           OR starts_with(o.folder, a.path)
        UNION ALL
        SELECT p.path, NULL, NULL, NULL, g.bytes,
               'it is dead (' || g.reason || ') and '
               || coalesce((SELECT 'may be needed by batch ' || min(b.batch_id) || ' of group '
                                   || min(b.reader_group)
                            FROM weir.needing_batches(0) b
                            WHERE b.stream_id = g.stream_id AND b.opened_at <= g.dead_at),
                           'is deleted after the grace period')
        FROM weir.garbage g CROSS JOIN asked a
        CROSS JOIN LATERAL (
            SELECT CASE g.root WHEN '' THEN g.path ELSE rtrim(g.root, '/') || '/' || g.path END AS path
        ) p
        WHERE CASE WHEN why_kept.path IS NULL THEN g.stream_id = (SELECT s.stream_id FROM s)
              -- Something in what was asked about, or a folder that holds it.
              ELSE EXISTS (SELECT FROM (VALUES (rtrim(p.path, '/') || '/'),
                                               (rtrim(g.path, '/') || '/')) AS dead (path)
                           WHERE starts_with(dead.path, a.path) OR starts_with(a.path, dead.path))
              END
    )
    SELECT coalesce(f.path, why_kept.path), f.segment, f.start_offset, f.events, f.bytes,
           CASE WHEN f.path IS NULL
                THEN 'the database knows no file of this path; give it as in weir.data_files or '
                     'weir.garbage_files (files that are in the warehouse only are listed by '
                     'weir_recover)'
                ELSE coalesce('of stream ' || o.name || ': ', '') || f.why END
    FROM (VALUES (1)) AS one (row)
    LEFT JOIN found f ON true
    LEFT JOIN (
        SELECT s.scope || '/' || s.name AS name FROM s
        WHERE s.scope || '/' || s.name <> why_kept.stream) o ON true
    WHERE f.path IS NOT NULL OR why_kept.path IS NOT NULL
$$;
COMMENT ON FUNCTION weir.why_kept(text, text) IS 'Why a file of a stream (null: each) is still there: who has not released it, which minimum keeps it, or what it waits for. With a path, of a file or a folder, as in data_files or whole, the stream may be null.';
