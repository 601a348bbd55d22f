-- Aligned groups.

-- name: is_aligned -> maybe
-- Return whether a group is aligned.
SELECT aligned FROM reader_group WHERE name = :name

-- name: close -> one
-- Close streams at one clock, and return it.
SELECT close_streams(CAST(:ids AS bigint[]))
