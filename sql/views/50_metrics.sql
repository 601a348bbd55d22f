CREATE OR REPLACE VIEW weir.cost AS
SELECT g.name AS reader_group, r.function, r.since, r.batches, r.attempts, r.events, r.seconds, r.read_bytes,
       r.written_bytes, coalesce(k.held, 0) AS kept_bytes, coalesce(k.alone, 0) AS kept_alone_bytes
FROM weir_internal.reader_group g
LEFT JOIN LATERAL (
    SELECT b.function, min(b.opened_at) AS since, count(*) AS batches, sum(b.attempt)::bigint AS attempts,
           sum(b.events)::bigint AS events,
           sum(extract(epoch FROM b.ended_at - b.opened_at))::double precision AS seconds,
           sum(b.bytes)::bigint AS read_bytes, coalesce(sum(w.bytes), 0)::bigint AS written_bytes
    FROM weir_internal.reader_batch b
    LEFT JOIN LATERAL (
        SELECT sum(t.bytes) AS bytes
        FROM jsonb_array_elements(b.outputs) o
        JOIN weir_internal.transaction t ON t.stream_id = (o ->> 'stream_id')::bigint
            AND t.transaction_number = (o ->> 'transaction_number')::bigint
        WHERE o ->> 'kind' = 'stream') w ON true
    WHERE b.group_name = g.name AND b.state <> 'open'
    GROUP BY b.function) r ON true
LEFT JOIN LATERAL (
    SELECT sum(held.bytes)::bigint AS held,
           sum(greatest(0, without.bytes - held_by_all.bytes))::bigint AS alone
    FROM weir_internal.reader_group_stream gs
    JOIN weir_internal.stream s ON s.stream_id = gs.stream_id AND s.state <> 'deleted' AND s.retention = 'consumed'
    CROSS JOIN LATERAL weir_internal.unread_from(gs.stream_id, gs.released_cut, s.head, gs.end_cut) held
    CROSS JOIN LATERAL (
        SELECT array_agg(DISTINCT weir_internal.join_cuts(s.stream_id, u.cut, s.head)) AS cuts,
               array_agg(DISTINCT weir_internal.join_cuts(s.stream_id, u.cut, s.head))
                   FILTER (WHERE u.group_id <> gs.group_id) AS others
        FROM weir_internal.subscribers_to_ask(s.stream_id) u
        WHERE coalesce(u.times_out_at > clock_timestamp(), true)) c
    CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, coalesce(
        weir_internal.meet_cuts(s.stream_id, c.others), weir_internal.tail_cut(s.stream_id))) without
    CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, coalesce(
        weir_internal.meet_cuts(s.stream_id, c.cuts), weir_internal.tail_cut(s.stream_id))) held_by_all
    WHERE gs.group_id = g.group_id AND g.subscriber) k ON true;
COMMENT ON VIEW weir.cost IS 'What each consumer costs: the time and bytes of its batches that are not pruned yet (job_history), and what its group makes streams keep.';
COMMENT ON COLUMN weir.cost.function IS 'The function, as module:function; null for programs of one''s own, and for batches that no attempt committed.';
COMMENT ON COLUMN weir.cost.since IS 'When the oldest of these batches was opened; null if the group has none.';
COMMENT ON COLUMN weir.cost.batches IS 'How many batches ended.';
COMMENT ON COLUMN weir.cost.attempts IS 'How many attempts they took; more than batches if some failed or were taken over.';
COMMENT ON COLUMN weir.cost.events IS 'Their events.';
COMMENT ON COLUMN weir.cost.seconds IS 'The seconds for which they were open, all together.';
COMMENT ON COLUMN weir.cost.read_bytes IS 'The bytes of the files in their bounds, approximately, once for each batch.';
COMMENT ON COLUMN weir.cost.written_bytes IS 'The bytes that they appended to streams. The sizes of tables and of Parquet outputs are not known.';
COMMENT ON COLUMN weir.cost.kept_bytes IS 'The bytes that the group, if it is a subscriber, has not released of streams whose retention is consumed. In each row of the group.';
COMMENT ON COLUMN weir.cost.kept_alone_bytes IS 'The part of them that every other subscriber has released: what its streams need not keep, as far as subscribers go, once this group has read on.';

-- The names are those of Prometheus: the unit last, _total for what never falls.
CREATE OR REPLACE VIEW weir.metrics AS
SELECT m.metric, jsonb_build_object('stream', s.stream) AS labels, m.value
FROM weir.streams s
CROSS JOIN LATERAL (
    SELECT count(*) AS segments FROM weir_internal.segment_tail t WHERE t.stream_id = s.stream_id) t
CROSS JOIN LATERAL (VALUES
    ('weir_stream_appended_events_total', s.events_appended::double precision),
    ('weir_stream_events', s.events_retained),
    ('weir_stream_bytes', s.bytes_retained),
    ('weir_stream_segments', t.segments)) m (metric, value)
UNION ALL
SELECT m.metric, jsonb_build_object('reader_group', l.reader_group, 'stream', l.stream), m.value
FROM weir.lag l
CROSS JOIN LATERAL (VALUES
    ('weir_group_unread_events', l.unread_events::double precision),
    ('weir_group_unread_bytes', l.unread_bytes),
    ('weir_group_waiting_seconds', extract(epoch FROM l.waiting)),
    ('weir_group_lost_events_total', l.lost_events)) m (metric, value)
UNION ALL
SELECT m.metric, jsonb_build_object('reader_group', g.name), m.value
FROM weir_internal.reader_group g
CROSS JOIN LATERAL (VALUES
    ('weir_group_readers', (SELECT count(*) FROM weir_internal.reader r WHERE r.group_id = g.group_id)::double precision),
    ('weir_group_open_batches', (SELECT count(*) FROM weir_internal.reader_batch b
                                 WHERE b.group_id = g.group_id AND b.state = 'open')),
    ('weir_group_opened_batches_total', g.next_batch - 1)) m (metric, value)
UNION ALL
SELECT 'weir_alerts', jsonb_build_object('alert', t.kind, 'severity', t.severity), count(*)
FROM weir.troubles t GROUP BY t.kind, t.severity
UNION ALL
SELECT 'weir_garbage_bytes', '{}', coalesce(sum(g.bytes), 0) FROM weir.garbage_files g
UNION ALL
SELECT 'weir_open_appends', '{}', count(*) FROM weir.active_transaction
UNION ALL
SELECT 'weir_versions_waiting_seconds', '{}',
       coalesce(extract(epoch FROM statement_timestamp() - min(v.waiting_since)), 0) FROM weir.waiting_versions v
UNION ALL
SELECT 'weir_failed_jobs', jsonb_build_object('job', r.job), count(*)
FROM weir.job_runs r
WHERE r.state IN ('failed', 'killed') AND r.started_at > statement_timestamp() - interval '1 day'
GROUP BY r.job
-- each annex: metrics.sql
;
COMMENT ON VIEW weir.metrics IS 'What a monitoring system asks for, as numbers with labels: streams, reader groups, alerts, garbage, appends and jobs. docs/operations.md lists the metrics.';
COMMENT ON COLUMN weir.metrics.metric IS 'The name, as Prometheus writes it: with the unit last, and _total for what never falls.';
COMMENT ON COLUMN weir.metrics.labels IS 'What it is measured of: stream, reader_group, alert or job.';
COMMENT ON COLUMN weir.metrics.value IS 'The value now.';
