-- Transactions of streaming queries.

-- name: open_one -> maybe
-- Return the open transaction of a batch of a writer.
SELECT transaction_number, attempt FROM transaction
WHERE stream_name = :stream AND writer_id = :writer_id AND batch_id = :batch_id
  AND state = 'open'

-- name: last_committed -> maybe
-- Return the last committed transaction of a writer.
SELECT transaction_number, fingerprint, batch_id, events + rejected AS rows FROM transaction
WHERE stream_name = :stream AND writer_id = :writer_id AND state = 'committed'
ORDER BY transaction_number DESC LIMIT 1

-- name: rename -> none
-- Give the transaction of an open attempt the name of its micro-batch.
UPDATE transaction SET batch_id = :batch_id, fingerprint = :fingerprint
WHERE stream_id = :stream_id AND transaction_number = :number AND attempt = :attempt
  AND state = 'open'
