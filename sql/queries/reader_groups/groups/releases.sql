-- What subscribers have released of streams.

-- name: released -> many Released
-- Return what all subscribers of streams have released of each.
-- null: passed
-- type: lost = dict[str, int]
-- type: behind = dict[str, int]
SELECT * FROM released_by_all(CAST(:ids AS bigint[]), :group)
