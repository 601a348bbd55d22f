-- Let a database go on beyond everything that it may have given out.

-- name: incarnation -> one
-- Return what tells this database from copies of it.
SELECT incarnation()

-- name: forget_appends -> many
-- Forget the appends of a stream that are not committed, and return them.
WITH input AS (
    DELETE FROM transaction_input i USING transaction t
    WHERE t.stream_id = :stream_id AND t.state <> 'committed' AND i.stream_id = t.stream_id
      AND i.transaction_number = t.transaction_number
)
DELETE FROM transaction WHERE stream_id = :stream_id AND state <> 'committed'
RETURNING transaction_number, attempt, state

-- name: forget_compactions -> none
-- Forget the compactions of a stream that are not done.
DELETE FROM compaction WHERE stream_id = :stream_id AND state <> 'done'

-- name: forget_attempts -> none
-- Forget that attempts are garbage: what was aborted here since the restore may have been committed
-- before it.
DELETE FROM garbage WHERE stream_id = :stream_id AND root = '' AND reason IN ('aborted', 'fenced')

-- name: skip_in_stream -> none
-- Skip numbers of transactions, beyond the highest that was found, and clocks up to the newest file.
UPDATE stream SET
    next_transaction_number = greatest(next_transaction_number, CAST(:transaction AS bigint) + 1)
        + CAST(:skipped AS bigint),
    last_clock = greatest(last_clock, CAST(CAST(:newest AS float8) * 1000000 AS bigint))
WHERE stream_id = :stream_id

-- name: lock_groups -> none
-- Lock all reader groups.
SELECT FROM reader_group ORDER BY group_id FOR NO KEY UPDATE

-- name: lock_stores -> none
-- Lock all adjunct stores.
SELECT FROM adjunct_store ORDER BY store_id FOR NO KEY UPDATE

-- name: skip_ids -> none
-- Skip ids of streams (beyond the highest that was found), groups and stores.
SELECT setval('weir_internal.stream_stream_id_seq', greatest(:highest,
        (SELECT last_value FROM stream_stream_id_seq)) + CAST(:skipped AS bigint)) AS stream,
    setval('weir_internal.reader_group_group_id_seq',
        (SELECT last_value FROM reader_group_group_id_seq) + :skipped) AS reader_group,
    setval('weir_internal.adjunct_store_store_id_seq',
        (SELECT last_value FROM adjunct_store_store_id_seq) + :skipped) AS store

-- name: skip_in_groups -> none
-- Skip batches, attempts and tokens. As old as the backup, the database says nothing of readers:
-- they may have read all the time, and get the chance to come back before a time-out lets go of what
-- is unread here.
WITH begun AS (  -- another attempt at one may have been published before the restore
    UPDATE reader_batch SET attempt = attempt + CAST(:skipped AS bigint) WHERE state = 'open'
), by_hand AS (
    UPDATE reader_group_stream SET released_at = clock_timestamp()
    WHERE released_at IS NOT NULL
)
UPDATE reader_group SET next_batch = next_batch + :skipped,
    next_token = next_token + :skipped, moved_at = clock_timestamp()

-- name: skip_in_stores -> none
-- Skip versions of adjunct stores, and attempts at them.
WITH building AS (
    UPDATE adjunct_version SET attempt = attempt + CAST(:skipped AS bigint) WHERE state = 'building'
)
UPDATE adjunct_store SET next_version = next_version + :skipped

-- name: count_sweeps -> none
-- Raise the count of sweeps, and let this database be the one that uses the warehouse; as it was
-- found: one that came since may know less.
UPDATE installation SET sweep_count = greatest(sweep_count, CAST(:swept AS bigint)) + CAST(:skipped AS bigint),
    warehouse = NULL, incarnation = :incarnation

-- name: positions -> many
-- Return where the groups of a stream are, by segment.
-- null: next_offset
SELECT g.name, p.next_offset, s.segment_id, s.key_low, s.key_high
FROM reader_group_segment p JOIN reader_group g USING (group_id)
JOIN segment s USING (stream_id, segment_id)
WHERE p.stream_id = :stream_id AND p.state <> 'completed'
