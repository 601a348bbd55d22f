UNION ALL
SELECT p.kind || ' missing', CASE WHEN u.due < clock_timestamp() - interval '1 day' THEN 'red' ELSE 'amber' END, s.stream_name,
       s.stream_name, NULL, u.due, CASE p.kind WHEN 'days' THEN 'a day is missing' ELSE 'an hour is missing' END,
       format('The %s until %s UTC of stream %s never came: no writer has said that it is complete, and a DAG of %s waits for it.',
              CASE p.kind WHEN 'days' THEN 'day' ELSE 'hour' END, to_char(u.due AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'),
              s.stream_name, quote_literal(p.airflow)),
       'let what appends to the stream run, or look why it does not: held_by of weir.completeness names the writer, which may also state that nothing more comes until then',
       NULL, '{}',
       'stream', jsonb_build_object('name', s.stream_name)
FROM weir_internal.watched_partition p JOIN weir_internal.watch w USING (stream_name, airflow, kind)
JOIN weir_internal.stream s ON s.stream_name = p.stream_name AND s.state = 'active' AND s.event_time IS NOT NULL
CROSS JOIN LATERAL (
    SELECT weir_internal.clock_time(weir_internal.partition_begin(p.kind, coalesce(
        greatest(p.announced_until, s.complete_until), weir_internal.time_clock(w.since)))
        + weir_internal.partition_span(p.kind)) AS due) u
WHERE w.seen_at > clock_timestamp() - interval '1 day'
  AND u.due < clock_timestamp() - CASE p.kind WHEN 'days' THEN interval '12 hours' ELSE interval '2 hours' END
UNION ALL
SELECT p.kind || ' left out', 'amber', s.stream_name, s.stream_name, NULL, p.left_out_at, 'something was left out',
       format('Of stream %s, %s of %s have events and start no run: %s.', s.stream_name, p.kind, quote_literal(p.airflow), p.left_out),
       'start a run for each that is needed by hand, with its key', NULL, '{}', 'stream', jsonb_build_object('name', s.stream_name)
FROM weir_internal.watched_partition p
JOIN weir_internal.stream s ON s.stream_name = p.stream_name AND s.state <> 'deleted'
WHERE p.left_out_at > clock_timestamp() - interval '1 day'
