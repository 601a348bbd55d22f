-- What the database records of itself.

-- name: known -> one
-- Return what to compare with a marker. As one statement that stands alone, because each append
-- asks.
SELECT installation_id, NOT EXISTS (
    SELECT FROM transaction WHERE state = 'committed') AS new, sweep_count,
    incarnation <> incarnation() AS moved, warehouse IS NULL
    AND has_column_privilege('installation', 'warehouse', 'UPDATE') AS unplaced, true AS durable
FROM installation

-- name: place -> none
-- Note where the warehouse is, unless that is known.
UPDATE installation SET warehouse = :place WHERE warehouse IS NULL
