-- What somebody should do something about now: one rule for each state, for the pages, the terminal, alerts and metrics.
-- Each part finds the few that may be in its state by an index or a cheap comparison, and looks at these closely, so that
-- ten thousand streams that are well cost little. A page asks for a stream or a group by its name.

CREATE OR REPLACE VIEW weir.troubles AS
SELECT 'old transaction' AS kind, CASE WHEN t.since < clock_timestamp() - interval '1 hour' THEN 'red' ELSE 'amber' END AS severity,
       t.who AS subject, NULL::text AS stream, NULL::text AS reader_group, t.since, 'an old transaction' AS words,
       format('A transaction of %s has been open for long: commits wait for it to be versions, and nothing is vacuumed.', t.who) AS sentence,
       CASE WHEN t.pid IS NULL THEN 'if it is stuck, end it in its database: ROLLBACK PREPARED ' || quote_literal(t.gid)
            ELSE format('if it is stuck, end it: SELECT pg_terminate_backend(%s)', t.pid) END AS advice,
       NULL::text AS action, '{}'::jsonb AS given, NULL::text AS page, '{}'::jsonb AS query
FROM (
    SELECT a.pid, NULL::text AS gid, a.xact_start AS since, format('session %s of %s in database %s', a.pid, a.usename, a.datname) AS who
    FROM pg_stat_activity a
    WHERE a.backend_type = 'client backend' AND (a.backend_xid IS NOT NULL OR a.backend_xmin IS NOT NULL OR a.state LIKE 'idle in%')
      AND a.xact_start < clock_timestamp() - interval '10 minutes'
    UNION ALL
    SELECT NULL, p.gid, p.prepared, format('%s, prepared as %s in database %s', p.owner, quote_literal(p.gid), p.database)
    FROM pg_prepared_xacts p
    WHERE p.prepared < clock_timestamp() - interval '10 minutes' AND pg_has_role(p.owner, 'USAGE')
    UNION ALL  -- one for which commits wait already, or whose beginning is hidden from this login
    SELECT v.pid, NULL, v.waiting_since, format('session %s of %s in database %s', v.pid, v.login, v.database)
    FROM weir.waiting_versions v
    WHERE v.waiting_since < clock_timestamp() - interval '1 minute' AND v.pid IS NOT NULL
      AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = v.pid AND a.xact_start < clock_timestamp() - interval '10 minutes')) t
UNION ALL
SELECT 'disk full', CASE WHEN d.free < 0.03 * d.size THEN 'red' ELSE 'amber' END, d.root, NULL, NULL, r.updated_at, 'a full disk',
       format('The disk of %s has %s %% left.', d.root, floor(100 * d.free / d.size)),
       'delete what else is on it, let streams keep less, or give it more', NULL, '{}', 'retention', '{}'
FROM (SELECT j.report, j.updated_at FROM weir_internal.job_run j
      WHERE j.job = 'upkeep' AND j.report ? 'disks' AND j.started_at > clock_timestamp() - interval '2 days'
        AND j.login IN (SELECT weir_internal.logins_of_jobs())
      ORDER BY j.started_at DESC LIMIT 1) r
CROSS JOIN LATERAL jsonb_to_recordset(r.report -> 'disks') AS d (root text, free double precision, size double precision)
WHERE d.free < 0.1 * d.size
UNION ALL
SELECT 'clock ahead', 'amber', 'clock', NULL, NULL, NULL, 'a clock was ahead',
       format('%s later than now, up to %s UTC: Postgres''s clock was ahead, or is behind. The first is %s.',
              weir_internal.counted(count(*), 'time') || CASE WHEN count(*) = 1 THEN ' is' ELSE ' are' END,
              to_char(max(c.at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), (array_agg(c.what || ' ' || c.name ORDER BY c.at DESC, c.what, c.name))[1]),
       'mend Postgres''s clock if it is behind; else the view weir.clocks_ahead says what waits until then', NULL, '{}', NULL, '{}'
FROM weir.clocks_ahead c HAVING count(*) > 0
UNION ALL
SELECT 'not announced', 'amber', n.airflow, CASE n.streams WHEN 1 THEN n.first END, NULL, n.since, 'Airflow is not told',
       format('Airflow %s is not told what comes to %s.', quote_literal(n.airflow),
              CASE n.streams WHEN 1 THEN 'stream ' || n.first ELSE weir_internal.counted(n.streams, 'stream') || '; the first is ' || n.first END),
       'let its triggerer run, or unpause the DAGs that wait for that', NULL, '{}', 'stream', jsonb_build_object('name', n.first)
FROM (  -- one line: all wait if its triggerer is down. From one stream that has something to the next, as in to_announce
    WITH RECURSIVE q AS (
        (SELECT a.airflow, a.kind, a.stream_name FROM weir_internal.announcement a ORDER BY a.airflow, a.kind, a.stream_name LIMIT 1)
        UNION ALL
        SELECT n.* FROM q CROSS JOIN LATERAL (
            SELECT a.airflow, a.kind, a.stream_name FROM weir_internal.announcement a
            WHERE (a.airflow, a.kind, a.stream_name) > (q.airflow, q.kind, q.stream_name)
            ORDER BY a.airflow, a.kind, a.stream_name LIMIT 1) n
    )
    SELECT w.airflow, count(DISTINCT w.stream_name) AS streams, (array_agg(w.stream_name ORDER BY a.clock, w.stream_name))[1] AS first,
           weir_internal.clock_time(min(a.clock)) AS since
    FROM q JOIN weir_internal.watch w USING (airflow, kind, stream_name)
    JOIN (SELECT o.airflow, max(o.seen_at) AS seen_at FROM weir_internal.watch o GROUP BY o.airflow) l USING (airflow)
    CROSS JOIN LATERAL (
        SELECT min(o.clock) AS clock FROM (
            (SELECT t.clock FROM weir_internal.announcement a JOIN weir_internal.transaction t USING (stream_id, transaction_number)
             WHERE a.airflow = w.airflow AND a.kind = w.kind AND a.stream_name = w.stream_name AND a.transaction_number > 0
             ORDER BY a.transaction_number LIMIT 1)
            UNION ALL  -- a statement of completeness
            (SELECT -a.transaction_number FROM weir_internal.announcement a
             WHERE a.airflow = w.airflow AND a.kind = w.kind AND a.stream_name = w.stream_name AND a.transaction_number < 0
             ORDER BY a.transaction_number DESC LIMIT 1)) o) a
    WHERE a.clock < weir_internal.now_clock() - 3600000000
      AND w.seen_at > l.seen_at - interval '1 day'  -- else somebody has paused its DAG, as the triggerer goes on to want others
    GROUP BY w.airflow) n
-- each annex: troubles.sql
UNION ALL
SELECT a.alert, CASE a.alert WHEN 'lost' THEN 'red' ELSE 'amber' END, a.stream || ' ' || a.reader_group, a.stream, a.reader_group, max(a.at),
       CASE a.alert WHEN 'lost' THEN 'lost unread events' WHEN 'soon lost' THEN 'will lose unread events'
            ELSE 'has timed out and holds nothing back' END,
       (array_agg(upper(left(a.message, 1)) || substr(a.message, 2) ORDER BY a.at DESC))[1] || '.',
       CASE a.alert WHEN 'lost' THEN 'let it read oftener, or let the stream keep more'
            ELSE 'let its readers run, or let the stream keep more' END,
       'update_stream', jsonb_build_object('stream', a.stream), 'stream', jsonb_build_object('name', a.stream)
FROM weir.retention_alerts a GROUP BY a.stream, a.reader_group, a.alert
UNION ALL
SELECT 'reader died', CASE WHEN EXISTS (
           SELECT FROM weir_internal.reader o WHERE o.group_id = g.group_id AND NOT weir_internal.reader_is_gone(o.lease_until, 120))
           THEN 'amber' ELSE 'red' END,
       g.name, NULL, g.name, d.since, CASE WHEN d.readers = 1 THEN 'its reader died' ELSE d.readers || ' readers died' END,
       format('%s of reader group %s died over %s.', CASE WHEN d.readers = 1 THEN 'Reader ' || d.first ELSE weir_internal.counted(d.readers, 'reader') END,
              g.name, weir_internal.counted(d.events, 'event')),
       'run a reader of the group again: it takes over what they read', 'process',
       jsonb_build_object('reader_group', g.name), 'group', jsonb_build_object('name', g.name)
FROM (SELECT b.group_id, count(*) AS readers, sum(b.events)::bigint AS events, min(b.reader_id) AS first,
             min(CASE WHEN r.lease_until > b.opened_at THEN r.lease_until ELSE b.opened_at END) AS since
      FROM weir_internal.reader_batch b JOIN weir_internal.reader r USING (group_id, reader_id)
      WHERE b.state = 'open' AND weir_internal.reader_is_gone(r.lease_until, 120) GROUP BY b.group_id) d
JOIN weir_internal.reader_group g USING (group_id)
UNION ALL
SELECT w.kind, CASE WHEN w.kind = 'no reader' AND w.since + w.patience < clock_timestamp() - interval '1 day' THEN 'red' ELSE 'amber' END,
       g.name, NULL, g.name, w.since,
       CASE w.kind WHEN 'no reader' THEN 'no reader' WHEN 'falls behind' THEN 'won''t catch up' ELSE 'makes no progress' END,
       format(CASE w.kind WHEN 'no reader' THEN 'Nobody reads for group %s: %s wait.'
                          WHEN 'falls behind' THEN 'Reader group %s won''t catch up at its pace of the last hour: %s wait.'
                          ELSE 'The readers of group %s have committed nothing for an hour: %s wait.' END,
              g.name, weir_internal.counted(w.events, 'event')),
       CASE w.kind WHEN 'no reader' THEN 'start its readers, or unpause their DAG; delete the group if nobody needs it'
                   WHEN 'falls behind' THEN 'give it more readers, and the streams more segments'
                   ELSE 'look at what its newest run says; take a reader that hangs offline' END,
       CASE w.kind WHEN 'no reader' THEN 'process' WHEN 'falls behind' THEN 'process' ELSE 'reader_offline' END,
       jsonb_build_object('reader_group', g.name), 'group', jsonb_build_object('name', g.name)
FROM (  -- those that have something to read, and have read nothing of the last ten minutes; an equality is taken for rare
    SELECT DISTINCT o.group_id, o.name, o.moved_at
    FROM weir_internal.reader_group o JOIN weir_internal.reader_group_segment p USING (group_id)
    JOIN weir_internal.reader_group_stream gs USING (group_id, stream_id)
    LEFT JOIN weir_internal.segment_tail t USING (stream_id, segment_id)
    WHERE p.state IN ('assigned', 'unassigned') AND coalesce(sign(t.tail_offset - p.next_offset), 1) = 1
      AND coalesce(gs.newest_read - coalesce(gs.hole, 0), 0) < (SELECT weir_internal.now_clock() - 600000000)) g
CROSS JOIN LATERAL (
    SELECT EXISTS (SELECT FROM weir_internal.reader r WHERE r.group_id = g.group_id
                   AND NOT weir_internal.reader_is_gone(r.lease_until, 120)) AS is_read OFFSET 0) r
CROSS JOIN LATERAL (
    SELECT weir_internal.patience_with(g.name) AS patience, c.unread_events AS events, c.behind_since AS behind, c.read_rate, c.catch_up
    FROM weir.catch_up c WHERE c.reader_group = g.name) l
CROSS JOIN LATERAL (
    SELECT 'no reader' AS kind, l.patience, l.events, l.behind AS since
    WHERE NOT r.is_read AND greatest(l.behind, g.moved_at) + l.patience < clock_timestamp()
      AND NOT EXISTS (SELECT FROM weir_internal.reader_batch b JOIN weir_internal.reader o USING (group_id, reader_id)
                      WHERE b.group_id = g.group_id AND b.state = 'open')
    UNION ALL
    SELECT CASE WHEN l.read_rate IS NULL THEN 'no progress' ELSE 'falls behind' END, l.patience, l.events, l.behind
    WHERE r.is_read AND l.catch_up IS NULL AND l.behind < clock_timestamp() - interval '10 minutes'
      AND (l.read_rate IS NOT NULL OR NOT EXISTS (
          SELECT FROM weir_internal.reader o WHERE o.group_id = g.group_id AND o.joined_at > clock_timestamp() - interval '1 hour'))) w
WHERE r.is_read OR g.moved_at < clock_timestamp() - interval '10 minutes'
UNION ALL
SELECT 'not run', CASE WHEN bool_or(j.job IN ('upkeep', 'retention') AND j.last IS NOT NULL AND NOT j.by_hand) THEN 'red' ELSE 'amber' END, 'weir',
       NULL, NULL, max(j.last), 'jobs do not run',
       format('There is work for %s, and no run began %s.', string_agg('weir_' || j.job, ', ' ORDER BY j.job),
              coalesce('since ' || to_char(max(j.last) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') || ' UTC', 'yet')),
       'start Airflow, or unpause these DAGs; without Airflow, run their jobs yourself from time to time',
       (array_agg(j.job ORDER BY j.job DESC))[1], '{}', 'runs', '{}'
FROM weir_internal.jobs_not_run() j HAVING count(*) > 0
UNION ALL  -- last: a page takes the first hundred, and there may be a failed run for each file
SELECT CASE WHEN j.runs THEN 'run stuck' ELSE 'run failed' END, CASE j.dag_id WHEN 'by hand' THEN 'amber' ELSE 'red' END,
       concat_ws('/', j.dag_id, j.task_id, nullif(j.map_index, -1)), NULL, NULL, j.first,
       CASE WHEN j.runs THEN 'a run is stuck' ELSE 'a run failed' END,
       CASE WHEN j.runs THEN format('The run %s of %s (%s) gives no sign of life.', j.run_id, j.dag_id, j.job)
            ELSE format('The run %s of %s (%s) %s', j.run_id, j.dag_id, j.job,
                        CASE j.state WHEN 'killed' THEN 'was killed' ELSE 'failed' END || coalesce(': ' || j.error, '.')) END
           || CASE WHEN j.number > 1 THEN format(' It is the newest of %s since %s UTC.', j.number,
                                                 to_char(j.first AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')) ELSE '' END,
       CASE WHEN j.runs THEN 'look at its log, end it if it hangs' ELSE 'mend what its sentence names' END || ', and run it again' || CASE j.dag_id WHEN 'by hand' THEN '' ELSE ': clear its task in Airflow' END,
       NULL, '{}', 'run', jsonb_build_object('dag_id', j.dag_id, 'run_id', j.run_id, 'task_id', j.task_id, 'map_index', j.map_index)
FROM (
    SELECT j.*, s.runs, row_number() OVER (w ORDER BY s.ours DESC, j.updated_at DESC) AS nth, count(*) OVER w AS number,
           min(j.updated_at) OVER w AS first
    FROM weir_internal.job_run j CROSS JOIN LATERAL (
        SELECT j.state = 'running' AS runs, j.login IN (SELECT weir_internal.logins_of_jobs()) AS ours) s
    WHERE j.state IN ('failed', 'killed', 'running')  -- who starts a run by hand sees how it ends
      AND j.updated_at > clock_timestamp() - CASE WHEN j.dag_id = 'by hand' OR starts_with(j.run_id, 'manual__')
                                                  THEN interval '1 day' ELSE interval '7 days' END
      AND (NOT s.runs OR weir_internal.run_is_stuck(j.state, j.updated_at))
      AND NOT EXISTS (
          SELECT FROM (
              SELECT o.login FROM weir_internal.job_run o  -- a later try
              WHERE o.dag_id = j.dag_id AND o.run_id = j.run_id AND o.task_id = j.task_id AND o.map_index = j.map_index
                AND o.try_number > j.try_number
              UNION ALL  -- or the same, asked for anew
              SELECT o.login FROM weir_internal.job_run o
              WHERE o.started_at > j.started_at AND o.job = j.job AND jsonb_hash(o.arguments) = jsonb_hash(j.arguments)
                AND o.arguments = j.arguments AND o.state = 'succeeded') o
          WHERE NOT s.ours OR o.login IN (SELECT weir_internal.logins_of_jobs()))  -- a team's hides none of a login of jobs
    WINDOW w AS (PARTITION BY s.runs, j.dag_id, j.task_id, j.map_index)) j
WHERE j.nth = 1;
COMMENT ON VIEW weir.troubles IS 'What is wrong now and somebody should do something about, each in a sentence: what the pages, `weir doctor`, alerts and metrics show. Empty where all is well.';
COMMENT ON COLUMN weir.troubles.kind IS 'old transaction; disk full; clock ahead; not announced, for an hour, of a paused DAG for a day; run failed: of a task with a schedule for a week, until the same is done, else for a day; run stuck: it gives no sign of life; not run: jobs with a schedule, though there has been work for long; lost, soon lost, timed out: as in weir.retention_alerts; reader died, over an open batch; no reader: though events wait for longer than usual; falls behind: it won''t catch up at this pace; no progress; damage, not published, and others of annexes.';
COMMENT ON COLUMN weir.troubles.severity IS 'red: something is lost, stands still or will; amber: it will, if nobody looks at it.';
COMMENT ON COLUMN weir.troubles.subject IS 'What it is about; with the kind, its identity.';
COMMENT ON COLUMN weir.troubles.stream IS 'The stream; null if it is about none alone.';
COMMENT ON COLUMN weir.troubles.reader_group IS 'The reader group; null if it is about none.';
COMMENT ON COLUMN weir.troubles.since IS 'Since when, or when it happened or will; null if that is not known.';
COMMENT ON COLUMN weir.troubles.words IS 'What it is in a few words, behind the name of what it is about.';
COMMENT ON COLUMN weir.troubles.sentence IS 'What it is.';
COMMENT ON COLUMN weir.troubles.advice IS 'What to do about it.';
COMMENT ON COLUMN weir.troubles.action IS 'The action that may help, as in weir.job_runs; null: none.';
COMMENT ON COLUMN weir.troubles.given IS 'What that action is given.';
COMMENT ON COLUMN weir.troubles.page IS 'The page that shows it; null: none.';
COMMENT ON COLUMN weir.troubles.query IS 'Of what, as the query of the address of that page.';
