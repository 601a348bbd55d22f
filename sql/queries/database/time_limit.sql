-- How long statements may take.

-- name: limit -> none
-- Let each further statement of a transaction take so long at most.
SELECT set_config('statement_timeout', :most, true)
