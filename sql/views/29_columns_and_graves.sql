-- Versions are compared by a window, not each column with those before it: there may be thousands of columns.
CREATE OR REPLACE VIEW weir.column_history AS
SELECT s.stream_name AS stream, c.name, c.stored_name, c.type, c.position, c.added_at, c.changes,
       (SELECT w.created_at FROM weir_internal.stream_schema w
        WHERE w.stream_id = s.stream_id AND w.version = c.last_version + 1) AS dropped_at,
       ARRAY(SELECT n.who FROM (
           SELECT 'the routing key' AS who, s.routing_key AS said
           UNION ALL
           SELECT 'the event time', s.event_time
           UNION ALL
           SELECT 'reader group ' || g.name, concat_ws(' ', g.subject, (
               SELECT string_agg(v.said #>> '{}', ' ') FROM jsonb_path_query(g.consumer, '$.**') AS v (said)
               WHERE jsonb_typeof(v.said) = 'string'))
           FROM weir_internal.reader_group_stream gs JOIN weir_internal.reader_group g USING (group_id)
           WHERE gs.stream_id = s.stream_id
           UNION ALL
           SELECT 'adjunct store ' || a.name, concat_ws(' ', f.key, f.value, f.value_columns, f.delete_when)
           FROM weir_internal.adjunct_store a JOIN weir_internal.adjunct_definition f USING (store_id, definition)
           WHERE a.stream_id = s.stream_id) n
           WHERE n.said ~* ('(^|\W)' || regexp_replace(c.name, '(\W)', '\\\1', 'g') || '(\W|$)')
           ORDER BY n.who) AS named_by
FROM weir_internal.stream s
CROSS JOIN LATERAL (
    SELECT b.stored_name, (array_agg(b.name ORDER BY b.version DESC))[1] AS name,
           (array_agg(b.type ORDER BY b.version DESC))[1] AS type,
           (array_agg(b.position ORDER BY b.version DESC))[1] AS position, min(b.created_at) AS added_at,
           max(b.version) AS last_version,
           coalesce(array_agg(concat_ws(', ',
               CASE WHEN b.name <> b.old_name THEN 'renamed from ' || b.old_name END,
               CASE WHEN b.type <> b.old_type THEN 'widened from ' || b.old_type END)
               || ' (' || to_char(b.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') || ')' ORDER BY b.version)
               FILTER (WHERE b.name <> b.old_name OR b.type <> b.old_type), '{}') AS changes
    FROM (SELECT v.version, v.created_at, f.position, f.field ->> 'name' AS name, f.field ->> 'type' AS type, n.stored_name,
                 lag(f.field ->> 'name') OVER w AS old_name, lag(f.field ->> 'type') OVER w AS old_type
          FROM weir_internal.stream_schema v
          CROSS JOIN LATERAL jsonb_array_elements(v.fields) WITH ORDINALITY AS f (field, position)
          CROSS JOIN LATERAL (SELECT coalesce(f.field ->> 'stored', f.field ->> 'name') AS stored_name) n
          WHERE v.stream_id = s.stream_id
          WINDOW w AS (PARTITION BY n.stored_name ORDER BY v.version)) b
    GROUP BY b.stored_name) c
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.column_history IS 'The columns that each stream has or had, with what became of them, and who names them.';
COMMENT ON COLUMN weir.column_history.name IS 'What it is called now, or was called last.';
COMMENT ON COLUMN weir.column_history.stored_name IS 'Its name in files.';
COMMENT ON COLUMN weir.column_history.type IS 'Its newest type.';
COMMENT ON COLUMN weir.column_history.position IS 'Its place among the columns of the newest version that has it.';
COMMENT ON COLUMN weir.column_history.added_at IS 'When the first version that has it was made.';
COMMENT ON COLUMN weir.column_history.changes IS 'When it was renamed, from what, and when its type was widened.';
COMMENT ON COLUMN weir.column_history.dropped_at IS 'When it was dropped; null if it was not.';
COMMENT ON COLUMN weir.column_history.named_by IS 'Who names it: the routing key, the event time, reader groups by their subject, the consumer that is declared for them, and adjunct stores by their definitions. A function may read columns that nothing names.';

-- Of a deleted stream its row is left, and the request that deleted it for as long as requests are kept.
CREATE OR REPLACE VIEW weir.deleted_streams AS
SELECT s.stream_name AS stream, s.stream_id, s.created_at, weir_internal.clock_time(s.sealed_clock) AS sealed_at,
       r.ended_at AS deleted_at, r.request_id AS deleted_by, (r.result ->> 'files')::bigint AS files,
       g.garbage_since IS NOT NULL AS files_left, s.owner
FROM weir_internal.stream s
LEFT JOIN LATERAL (
    SELECT q.ended_at, q.request_id, q.result FROM weir_internal.request q
    WHERE q.object = s.stream_name AND q.operation = 'delete_stream'
      AND q.ended_at > weir_internal.clock_time(s.sealed_clock)
    ORDER BY q.ended_at LIMIT 1) r ON true
LEFT JOIN weir_internal.garbage g ON g.root = '' AND g.path = s.stream_id || '/'
WHERE s.state = 'deleted';
COMMENT ON VIEW weir.deleted_streams IS 'The streams that were deleted. Another one may have the name of one since.';
COMMENT ON COLUMN weir.deleted_streams.stream_id IS 'The number of its folder in the warehouse.';
COMMENT ON COLUMN weir.deleted_streams.sealed_at IS 'When it was sealed, before it was deleted.';
COMMENT ON COLUMN weir.deleted_streams.deleted_at IS 'When it was deleted; null once its request is pruned.';
COMMENT ON COLUMN weir.deleted_streams.deleted_by IS 'The run that deleted it: DAG, run and task; null once it is pruned.';
COMMENT ON COLUMN weir.deleted_streams.files IS 'How many files it had; null once its request is pruned.';
COMMENT ON COLUMN weir.deleted_streams.files_left IS 'Whether its folder is still there, until a sweep deletes it.';
