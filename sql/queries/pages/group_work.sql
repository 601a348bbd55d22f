-- What a reader group has done and what it costs.

-- name: is_group -> one
-- Return whether there is a group.
SELECT EXISTS (SELECT FROM weir.reader_groups WHERE reader_group = :group) AS there

-- name: batches -> many Ended
-- Return the newest batches that have ended, the oldest of them first.
-- row: A batch that has ended. `attempt`: the last of it; `rejected`: events.
-- null: events, rejected
SELECT opened_at, seconds, events, state, attempt, rejected FROM (
    SELECT batch_id, opened_at, extract(epoch FROM ended_at - opened_at)::float8 AS seconds,
        events, state, attempt, rejected
    FROM weir.batches WHERE reader_group = :group AND ended_at IS NOT NULL
    ORDER BY batch_id DESC LIMIT :most) b
ORDER BY batch_id

-- name: since -> one
-- Return from which time on unread events are counted back.
-- As of all of them one would be added up after the other: hundreds of thousands.
-- null: since
SELECT time_clock(max(f.at)) AS since FROM (
    SELECT (SELECT b.opened_at FROM reader_batch b WHERE b.group_id = g.group_id
            ORDER BY b.batch_id DESC OFFSET CAST(:commits AS bigint) / 10 LIMIT 1) AS at
    FROM reader_group g WHERE g.name = :group
    UNION ALL
    SELECT (SELECT t.opened_at FROM transaction t WHERE t.stream_id = s.stream_id
                AND t.transaction_number >= s.next_transaction_number - :commits
            ORDER BY t.transaction_number LIMIT 1)
    FROM reader_group g JOIN reader_group_stream USING (group_id) JOIN stream s USING (stream_id)
    WHERE g.name = :group AND s.next_transaction_number > :commits) f

-- name: complete -> many
-- Return up to which event times a group has read everything.
-- row: Up to which event time the group has read everything of a stream; the stream is complete to
-- row: `stream_complete_until`.
-- null: complete_until, newest_event_time, stream_complete_until
SELECT stream, complete_until, newest_event_time, stream_complete_until
FROM weir.group_completeness WHERE reader_group = :group ORDER BY stream

-- name: folders -> many Folder
-- Return the newest Parquet folders.
-- row: A Parquet folder that a batch has written.
-- null: committed_at
SELECT batch_id AS batch, committed_at, output, path FROM weir.parquet_outputs
WHERE reader_group = :group ORDER BY batch_id DESC, output LIMIT :most

-- name: cost -> many
-- Return what a group costs, by function.
-- row: What the batches with a function took, since `since`; and what the group makes streams keep, of which
-- row: `kept_alone_bytes` for nobody else.
-- null: function, since, batches, attempts, events, seconds, read_bytes, written_bytes
SELECT function, since, batches, attempts, events, seconds, read_bytes, written_bytes,
    kept_bytes, kept_alone_bytes
FROM weir.cost WHERE reader_group = :group ORDER BY since DESC NULLS LAST
