CREATE OR REPLACE VIEW weir.scale_decisions AS
SELECT d.stream_name AS stream, d.decided_at, d.epoch, d.action, d.rule, d.reason, d.policy,
       d.commit_interval * interval '1 microsecond' AS commit_interval, d.loads, d.changes
FROM weir_internal.scale_decision d;
COMMENT ON VIEW weir.scale_decisions IS 'What scaling by load decided, and why.';
COMMENT ON COLUMN weir.scale_decisions.commit_interval IS 'The stream''s own interval between commits; null if it had fewer than two commits.';

CREATE OR REPLACE VIEW weir.segment_rates AS
SELECT s.stream_name AS stream, weir_internal.segment_name(l.segment_id) AS segment, l.key_low, l.key_high,
       CASE WHEN s.scaling = 'byte_rate' THEN 'bytes' ELSE 'events' END AS unit, s.target_rate,
       l.rates[1] AS rate_2_min, l.rates[2] AS rate_5_min, l.rates[3] AS rate_10_min,
       l.rates[4] AS rate_20_min,
       ARRAY(SELECT w * interval '1 microsecond' FROM unnest(l.windows) w) AS windows,
       l.commit_interval * interval '1 microsecond' AS commit_interval,
       weir_internal.clock_time(l.measured_until) AS measured_until,
       weir_internal.clock_time(l.created_at) AS created_at
FROM weir_internal.stream s
CROSS JOIN LATERAL weir_internal.segment_loads(
    s.stream_id, weir_internal.now_clock()) l
WHERE s.state = 'active';
COMMENT ON VIEW weir.segment_rates IS 'How much each active segment of an active stream gets per second, as scaling by load measures it.';
COMMENT ON COLUMN weir.segment_rates.key_low IS 'Where its key range begins (inclusive).';
COMMENT ON COLUMN weir.segment_rates.key_high IS 'Where its key range ends (exclusive).';
COMMENT ON COLUMN weir.segment_rates.unit IS 'What the rates count: events, or bytes if the stream scales by byte_rate.';
COMMENT ON COLUMN weir.segment_rates.rate_2_min IS 'Per second over the first window; null as long as the stream has fewer than two commits.';
COMMENT ON COLUMN weir.segment_rates.rate_5_min IS 'Per second over the second window.';
COMMENT ON COLUMN weir.segment_rates.rate_10_min IS 'Per second over the third window.';
COMMENT ON COLUMN weir.segment_rates.rate_20_min IS 'Per second over the fourth window.';
COMMENT ON COLUMN weir.segment_rates.windows IS 'The windows: 2, 5, 10 and 20 minutes, or four intervals between commits where that is more.';
COMMENT ON COLUMN weir.segment_rates.commit_interval IS 'The stream''s own interval between commits; null as long as it has fewer than two.';
COMMENT ON COLUMN weir.segment_rates.measured_until IS 'Where the windows end: at the last commit, or later once two intervals have passed without one.';
COMMENT ON COLUMN weir.segment_rates.created_at IS 'When the segment was created; of a copy that a roll made, its original.';

CREATE OR REPLACE VIEW weir.hot_keys AS
SELECT s.stream_name AS stream, k.routing_key, k.key_position,
       weir_internal.segment_name(t.segment_id) AS segment, k.share, k.rate, k.since, k.seen_at
FROM weir_internal.hot_key k JOIN weir_internal.stream s USING (stream_id)
LEFT JOIN (weir_internal.segment_tail t JOIN weir_internal.segment g USING (stream_id, segment_id))
    ON t.stream_id = k.stream_id AND g.key_low <= k.key_position AND k.key_position < g.key_high
WHERE s.state = 'active' AND s.scaling <> 'fixed';
COMMENT ON VIEW weir.hot_keys IS 'Routing keys that alone have more than the target rate of their stream, so that no split can help.';
COMMENT ON COLUMN weir.hot_keys.segment IS 'The active segment that it is in.';
