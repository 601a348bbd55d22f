-- The reader groups.

-- name: found -> one
-- Return a page of the names of groups, one more than `limit`, and how many there are in all.
WITH found AS MATERIALIZED (
    SELECT g.reader_group FROM weir.reader_groups g
    WHERE :search = '' OR strpos(g.reader_group, lower(:search)) > 0)
SELECT (SELECT count(*) FROM found) AS total,
    array(SELECT f.reader_group FROM found f WHERE f.reader_group > :after
          ORDER BY f.reader_group LIMIT CAST(:limit AS bigint) + 1) AS names

-- name: numbers -> many
-- Return groups in numbers.
-- row: A reader group in numbers. `holds`: whether retention of one of its streams waits for it.
-- null: release, time_out, checkpoint, checkpoint_at, max_ahead, max_outstanding
SELECT reader_group, subscriber, release, time_out, created_at, moved_at AS active_at, readers,
    open_batches, checkpoint, checkpoint_at, at_end, aligned, max_ahead, max_outstanding, on_gap,
    subject, subscriber AND EXISTS (
        SELECT FROM weir_internal.reader_group i JOIN weir_internal.reader_group_stream o USING (group_id)
        JOIN weir_internal.stream s USING (stream_id)
        WHERE i.name = reader_group AND s.retention = 'consumed' AND s.state <> 'deleted') AS holds
FROM weir.reader_groups WHERE reader_group = ANY(:names)

-- name: positions -> many Position
-- Return where a group is.
-- row: Where the group is in a segment, and whose the segment is.
-- null: next_offset, reader_id
SELECT stream, segment, key_low, key_high, state, next_offset, unread_events,
    reader_id
FROM weir.positions WHERE reader_group = :group
ORDER BY stream, key_low, segment LIMIT :most

-- name: readers -> many Reader
-- Return who has joined.
-- row: A reader that has joined. `lease_until` is null for a streaming query, whose lease does not end.
-- null: lease_until, batch_id, read_rate
SELECT reader_id, joined_at, nullif(lease_until, 'infinity') AS lease_until,
    lease_expired, segments, unread_events, batch_id, read_rate
FROM weir.readers WHERE reader_group = :group ORDER BY reader_id

-- name: batches -> many Batch
-- Return the newest batches.
-- row: What a reader read at once.
-- null: reader_id, events, bytes, ended_at, rejected, error, function
SELECT batch_id AS number, state, reader_id, attempt, events, bytes, opened_at,
    ended_at, rejected, error, function
FROM weir.batches WHERE reader_group = :group
ORDER BY batch_id DESC LIMIT :most

-- name: waiting -> many Waiting
-- Return who waits for whom.
-- row: Who waits for whom: a reader because of a setting, or a checkpoint for a batch.
-- null: reader_id, waits_for, batch_id, stream, segment, since
SELECT reader_id, reason, waits_for, batch_id, stream, segment,
    oldest_unread AS since, lease_expired
FROM weir.waiting_readers WHERE reader_group = :group
UNION ALL
SELECT NULL, 'checkpoint ' || checkpoint, reader_id, batch_id, NULL, NULL, created_at, lease_expired
FROM weir.checkpoint_blockers WHERE reader_group = :group
ORDER BY 1 NULLS LAST, 3, 4 LIMIT 100

-- name: checkpoints -> many Checkpoint
-- Return the newest checkpoints.
-- row: A checkpoint of the group.
-- null: expires_at
SELECT checkpoint AS name, kind, state, created_at, expires_at, released,
    count(*) AS streams
FROM weir.checkpoints WHERE reader_group = :group
GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY created_at DESC LIMIT :most

-- name: catch_up -> maybe
-- Return how fast a group reads.
-- row: How fast it reads beside what is appended, by the last hour.
-- null: read_rate, catch_up
SELECT append_rate, read_rate, catch_up
FROM weir.catch_up WHERE reader_group = :group

-- name: held -> many Held
-- Return what a subscriber makes streams keep.
-- row: What the subscriber makes a stream keep.
-- null: released_at, times_out_at, loses_after
SELECT stream, held_events, held_bytes, released_at, times_out_at, timed_out, loses_after
FROM weir.subscribers WHERE reader_group = :group AND held_events > 0 ORDER BY held_bytes DESC, stream
