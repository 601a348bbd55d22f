-- Appends are few beside their events, and a span of hours is looked at once, however many appends have it.
CREATE OR REPLACE FUNCTION weir_internal.calendar(in_stream text, in_before date, in_days integer)
RETURNS TABLE (day date, hours text[], files bigint, appends bigint, failed bigint)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp ROWS 14
AS $$
    WITH s AS MATERIALIZED (
        SELECT o.stream_name, o.event_time IS NOT NULL AS timed, statement_timestamp() AT TIME ZONE 'UTC' AS now,
               weir_internal.clock_time(o.complete_until) AT TIME ZONE 'UTC' AS until,
               weir_internal.clock_time(o.newest_event_time) AT TIME ZONE 'UTC' AS newest,
               o.next_transaction_number - 10000 AS oldest
        FROM weir_internal.stream o WHERE o.stream_name = in_stream AND o.state <> 'deleted'
    ), days AS MATERIALIZED (
        SELECT d.day::date AS day FROM s
        CROSS JOIN LATERAL (SELECT least(in_before, greatest(s.now, least(coalesce(s.newest, s.now), s.now + interval '1 day'))::date + 1)
            AS past) l
        CROSS JOIN LATERAL generate_series(l.past - in_days, l.past - 1, interval '1 day') AS d (day)
    ), append AS MATERIALIZED (
        SELECT t.transaction_number, t.stream_id,
               weir_internal.clock_time(CASE WHEN s.timed THEN t.min_event_time ELSE t.clock END) AT TIME ZONE 'UTC' AS since,
               weir_internal.clock_time(CASE WHEN s.timed THEN t.max_event_time ELSE t.clock END) AT TIME ZONE 'UTC' AS until
        FROM s JOIN weir_internal.transaction t USING (stream_name)
        WHERE t.transaction_number >= s.oldest AND t.state = 'committed'  -- a LIMIT would sort all that there are
    ), span AS MATERIALIZED (
        SELECT DISTINCT date_trunc('hour', a.since) AS since, date_trunc('hour', a.until) AS until FROM append a
        WHERE a.until >= (SELECT min(d.day) FROM days d) AND a.since < (SELECT max(d.day) + 1 FROM days d)
    ), of_day AS MATERIALIZED (
        SELECT a.since::date AS day, count(*) AS appends, sum((
            SELECT count(*) FROM weir_internal.transaction_input i
            WHERE i.stream_id = a.stream_id AND i.transaction_number = a.transaction_number))::bigint AS files
        FROM append a JOIN days d ON d.day = a.since::date GROUP BY 1
    ), refused AS MATERIALIZED (
        SELECT (j.started_at AT TIME ZONE 'UTC')::date AS day, count(*) AS failed
        FROM weir_internal.job_run j CROSS JOIN s
        WHERE j.started_at >= (SELECT min(d.day) FROM days d)::timestamp AT TIME ZONE 'UTC'
          AND j.started_at < (SELECT max(d.day) + 1 FROM days d)::timestamp AT TIME ZONE 'UTC'
          AND j.job IN ('ingest', 'append') AND j.state IN ('failed', 'killed')
          AND j.arguments ->> 'stream' = s.stream_name
          AND NOT EXISTS (
              SELECT FROM weir_internal.job_run k
              WHERE k.dag_id = j.dag_id AND k.run_id = j.run_id AND k.task_id = j.task_id AND k.map_index = j.map_index
                AND k.try_number > j.try_number)
        GROUP BY 1)
    SELECT d.day, h.hours, coalesce(o.files, 0), coalesce(o.appends, 0), coalesce(r.failed, 0)
    FROM s CROSS JOIN days d CROSS JOIN (SELECT min(a.since) AS since FROM append a) f
    CROSS JOIN LATERAL (
        SELECT array_agg(CASE
            WHEN b.has AND s.until >= b.hour + interval '1 hour' THEN 'complete'
            WHEN b.has THEN 'events'
            WHEN b.hour > s.now THEN 'ahead'
            WHEN s.oldest > 1 THEN 'not known'
            WHEN s.until >= b.hour + interval '1 hour' AND b.hour > f.since THEN 'missing'
            ELSE 'none' END ORDER BY b.hour) AS hours
        FROM (SELECT g.hour, EXISTS (SELECT FROM span p WHERE g.hour BETWEEN p.since AND p.until) AS has
              FROM generate_series(d.day::timestamp, d.day + interval '23 hours', interval '1 hour') AS g (hour)) b) h
    LEFT JOIN of_day o ON o.day = d.day
    LEFT JOIN refused r ON r.day = d.day
$$;
COMMENT ON FUNCTION weir_internal.calendar(text, date, integer) IS 'Days of a stream before one, by event time if it has one, else by when it was appended. hours: of each of 24 whether it is complete, by what its writers state; missing is one after the first event that is complete without an event. files and appends: those that begin on the day. failed: tasks that should have appended to it, and did not. It looks at the newest 10,000 appends.';
