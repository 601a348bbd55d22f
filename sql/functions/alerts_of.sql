-- How long before retention overtakes a subscriber somebody is warned.
CREATE FUNCTION weir.warning_time(in_stream_id bigint) RETURNS interval
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    SELECT greatest(interval '1 day', interval '1 second' / 5 * CASE
        WHEN s.retain_by_consumption OR coalesce(s.retain_min_age, s.retain_min_bytes) IS NULL
        THEN s.retain_max_age ELSE s.retain_min_age END)
    FROM weir.stream s WHERE s.stream_id = in_stream_id
$$;
COMMENT ON FUNCTION weir.warning_time(bigint) IS 'How long before retention overtakes a subscriber there is an alert: a day, or a fifth of the maximum age (with consumption off and a minimum, of the minimum age).';

CREATE FUNCTION weir.alerts_of(in_stream_id bigint)
RETURNS TABLE (reader_group text, alert text, at timestamptz, message text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog ROWS 1
AS $$
    WITH s AS MATERIALIZED (
        SELECT o.stream_id, o.scope || '/' || o.name AS name, clock_timestamp() AS now
        FROM weir.stream o WHERE o.stream_id = in_stream_id
    ), subscriber AS MATERIALIZED (
        SELECT g.name, weir.times_out_at(g.group_id, s.stream_id) AS times_out_at,
               weir.stale_after(g.group_id, s.stream_id) AS stale_after
        FROM s JOIN weir.reader_group_stream gs ON gs.stream_id = s.stream_id
        JOIN weir.reader_group g ON g.group_id = gs.group_id AND g.subscriber
    )
    SELECT u.name, 'timed out', u.times_out_at,
           'subscriber ' || u.name || ' of stream ' || s.name || ' has timed out and holds nothing back; '
           || 'let its readers run, or delete it'
    FROM s CROSS JOIN subscriber u WHERE u.times_out_at <= s.now
    UNION ALL
    SELECT u.name, 'soon stale', u.stale_after,
           'at the present rates retention will delete events of stream ' || s.name
           || ' that subscriber ' || u.name || ' has not released, from '
           || to_char(u.stale_after AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') || ' UTC on'
    FROM s CROSS JOIN subscriber u WHERE u.stale_after - weir.warning_time(s.stream_id) < s.now
    UNION ALL
    SELECT l.key, 'lost', d.decided_at,
           'subscriber ' || l.key || ' lost ' || l.value || ' unread events of stream ' || s.name || ' ('
           || d.reason || ')'
    FROM s JOIN weir.retention_decision d ON d.stream_id = s.stream_id
        AND d.decided_at > s.now - interval '7 days'
    CROSS JOIN LATERAL jsonb_each_text(d.lost) l
$$;
COMMENT ON FUNCTION weir.alerts_of(bigint) IS 'What somebody should look at in a stream: see the view retention_alerts.';
