-- Append transactions.
-- import: from weir.model.schema import Field

-- name: begin_append -> one
-- Lock a stream and open the transaction of an append, or begin its next attempt. What an outcome
-- does not have is null.
-- null: stream_id, state, transaction_number, attempt, routing_key, on_missing_key, on_bad_rows
-- null: on_new_column, schema_version, fields, dropped, ids, lows, highs, clock, events, rejected
-- null: bytes, files, held, event_time, min_event_time, max_event_time, untimed, late
-- null: complete_until, erased_salt, erased_hashes, :stated
-- type: fields = list[Field]
-- type: erased_salt = memoryview
-- type: held = dict[str, str]
SELECT * FROM begin_append(:scope, :name, :writer_id, :batch_id, :fingerprint, :lease,
    :allow_repeated_files, :source, CAST(:paths AS text[]), CAST(:sizes AS bigint[]),
    CAST(:stated AS bigint))

-- name: renew -> count
-- Renew the lease of an open attempt by `lease` seconds, within `longest` seconds of its begin.
UPDATE transaction SET lease_until = clock_timestamp() + :lease * interval '1 second'
WHERE stream_id = :stream_id AND transaction_number = :number AND attempt = :attempt
  AND state = 'open' AND opened_at + :longest * interval '1 second'
                         >= clock_timestamp() + :lease * interval '1 second'

-- name: standing -> maybe
-- Return what became of a transaction, and whether it began less than `longest` seconds ago.
SELECT state, attempt, opened_at + :longest * interval '1 second' > clock_timestamp() AS in_time
FROM transaction WHERE stream_id = :stream_id AND transaction_number = :number

-- name: is_held -> one
-- Return whether an attempt still holds its open transaction.
SELECT EXISTS (SELECT FROM transaction WHERE stream_id = :stream_id
    AND transaction_number = :number AND attempt = :attempt AND state = 'open')

-- name: abort -> count
-- Abort an attempt of a locked stream.
UPDATE transaction SET state = 'aborted', ended_at = clock_timestamp(), staged = NULL
WHERE stream_id = :stream_id AND transaction_number = :number
  AND attempt = :attempt AND state = 'open'

-- name: discard -> none
-- Make garbage of folders that attempts wrote.
INSERT INTO garbage (root, path, stream_id, reason)
SELECT '', unnest(CAST(:folders AS text[])), :stream_id, 'aborted'
ON CONFLICT (root, path) DO NOTHING
