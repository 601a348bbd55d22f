-- Numbers for monitoring.

-- name: measured -> many
-- Return each metric now, of what it is measured.
-- row: A metric, of what its labels say.
-- type: labels = dict[str, str]
SELECT metric, labels, value FROM weir.metrics ORDER BY metric
