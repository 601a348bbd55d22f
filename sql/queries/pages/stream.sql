-- One stream.

-- name: settings -> maybe
-- Return the settings of a stream, the minute of now, and whether it has a stream of rejected rows.
-- type: settings = dict[str, Any]
SELECT to_jsonb(c) - '{stream,schema,schema_version}'::text[] AS settings,
    date_trunc('minute', statement_timestamp()) AS now,
    EXISTS (SELECT FROM weir.stream_configuration r WHERE r.stream = c.stream || '.rejected')
        AS rejects
FROM weir.stream_configuration c WHERE c.stream = :stream

-- name: columns -> many Column
-- Return the columns of a stream, those of the newest version first.
-- row: A column in a version of the schema; `type` as Spark writes it in JSON.
-- null: default_value, change
SELECT version, position, name, type, default_value, change, newest, created_at
FROM weir.stream_columns WHERE stream = :stream
ORDER BY version DESC, position LIMIT :most

-- name: transactions -> many Transaction
-- Return the newest appends.
-- row: An append.
-- null: committed_at, events, bytes, files, rejected
SELECT transaction_number AS number, state, opened_at, clock AS committed_at,
    events, bytes, files, rejected, writer_id, batch_id, source
FROM weir.transactions WHERE stream = :stream
ORDER BY transaction_number DESC LIMIT :most

-- name: small -> maybe
-- Return which files compaction may put together.
-- null: last_compacted, apart
SELECT small_files, small_bytes, last_compacted, apart
FROM weir.small_files WHERE stream = :stream

-- name: retention -> many RetentionDecision
-- Return the newest decisions of retention.
-- row: What retention decided, and why.
SELECT decided_at, rule, reason, events, bytes, held_by
FROM weir.retention_decisions WHERE stream = :stream
ORDER BY decided_at DESC LIMIT :most

-- name: scaling -> many ScaleDecision
-- Return the newest decisions of scaling by load.
-- row: What scaling by load decided, and why.
SELECT decided_at, action, rule, reason FROM weir.scale_decisions
WHERE stream = :stream ORDER BY decided_at DESC LIMIT :most

-- name: documents -> many Document
-- Return the newest documents about a stream.
-- row: What was done to events, and the document about it, or what that waits for.
-- null: waits_for, made_at, document
-- type: document = dict[str, Any]
SELECT title, request, requested_by, reason, asked_at, events, streams, state, waits_for, made_at,
    file, document
FROM weir.documents WHERE stream = :stream ORDER BY asked_at DESC LIMIT :most

-- name: completeness -> maybe
-- Return up to which event time a stream is complete, if it has event times.
-- row: Up to which event time the stream is complete, as its writers state.
-- null: complete_until, newest_event_time, held_by
SELECT event_time, complete_until, newest_event_time, late_events, held_by
FROM weir.completeness WHERE stream = :stream

-- name: grave -> maybe
-- Return when a stream of this name was deleted last, and by whom.
-- null: deleted_at, deleted_by
SELECT deleted_at, deleted_by FROM weir.deleted_streams WHERE stream = :stream
ORDER BY stream_id DESC LIMIT 1
