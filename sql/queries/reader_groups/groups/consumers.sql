-- The consumers that were declared for groups.

-- name: declare -> none
-- Record the arguments of the consumer of a group.
UPDATE reader_group SET consumer = CAST(:consumer AS jsonb) WHERE group_id = :group_id

-- name: declared -> maybe
-- Return the arguments of the consumer of a group.
-- type: consumer = dict[str, Any]
-- null: consumer
SELECT consumer FROM reader_group WHERE name = :group
