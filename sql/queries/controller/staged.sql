-- Appends that are written and wait for a roll.

-- name: announce -> none
-- Record that an append is written and waits for a roll, so that a roll may commit it.
UPDATE transaction SET staged = CAST(:staged AS jsonb)
WHERE stream_id = :stream_id AND transaction_number = :number AND attempt = :attempt
  AND state = 'open'

-- name: waiting -> many
-- Return the appends of an epoch that wait for a roll, in the order in which they began.
SELECT transaction_number, attempt, staged FROM transaction
WHERE stream_id = :stream_id AND staged IS NOT NULL AND epoch = :epoch
ORDER BY transaction_number

-- name: waiting_epochs -> many
-- Return the epochs in which appends began that wait for a roll.
SELECT DISTINCT epoch FROM transaction
WHERE stream_id = :stream_id AND staged IS NOT NULL ORDER BY epoch
