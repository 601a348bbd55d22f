UNION ALL
SELECT 'not published', CASE WHEN p.problem IS NULL THEN 'amber' ELSE 'red' END, p.stream, p.stream, NULL,
       clock_timestamp() - p.behind_for, 'not published',
       CASE WHEN p.problem IS NULL THEN format('The %s table of stream %s lacks %s.', p.format, p.stream, weir_internal.counted(p.behind_events, 'event'))
            ELSE format('The %s table of stream %s was not published: %s', p.format, p.stream, p.problem) END,
       'publish the stream; if upkeep does it no more, start Airflow, or unpause weir_upkeep', 'publish',
       jsonb_build_object('streams', jsonb_build_array(p.stream)), 'stream', jsonb_build_object('name', p.stream)
FROM weir.publications p
WHERE NOT p.publishing AND (p.problem IS NOT NULL OR p.behind_for > interval '3 hours')
