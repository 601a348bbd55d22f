-- What batches of the same events have written.

-- name: read_again -> maybe
-- Return the newest batch of a group, among its newest, of whose events another batch has read some.
SELECT b.batch_id FROM (
    SELECT n.batch_id, n.group_id, n.bounds FROM reader_batch n
    WHERE n.group_name = :group AND n.state = 'committed' ORDER BY n.batch_id DESC LIMIT :most) b
WHERE EXISTS (
    SELECT FROM inputs_of(b.bounds) i
    CROSS JOIN LATERAL readers_of(i.stream_id, i.segment_id, i.from_offset, i.to_offset) r
    JOIN reader_batch o ON o.group_id = r.a AND o.batch_id = r.b
    WHERE (r.a, r.b) <> (b.group_id, b.batch_id))
ORDER BY b.batch_id DESC LIMIT 1

-- name: readers -> many Reader
-- Return the batches that have read events of some batches of a group: these, and others.
-- Only those of which one sees every event, and whose group is of nobody else: what a group wrote is data.
-- row: A batch. `run`: when its group was reset before it; `folders`: of its Parquet outputs; `outputs`: all that
-- row: one sees, as a consumer names them.
-- null: run, function, function_version
-- type: bounds = list[dict[str, int]]
-- type: folders = list[dict[str, str]]
SELECT b.group_name AS reader_group, b.batch_id, b.events, b.rejected, b.committed_at,
    b.function, b.function_version, b.bounds,
    (SELECT max(p.placed_at) FROM placement p WHERE p.group_id = b.group_id
     AND p.cause = 'reset' AND p.placed_at <= b.opened_at) AS run,
    (SELECT coalesce(jsonb_agg(jsonb_build_object('output', o.output, 'root', o.root,
        'path', o.path, 'partitions', o.partitions) ORDER BY o.output), '[]')
     FROM parquet_output o WHERE o.group_name = b.group_name AND o.group_id = b.group_id
     AND o.batch_id = b.batch_id) AS folders,
    ARRAY(SELECT DISTINCT concat(o ->> 'kind', ':', o ->> 'output')
          FROM jsonb_array_elements(b.outputs) o
          WHERE o ->> 'kind' <> 'stream' OR EXISTS (
              SELECT FROM stream s WHERE s.stream_id = (o ->> 'stream_id')::bigint
              AND s.state <> 'deleted' AND s.name NOT LIKE '%.rejected')
          ORDER BY 1) AS outputs
FROM (
    SELECT DISTINCT r.a AS group_id, r.b AS batch_id
    FROM reader_batch a CROSS JOIN LATERAL inputs_of(a.bounds) i
    CROSS JOIN LATERAL readers_of(i.stream_id, i.segment_id, i.from_offset, i.to_offset) r
    WHERE a.group_name = :group AND a.batch_id = ANY(:batches)) f
JOIN reader_batch b USING (group_id, batch_id)
WHERE b.state = 'committed'
  AND (sees_all(current_user) OR b.group_id NOT IN (SELECT groups_of_others(current_user)))
  AND NOT EXISTS (SELECT FROM inputs_of(b.bounds) i
                  WHERE NOT EXISTS (SELECT FROM stream s WHERE s.stream_id = i.stream_id))
ORDER BY b.group_name, b.batch_id LIMIT :most

-- name: appended -> many
-- Return what batches of a group have appended to a stream, each transaction with its segments and offsets.
-- row: A transaction. `events` is null if it was pruned.
-- null: events, bytes
-- type: bounds = list[tuple[int, int, int]]
SELECT s.stream_id, t.events, t.bytes, (
    SELECT coalesce(jsonb_agg(jsonb_build_array(
        i.segment_id, i.start_offset, i.start_offset + i.events)), '[]')
    FROM commits_between(t.stream_id, t.clock, t.clock) i) AS bounds
FROM reader_batch b CROSS JOIN LATERAL jsonb_array_elements(b.outputs) o
JOIN stream s ON s.stream_id = (o ->> 'stream_id')::bigint
LEFT JOIN transaction t ON t.stream_id = s.stream_id
    AND t.transaction_number = (o ->> 'transaction_number')::bigint
WHERE b.group_name = :group AND b.batch_id = ANY(:batches)
    AND o ->> 'kind' = 'stream' AND s.stream_name = :stream
ORDER BY b.batch_id
