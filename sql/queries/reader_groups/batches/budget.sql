-- What fits into a budget.

-- name: fit -> many FitRow
-- Return how far segments may be read within a budget; one row without a stream if all fits.
-- null: clock
SELECT stream_id IS NULL AS all_fit, coalesce(stream_id, 0) AS stream_id,
    coalesce(segment_id, 0) AS segment_id, coalesce(past, 0) AS past, bytes, clock
FROM what_fits(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
CAST(:starts AS bigint[]), CAST(:ends AS bigint[]), :events, :bytes, :files, :unit)
