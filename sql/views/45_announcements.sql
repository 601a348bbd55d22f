-- The oldest unread commit of each group says from where on transactions are unread, so the view reads as many as it
-- shows.
CREATE OR REPLACE VIEW weir.announcements AS
SELECT w.airflow, w.stream_name AS stream, w.kind, t.transaction_number,
       weir_internal.clock_time(t.clock) AS committed_at, t.announced,
       cardinality(u.unread_by) = 0 AS consumed, u.unread_by, w.since AS watched_since, w.seen_at, t.left_out
FROM weir_internal.watch w
LEFT JOIN weir_internal.stream s ON s.stream_name = w.stream_name AND s.state <> 'deleted'
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(g.name ORDER BY g.name), '{}') AS names,
           coalesce(array_agg(f.oldest ORDER BY g.name), '{}') AS clocks, min(f.oldest) AS oldest
    FROM weir_internal.reader_group_stream gs
    JOIN weir_internal.reader_group g USING (group_id)
    CROSS JOIN LATERAL weir_internal.unread_from(
        gs.stream_id, weir_internal.group_cut(gs.group_id, gs.stream_id), s.head, gs.end_cut) f
    WHERE gs.stream_id = s.stream_id AND f.events > 0) g
CROSS JOIN LATERAL (
    SELECT CASE WHEN a.transaction_number > 0 THEN a.transaction_number END AS transaction_number, t.clock, false AS announced,
           NULL::text AS left_out
    FROM weir_internal.announcement a LEFT JOIN weir_internal.transaction t USING (stream_id, transaction_number)
    WHERE a.airflow = w.airflow AND a.kind = w.kind AND a.stream_name = w.stream_name
-- each annex: not_announced.sql
    UNION ALL
    SELECT t.transaction_number, t.clock, true, NULL
    FROM weir_internal.transaction t
    WHERE w.kind = 'events' AND t.stream_name = w.stream_name AND t.clock <= w.announced_clock AND t.events > 0
      AND weir_internal.clock_time(t.clock) >= greatest(w.since, weir_internal.clock_time(g.oldest))
      AND g.oldest IS NOT NULL
      AND NOT EXISTS (SELECT FROM weir_internal.announcement a
                      WHERE a.airflow = w.airflow AND a.kind = w.kind AND a.stream_name = w.stream_name
                        AND a.transaction_number = t.transaction_number)) t
CROSS JOIN LATERAL (
    SELECT array(SELECT o.name FROM unnest(g.names, g.clocks) AS o (name, clock) WHERE o.clock <= t.clock) AS unread_by) u;
COMMENT ON VIEW weir.announcements IS 'What Airflow is not known to have been told of, or what a reader group has not read since: per Airflow and transaction. Empty where everything committed is announced and read. What was left out stays for 30 days.';
COMMENT ON COLUMN weir.announcements.airflow IS 'The Airflow that watches the stream: the setting airflow_name.';
COMMENT ON COLUMN weir.announcements.kind IS 'events: a DAG is scheduled by the stream; hours or days: by those that are complete (partitions).';
COMMENT ON COLUMN weir.announcements.transaction_number IS 'What was committed; null for a statement of completeness without an append.';
COMMENT ON COLUMN weir.announcements.committed_at IS 'The time of its commit.';
COMMENT ON COLUMN weir.announcements.announced IS 'Whether its event is known to be in the database of Airflow.';
COMMENT ON COLUMN weir.announcements.consumed IS 'Whether all reader groups of the stream have read it.';
COMMENT ON COLUMN weir.announcements.unread_by IS 'The reader groups that have not read it.';
COMMENT ON COLUMN weir.announcements.watched_since IS 'When this Airflow began to watch the stream; what was committed before is not announced.';
COMMENT ON COLUMN weir.announcements.seen_at IS 'When a triggerer last said that a DAG is scheduled by it.';
COMMENT ON COLUMN weir.announcements.left_out IS 'Which hours or days with events were not announced and will not be: they are too far back (event_time_back), or there were too many. A run is started for one by hand, with its key.';
