-- What makes a restored database go on beyond all that it may have handed out.

-- name: incarnation -> one
-- Return which incarnation of the database this is.
SELECT incarnation()

-- name: forget_appends -> many
-- Forget the appends of a stream that are not committed.
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

-- name: keep_aborted -> none
-- Let no file be garbage that was aborted: it may have been committed before the restore.
DELETE FROM garbage WHERE stream_id = :stream_id AND root = '' AND reason IN ('aborted', 'fenced')

-- name: skip -> none
-- Raise the numbers and the clock of a stream.
UPDATE stream SET
    next_transaction_number = greatest(next_transaction_number, CAST(:transaction AS bigint) + 1)
        + CAST(:skipped AS bigint),
    last_clock = greatest(last_clock, CAST(CAST(:newest AS double precision) * 1000000 AS bigint))
WHERE stream_id = :stream_id

-- name: lock_groups -> none
-- Lock all reader groups.
SELECT FROM reader_group ORDER BY group_id FOR NO KEY UPDATE

-- name: lock_stores -> none
-- Lock all adjunct stores.
SELECT FROM adjunct_store ORDER BY store_id FOR NO KEY UPDATE

-- name: raise_ids -> none
-- Raise the ids that new streams, groups and stores will get.
SELECT setval('weir_internal.stream_stream_id_seq', greatest(CAST(:highest AS bigint),
        (SELECT last_value FROM stream_stream_id_seq)) + CAST(:skipped AS bigint)),
    setval('weir_internal.reader_group_group_id_seq',
        (SELECT last_value FROM reader_group_group_id_seq) + CAST(:skipped AS bigint)),
    setval('weir_internal.adjunct_store_store_id_seq',
        (SELECT last_value FROM adjunct_store_store_id_seq) + CAST(:skipped AS bigint))

-- name: skip_groups -> none
-- Raise the numbers of groups. As old as the backup, the database says nothing of readers: they may
-- have read all the time. They get the chance to come back before a time-out lets go of what is
-- unread here. Another attempt at a batch may have been published before the restore.
WITH begun AS (
    UPDATE reader_batch SET attempt = attempt + CAST(:skipped AS integer) WHERE state = 'open'
), by_hand AS (
    UPDATE reader_group_stream SET released_at = clock_timestamp()
    WHERE released_at IS NOT NULL
)
UPDATE reader_group SET next_batch = next_batch + :skipped, next_token = next_token + :skipped,
    moved_at = clock_timestamp()

-- name: skip_stores -> none
-- Raise the numbers of adjunct stores.
WITH building AS (
    UPDATE adjunct_version SET attempt = attempt + CAST(:skipped AS integer)
    WHERE state = 'building'
)
UPDATE adjunct_store SET next_version = next_version + :skipped

-- name: count_sweeps -> none
-- Raise the count of sweeps, and let this database be the one that uses the warehouse: as it was
-- found, because one that came since may know less.
UPDATE installation SET sweep_count = greatest(sweep_count, :swept) + CAST(:skipped AS bigint),
    warehouse = NULL, incarnation = :incarnation
