UNION ALL
SELECT 'damage', 'red', coalesce(d.stream, 'warehouse'), d.stream, NULL, min(d.since), count(*) || CASE WHEN count(*) = 1 THEN ' damaged file' ELSE ' damaged files' END,
       format('%s of %s not as recorded: %s, %s.', count(*) || CASE WHEN count(*) = 1 THEN ' file' ELSE ' files' END,
              coalesce('stream ' || d.stream, 'no stream') || CASE WHEN count(*) = 1 THEN ' is' ELSE ' are' END,
              min(d.path), (array_agg(d.what ORDER BY d.path))[1]),
       (array_agg(d.advice ORDER BY d.path))[1], CASE WHEN d.stream IS NOT NULL THEN 'verify' END,
       jsonb_build_object('stream', d.stream), CASE WHEN d.stream IS NULL THEN 'runs' ELSE 'files' END,
       CASE WHEN d.stream IS NULL THEN '{"job": "verify"}' ELSE jsonb_build_object('name', d.stream) END
FROM weir.damage d GROUP BY d.stream
