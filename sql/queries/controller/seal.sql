-- Seal streams.

-- name: seal -> many Ended
-- Seal a locked stream, and abort and return its open appends.
WITH sealed AS (
    UPDATE stream SET state = 'sealed', sealed_clock = :clock WHERE stream_id = :stream_id
), retained AS (  -- retention never truncates a sealed stream
    DELETE FROM retention_queue WHERE stream_id = :stream_id
)
UPDATE transaction SET state = 'aborted', ended_at = clock_timestamp(), staged = NULL
WHERE stream_id = :stream_id AND state = 'open' RETURNING transaction_number, attempt
