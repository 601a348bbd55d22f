-- The runs of Weir's jobs, the newest first.

-- fragment: order
started_at DESC, dag_id DESC, run_id DESC, task_id DESC, map_index DESC, try_number DESC

-- fragment: past
(started_at, dag_id, run_id, task_id, map_index, try_number) < (CAST(:started_at AS timestamptz),
    CAST(:dag_id AS text), CAST(:run_id AS text), CAST(:task_id AS text), CAST(:map_index AS integer),
    CAST(:try_number AS integer)) AND (CAST(:dags AS text[]) IS NULL OR dag_id = ANY(:dags))

-- name: found -> many Try
-- Return those runs that are asked for, one more than `limit`, of the `most` that come first.
-- The inner limit bounds what is looked at; the outer one ends the search where the page is full.
-- row: A try of a task. `says`: its error, or the last line that it logged. `events`: what its report says.
-- null: ended_at, says, started_by, stream, reader_group, events, :dags
-- type: :started_at = str
SELECT dag_id, run_id, task_id, map_index, try_number, job, state, started_at, ended_at,
    left(coalesce(error, progress), 4000) AS says, left(started_by, 300) AS started_by, left(stream, 200) AS stream,
    left(reader_group, 200) AS reader_group,
    CASE WHEN events ~ '\A[0-9]{1,18}\Z' THEN events::bigint END AS events
FROM (SELECT *, coalesce(report ->> 'stream', arguments ->> 'stream') AS stream,
          coalesce(report ->> 'reader_group', arguments ->> 'reader_group') AS reader_group,
          report ->> 'events' AS events
      FROM weir.job_runs WHERE {past} ORDER BY {order} LIMIT :most) looked_at
WHERE (:job = '' OR job = :job) AND job <> ALL(:but) AND (:state = '' OR state = :state)
  AND (:stream = '' OR stream = :stream OR reader_group IN (
      SELECT p.reader_group FROM weir.positions p WHERE p.stream = :stream))
  AND (:reader_group = '' OR reader_group = :reader_group)
ORDER BY {order} LIMIT CAST(:limit AS bigint) + 1

-- name: last -> maybe
-- Return the last of the `most` runs that come first.
-- null: :dags
-- type: :started_at = str
SELECT started_at, dag_id, run_id, task_id, map_index, try_number FROM weir.job_runs
WHERE {past} ORDER BY {order} OFFSET CAST(:most AS bigint) - 1 LIMIT 1

-- name: moved -> many
-- Return what the batches of runs read and wrote, the newest of very many.
-- type: outputs = list[str | None]
-- null: reader_group
SELECT p.run, b.*
FROM unnest(CAST(:runs AS text[])) AS p (run)
CROSS JOIN LATERAL (
    WITH m AS MATERIALIZED (
        SELECT n.reader_group, n.events, n.outputs FROM weir.batches n
        WHERE n.reader_id = p.run AND n.state = 'committed' LIMIT 200)
    SELECT min(m.reader_group) AS reader_group, count(*) AS batches,
        coalesce(sum(m.events), 0)::bigint AS events,
        array(SELECT DISTINCT (o ->> 'kind') || ' '
                  || coalesce(s.stream_name, o ->> 'root', o ->> 'output')
              FROM m o_m CROSS JOIN LATERAL jsonb_array_elements(o_m.outputs) o
              LEFT JOIN weir_internal.stream s ON o ->> 'kind' = 'stream'
                  AND s.stream_id = (o ->> 'stream_id')::bigint
              ORDER BY 1 LIMIT 10) AS outputs
    FROM m) b
WHERE b.batches > 0
