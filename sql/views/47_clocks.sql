-- Postgres writes all of these times with its own clock, so none is later than now, unless the clock was set back. A lease
-- may be later, by as long as it is given: minutes.
CREATE OR REPLACE VIEW weir.clocks_ahead AS
SELECT c.what, c.name, c.at, c.at - n.now AS ahead
FROM (SELECT c.clock, weir_internal.clock_time(c.clock) AS now FROM (SELECT weir_internal.now_clock() AS clock OFFSET 0) c OFFSET 0) n
CROSS JOIN LATERAL (
    SELECT 'stream' AS what, s.stream_name AS name, weir_internal.clock_time(s.last_clock) AS at
    FROM weir_internal.stream s WHERE s.state <> 'deleted' AND s.last_clock > n.clock
    UNION ALL
    SELECT 'retention', s.stream_name, s.retained_at
    FROM weir_internal.stream s WHERE s.state <> 'deleted' AND s.retained_at > n.now
    UNION ALL
    SELECT 'cut', l.stream_name, max(l.recorded_at)
    FROM weir_internal.stream_cut l JOIN weir_internal.stream s USING (stream_id)
    WHERE s.state <> 'deleted' AND l.recorded_at > statement_timestamp() + interval '1 minute' GROUP BY l.stream_name
    UNION ALL
    SELECT 'append', t.stream_name, t.lease_until
    FROM weir_internal.transaction t
    WHERE t.state = 'open' AND (t.opened_at > n.now OR t.lease_until > n.now + interval '1 hour')
    UNION ALL
    SELECT 'reader', g.name, r.lease_until
    FROM weir_internal.reader r JOIN weir_internal.reader_group g USING (group_id)
    WHERE r.lease_until < 'infinity' AND (r.joined_at > n.now OR r.lease_until > n.now + interval '1 hour')
      AND r.lease_until > n.now
    UNION ALL
    SELECT 'compaction', c.stream_name, c.lease_until
    FROM weir_internal.compaction c
    WHERE c.state = 'open' AND (c.begun_at > n.now OR c.lease_until > n.now + interval '1 hour')
    UNION ALL
    SELECT 'announcement', w.stream_name, greatest(w.seen_at, w.announced_at)
    FROM weir_internal.watch w WHERE greatest(w.seen_at, w.announced_at) > n.now) c
WHERE c.at > n.now + interval '1 minute';
COMMENT ON VIEW weir.clocks_ahead IS 'What is later than now, though Postgres''s own clock made it: the clock was ahead, or is behind. Empty where it never went back by more than a minute.';
COMMENT ON COLUMN weir.clocks_ahead.what IS 'stream: its last clock; retention, cut: when it last decided or recorded; append, reader, compaction: until when its lease holds, which nobody takes over before; announcement: when an Airflow last asked or was told.';
COMMENT ON COLUMN weir.clocks_ahead.name IS 'Of what: a stream, or the reader group of a reader.';
COMMENT ON COLUMN weir.clocks_ahead.at IS 'The time.';
COMMENT ON COLUMN weir.clocks_ahead.ahead IS 'How much later than now it is.';
