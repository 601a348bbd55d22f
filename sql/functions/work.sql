-- What the jobs with a schedule have to do. Each function says how such a job finds its work: the job asks it, and so
-- does `work`, by which nothing is started where nothing is to do (decision 101).

CREATE OR REPLACE FUNCTION weir_internal.lease_is_over(in_until timestamptz, in_least double precision) RETURNS boolean
LANGUAGE sql PARALLEL SAFE
RETURN greatest(in_until, pg_postmaster_start_time() + in_least * interval '1 second') < clock_timestamp();
COMMENT ON FUNCTION weir_internal.lease_is_over(timestamptz, double precision) IS 'Whether a lease has expired; at least so many seconds after the server''s start none has, so that its holder can come back.';

CREATE OR REPLACE FUNCTION weir_internal.reader_is_gone(in_until timestamptz, in_least double precision) RETURNS boolean
LANGUAGE sql PARALLEL SAFE
RETURN in_until = '-infinity' OR weir_internal.lease_is_over(in_until, in_least);
COMMENT ON FUNCTION weir_internal.reader_is_gone(timestamptz, double precision) IS 'Whether a reader with this lease is gone: it has expired, as lease_is_over says, or was ended.';

CREATE OR REPLACE FUNCTION weir_internal.rests(in_since timestamptz, in_attempts bigint) RETURNS boolean
LANGUAGE sql PARALLEL SAFE
RETURN coalesce(in_attempts > 1 AND clock_timestamp() < in_since + least(86400, 300 * 2.0 ^ (in_attempts - 2)) * interval '1 second', false);
COMMENT ON FUNCTION weir_internal.rests(timestamptz, bigint) IS 'Whether what so many attempts in a row did not survive is left alone: five minutes from a time on after the second one, then twice as long, a day at most.';

CREATE OR REPLACE FUNCTION weir_internal.tails_to_record()
RETURNS TABLE (stream_id bigint, stream_name text, last_clock bigint, state text, cut jsonb, turn boolean, now timestamptz)
LANGUAGE sql STABLE ROWS 100
AS $$
    SELECT s.stream_id, s.stream_name, s.last_clock, s.state, l.cut, s.state <> 'active' OR l.recorded_at IS NULL
        OR n.now > l.recorded_at + coalesce(s.cuts_every, 0) * interval '1 second', n.now
    FROM (SELECT DISTINCT q.stream_id FROM weir_internal.capture_queue q) m
    JOIN weir_internal.stream s USING (stream_id)
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now OFFSET 0) n
    LEFT JOIN LATERAL (
        SELECT r.cut, r.recorded_at FROM weir_internal.stream_cut r
        WHERE r.stream_id = s.stream_id ORDER BY r.recorded_at DESC LIMIT 1) l ON true
$$;
COMMENT ON FUNCTION weir_internal.tails_to_record() IS 'The streams that changed since their last record, with this, and whether it is their turn.';

CREATE OR REPLACE FUNCTION weir_internal.stores_with_expired(in_before timestamptz)
RETURNS TABLE (store_id bigint, name text)
LANGUAGE sql STABLE ROWS 100
AS $$
    SELECT a.store_id, a.name FROM weir_internal.adjunct_store a JOIN weir_internal.adjunct_version v USING (store_id)
    WHERE v.state = 'published' AND v.superseded_at <= in_before
      AND v.superseded_at + a.keep_versions * interval '1 second' <= clock_timestamp()
    UNION
    SELECT a.store_id, a.name FROM weir_internal.adjunct_store a JOIN weir_internal.adjunct_version v USING (store_id)
    WHERE v.history_from IS NOT NULL AND (a.history IS NULL
          OR v.clock <= weir_internal.time_clock(clock_timestamp()) - a.history * 1000000)
$$;
COMMENT ON FUNCTION weir_internal.stores_with_expired(timestamptz) IS 'The adjunct stores of which a version was superseded before a time, or has changes, for longer than it is kept.';

CREATE OR REPLACE FUNCTION weir_internal.stores_to_build(in_names text[])
RETURNS TABLE (store_id bigint, name text, code text, moved boolean, silent_attempts bigint)
LANGUAGE sql STABLE ROWS 100
AS $$
    SELECT a.store_id, a.name, n.code, w.moved, coalesce(b.silent_attempts, 0)
    FROM weir_internal.adjunct_store a JOIN weir_internal.stream s USING (stream_id)
    LEFT JOIN weir_internal.adjunct_version n ON n.store_id = a.store_id
        AND n.state = 'published' AND n.superseded_at IS NULL
    LEFT JOIN weir_internal.adjunct_version b ON b.store_id = a.store_id AND b.state = 'building'
    CROSS JOIN LATERAL (SELECT n.clock IS NULL OR n.clock < s.last_clock
        OR n.definition <> a.definition OR b.store_id IS NOT NULL AS moved) w
    WHERE s.state <> 'deleted' AND (w.moved OR n.code IS NOT NULL)
      AND CASE WHEN in_names IS NOT NULL THEN a.name = ANY (in_names)
          ELSE b.definition <> a.definition OR NOT weir_internal.rests(b.lease_until, b.silent_attempts) END
$$;
COMMENT ON FUNCTION weir_internal.stores_to_build(text[]) IS 'The adjunct stores (null: all that do not rest) that may have to be built, and those with functions, whose code may be another one.';

CREATE OR REPLACE FUNCTION weir_internal.readers_to_free(in_lease double precision)
RETURNS TABLE (group_id bigint, reader_id text)
LANGUAGE sql STABLE ROWS 100
AS $$
    SELECT r.group_id, r.reader_id FROM weir_internal.reader r
    WHERE weir_internal.reader_is_gone(r.lease_until, in_lease)
      AND (NOT EXISTS (SELECT FROM weir_internal.reader_batch b
                       WHERE b.group_id = r.group_id AND b.state = 'open' AND b.reader_id = r.reader_id)
           OR EXISTS (SELECT FROM weir_internal.reader_group_segment p
                      WHERE p.group_id = r.group_id AND p.reader_id = r.reader_id
                        AND (p.stream_id, p.segment_id) NOT IN (
                            SELECT h.stream_id, h.segment_id FROM weir_internal.held_segments(r.group_id) h)))
$$;
COMMENT ON FUNCTION weir_internal.readers_to_free(double precision) IS 'The readers whose lease is over, and who hold no open batch, or segments of which their open batch has nothing.';

CREATE OR REPLACE FUNCTION weir_internal.waiting_checkpoints()
RETURNS TABLE (group_id bigint, name text, created_at timestamptz, late boolean, waits boolean, lost boolean)
LANGUAGE sql STABLE ROWS 10
AS $$
    SELECT c.group_id, c.name, c.created_at, c.expires_at < clock_timestamp(),
        EXISTS (SELECT FROM weir_internal.reader_batch b WHERE b.group_id = c.group_id
                AND b.batch_id = ANY (c.waits_for) AND b.state = 'open'),
        EXISTS (SELECT FROM weir_internal.reader_batch b WHERE b.group_id = c.group_id
                AND b.batch_id = ANY (c.waits_for) AND b.state = 'abandoned')
    FROM weir_internal.checkpoint c WHERE c.state = 'waiting'
$$;
COMMENT ON FUNCTION weir_internal.waiting_checkpoints() IS 'The checkpoints that wait, whether for too long, whether for batches that are open, and whether one of these was abandoned.';

CREATE OR REPLACE FUNCTION weir_internal.streams_to_evaluate() RETURNS SETOF bigint
LANGUAGE sql STABLE ROWS 100
AS $$
    SELECT s.stream_id FROM weir_internal.stream s LEFT JOIN weir_internal.scale_evaluation e USING (stream_id)
    WHERE s.state = 'active' AND (e.policy <> s.scaling_policy OR s.scaling <> 'fixed' AND (e.stream_id IS NULL
          OR e.clock <> s.last_clock OR e.next_at <= clock_timestamp()))
$$;
COMMENT ON FUNCTION weir_internal.streams_to_evaluate() IS 'The streams whose decision about scaling may be another than the last one. One that was set to fixed is decided about once more.';

CREATE OR REPLACE FUNCTION weir_internal.garbage_due(in_grace double precision, in_again double precision, in_compacted double precision)
RETURNS SETOF weir_internal.garbage
LANGUAGE sql STABLE ROWS 1000
AS $$
    SELECT g.* FROM weir_internal.garbage g
    LEFT JOIN (
        SELECT r.stream_id, min(r.opened_at) AS since
        FROM weir_internal.batches_protecting_files(in_grace) r GROUP BY r.stream_id) reading USING (stream_id)
    WHERE g.garbage_since + CASE g.reason WHEN 'swept' THEN in_again WHEN 'compacted' THEN greatest(in_grace, in_compacted)
              WHEN 'erased' THEN 0 ELSE in_grace END * interval '1 second' <= clock_timestamp()
      AND (reading.since IS NULL OR reading.since > g.garbage_since)
      AND (g.root <> '' OR NOT EXISTS (
          SELECT FROM weir_internal.held_garbage h
          WHERE h.stream_id = coalesce(g.stream_id, 0) AND h.path = g.path
            AND (g.reason <> 'erased' OR h.erased_too
                 AND g.garbage_since + in_grace * interval '1 second' > clock_timestamp())))
$$;
COMMENT ON FUNCTION weir_internal.garbage_due(double precision, double precision, double precision) IS 'The garbage that may be deleted by its time, that no open batch may need, and that no annex holds: for so many seconds, folders once more after others, compacted files after others.';

-- What a copy of the database's disk from before would not have. While nothing is appended, opened or built, no sweep
-- needs to be counted.
CREATE OR REPLACE FUNCTION weir_internal.sweep_is_to_count() RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT i.swept_at IS NULL
        OR EXISTS (SELECT FROM weir_internal.transaction t WHERE t.clock > weir_internal.time_clock(i.swept_at))
        OR EXISTS (SELECT FROM weir_internal.reader_batch b WHERE b.state = 'open' AND b.opened_at > i.swept_at)
        OR EXISTS (SELECT FROM weir_internal.reader_batch b WHERE b.state <> 'open' AND b.ended_at > i.swept_at)
        OR EXISTS (SELECT FROM weir_internal.compaction c WHERE c.begun_at > i.swept_at)
        OR EXISTS (SELECT FROM weir_internal.adjunct_version v WHERE v.started_at > i.swept_at)
    FROM weir_internal.installation i
$$;
COMMENT ON FUNCTION weir_internal.sweep_is_to_count() IS 'Whether something was written since the last sweep: a later sweep is to show that a backup from before is older.';

CREATE OR REPLACE FUNCTION weir_internal.streams_with_small_files(in_names text[], in_bytes bigint, in_events bigint,
    in_fewest bigint, in_among bigint, in_thorough boolean, in_holder text)
RETURNS TABLE (stream_id bigint, segment_id bigint, start_offset bigint, events bigint, bytes bigint,
               schema_version integer, transaction_number bigint, path text, erased bigint, apart boolean)
LANGUAGE sql STABLE ROWS 1000
AS $$
    WITH last AS (
        SELECT DISTINCT ON (c.stream_id) c.stream_id, c.apart, c.begun_at
        FROM weir_internal.compaction c WHERE c.state = 'done' ORDER BY c.stream_id, c.number DESC)
    SELECT f.stream_id, f.segment_id, f.start_offset, f.events, f.bytes, f.schema_version, f.transaction_number, f.path,
           f.erased, l.apart
    FROM weir_internal.small_files((SELECT array_agg(n.stream_id) FROM weir_internal.stream n
                                    WHERE n.state <> 'deleted' AND n.stream_name = ANY (in_names)),
                                   in_bytes, in_events, in_fewest, in_among) f
    JOIN weir_internal.stream s ON s.stream_id = f.stream_id AND s.state <> 'deleted'
        AND (in_names IS NULL OR s.stream_name = ANY (in_names))
    LEFT JOIN last l ON l.stream_id = f.stream_id AND l.apart
    WHERE NOT EXISTS (SELECT FROM weir_internal.compaction c
                      WHERE c.stream_id = f.stream_id AND c.state = 'open' AND c.holder IS DISTINCT FROM in_holder)
      AND (in_thorough OR l.apart IS NULL OR s.last_clock > weir_internal.time_clock(l.begun_at))
$$;
COMMENT ON FUNCTION weir_internal.streams_with_small_files(text[], bigint, bigint, bigint, bigint, boolean, text) IS 'The small files of streams (null: all) that have so many such neighbours; unless thorough not of those in which the last compaction found nothing that can be put together, until something is committed there.';

-- A trigger asks this in a triggerer, where triggers of others run, too: so it says no more than this. What is asked and
-- cannot be answered is work. History is pruned once a day: a day more of it does no harm.
CREATE OR REPLACE FUNCTION weir_internal.work(in_jobs text[], in_settings jsonb) RETURNS TABLE (job text, what text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 10
AS $$
    WITH s AS MATERIALIZED (
        SELECT * FROM jsonb_to_record(in_settings) AS s (
            grace_period double precision, compacted_grace double precision, transaction_max double precision,
            transaction_lease double precision, reader_lease double precision, pack_after double precision,
            file_bytes bigint, compact_bytes bigint, compact_time double precision)
    )
    SELECT j, 'it always looks at everything' FROM unnest(in_jobs) j
    WHERE j NOT IN ('stream_cuts', 'adjunct', 'checkpoints', 'scale', 'retention', 'upkeep')
    UNION ALL
    SELECT j, 'it did not succeed within a day, or failed since' FROM unnest(in_jobs) j
    WHERE NOT coalesce((
        SELECT r.state = 'succeeded' FROM weir_internal.job_run r
        WHERE r.job = j AND r.started_at > clock_timestamp() - interval '1 day'
          AND r.login IN (SELECT weir_internal.logins_of_jobs()) AND NOT EXISTS (
            SELECT FROM jsonb_each(CASE WHEN jsonb_typeof(r.arguments) = 'object' THEN r.arguments END) a
            WHERE a.value NOT IN ('false', '[]', '""', 'null'))
        ORDER BY r.started_at DESC LIMIT 1), false)
    UNION ALL
    SELECT 'stream_cuts', 'streams have moved' WHERE 'stream_cuts' = ANY (in_jobs)
        AND EXISTS (SELECT FROM weir_internal.tails_to_record() t WHERE t.turn)
    UNION ALL
    SELECT 'adjunct', 'versions of stores have expired' WHERE 'adjunct' = ANY (in_jobs)
        AND EXISTS (SELECT FROM weir_internal.stores_with_expired((
            SELECT clock_timestamp() - min(a.keep_versions) * interval '1 second' FROM weir_internal.adjunct_store a)))
    UNION ALL
    SELECT 'adjunct', 'stores are behind, or have functions' WHERE 'adjunct' = ANY (in_jobs)
        AND EXISTS (SELECT FROM weir_internal.stores_to_build(NULL))
    UNION ALL
    SELECT 'checkpoints', 'readers are gone' FROM s WHERE 'checkpoints' = ANY (in_jobs)
        AND EXISTS (SELECT FROM weir_internal.readers_to_free(s.reader_lease))
    UNION ALL
    SELECT 'checkpoints', 'checkpoints wait no longer' WHERE 'checkpoints' = ANY (in_jobs)
        AND EXISTS (SELECT FROM weir_internal.waiting_checkpoints() c WHERE c.late OR c.lost OR NOT c.waits)
    UNION ALL
    SELECT 'checkpoints', 'reader groups have moved' WHERE 'checkpoints' = ANY (in_jobs)
        AND EXISTS (SELECT FROM weir_internal.reader_group g WHERE g.moved_at > g.checkpointed_at)
    UNION ALL
    SELECT 'scale', 'streams may have another load' WHERE 'scale' = ANY (in_jobs)
        AND EXISTS (SELECT FROM weir_internal.streams_to_evaluate())
    UNION ALL
    SELECT 'retention', 'decisions about streams are due' WHERE 'retention' = ANY (in_jobs)
        AND EXISTS (SELECT FROM weir_internal.retention_due())
    UNION ALL
    SELECT 'retention', 'a sweep is to be counted' WHERE 'retention' = ANY (in_jobs)
        AND weir_internal.sweep_is_to_count()
    UNION ALL
    SELECT j, 'garbage may be deleted' FROM unnest(in_jobs) j CROSS JOIN s WHERE j IN ('retention', 'upkeep')
        AND EXISTS (SELECT FROM weir_internal.garbage_due(s.grace_period, s.transaction_max, s.compacted_grace))
    UNION ALL
    SELECT 'upkeep', 'appends were given up' FROM s WHERE 'upkeep' = ANY (in_jobs)
        AND EXISTS (SELECT FROM weir_internal.transaction t
                    WHERE t.state = 'open' AND weir_internal.lease_is_over(t.lease_until, s.transaction_lease))
    UNION ALL
    SELECT 'upkeep', 'staged rows were left' WHERE 'upkeep' = ANY (in_jobs)
        AND EXISTS (SELECT FROM weir_internal.abandoned_staging())
    UNION ALL
    SELECT 'upkeep', 'compactions were given up' WHERE 'upkeep' = ANY (in_jobs)
        AND EXISTS (SELECT FROM weir_internal.compaction c
                    WHERE c.state = 'open' AND weir_internal.lease_is_over(c.lease_until, 0))
    UNION ALL
    SELECT 'upkeep', 'old commits can be packed' FROM s WHERE 'upkeep' = ANY (in_jobs) AND s.pack_after > 0
        AND EXISTS (SELECT FROM weir_internal.commits_to_pack(
            weir_internal.now_clock() - (s.pack_after * 1000000)::bigint, 4096))
    UNION ALL
    SELECT 'upkeep', 'small files can be put together' FROM s
    WHERE 'upkeep' = ANY (in_jobs) AND s.compact_bytes > 0 AND s.compact_time > 0
        AND EXISTS (SELECT FROM weir_internal.streams_with_small_files(
            NULL, s.file_bytes / 2, 500000, 8, NULL, false, NULL))
-- each annex: work.sql
$$;
COMMENT ON FUNCTION weir_internal.work(text[], jsonb) IS 'Of some jobs, by the settings of an installation, those that may have something to do, and what.';

-- For who has no settings of an installation at hand: by what has waited for hours, whatever they are. An old run alone
-- says nothing, as none begins where nothing is to do. In the first hour of the server, what starts with it had no chance.
CREATE OR REPLACE FUNCTION weir_internal.jobs_not_run() RETURNS TABLE (job text, last timestamptz, by_hand boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT p.job, r.last, coalesce(r.by_hand, false)
    FROM (VALUES ('stream_cuts', 1), ('adjunct', 1), ('checkpoints', 1), ('scale', 1), ('retention', 4), ('upkeep', 26)) AS p (job, hours)
    CROSS JOIN weir_internal.installation i
    LEFT JOIN LATERAL (  -- a range of jobs: see begin_append
        SELECT CASE o.state WHEN 'running' THEN o.updated_at ELSE o.started_at END AS last, o.dag_id = 'by hand' AS by_hand
        FROM weir_internal.job_run o WHERE o.job >= p.job AND o.job <= p.job AND o.login IN (SELECT weir_internal.logins_of_jobs())
        ORDER BY o.job DESC, o.started_at DESC LIMIT 1) r ON true
    CROSS JOIN LATERAL (
        SELECT coalesce(r.last, i.created_at) AS since,
               clock_timestamp() - CASE WHEN r.by_hand THEN 168 ELSE p.hours END * interval '1 hour' AS until OFFSET 0) t
    WHERE t.since < t.until AND weir_internal.lease_is_over(t.since, 3600) AND CASE p.job
        WHEN 'retention' THEN EXISTS (
            SELECT FROM weir_internal.retention_due(t.until) d JOIN weir_internal.stream s USING (stream_id)
            WHERE s.retention <> 'keep')
        WHEN 'checkpoints' THEN EXISTS (
            SELECT FROM weir_internal.reader_group g JOIN weir_internal.reader_batch b ON b.group_name = g.name
            WHERE g.moved_at > g.checkpointed_at AND b.committed_at > greatest(g.checkpointed_at, t.since) AND b.committed_at < t.until)
        ELSE EXISTS (SELECT FROM weir_internal.transaction n
                     WHERE n.clock > weir_internal.time_clock(t.since) AND n.clock < weir_internal.time_clock(t.until))
            AND (p.job = 'upkeep' OR EXISTS (
                SELECT FROM (
                    SELECT q.stream_id FROM weir_internal.capture_queue q WHERE p.job = 'stream_cuts'
                    UNION ALL
                    SELECT a.stream_id FROM weir_internal.stores_to_build(NULL) b JOIN weir_internal.adjunct_store a USING (store_id)
                    WHERE b.moved AND p.job = 'adjunct'
                    UNION ALL
                    SELECT e FROM weir_internal.streams_to_evaluate() e WHERE p.job = 'scale') w
                JOIN weir_internal.stream s USING (stream_id)
                WHERE (p.job <> 'stream_cuts' OR coalesce(s.cuts_every, 0) < 3600)
                  AND EXISTS (SELECT FROM weir_internal.transaction n
                              WHERE n.stream_name = s.stream_name AND weir_internal.clock_time(n.clock) > t.since
                                AND weir_internal.clock_time(n.clock) < t.until))) END
$$;
COMMENT ON FUNCTION weir_internal.jobs_not_run() IS 'The jobs with a schedule that have not begun for long, though there was work all the time, and when they last did; null: never. What a person last began may wait for a week.';
