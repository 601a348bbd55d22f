-- Which sentences can be changed.

-- name: may_update -> one
-- Return whether a table is there, and this login may change it: an annex may not be there.
SELECT coalesce(has_any_column_privilege(to_regclass('weir_internal.' || :table), 'UPDATE'), false)
