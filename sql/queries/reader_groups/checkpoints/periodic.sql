-- Groups whose checkpoints are due.

-- name: waiting -> many
-- Return the groups that have checkpoints that wait no longer.
SELECT DISTINCT g.name FROM waiting_checkpoints() c JOIN reader_group g USING (group_id)
WHERE c.late OR c.lost OR NOT c.waits ORDER BY g.name

-- name: moved -> many Moved
-- Return the groups that have moved since they were checkpointed.
SELECT group_id, name FROM reader_group WHERE moved_at > checkpointed_at
ORDER BY group_id

-- name: prune -> count
-- Delete old checkpoints: automatic ones, but never the newest of a group, and those given up.
DELETE FROM checkpoint c
WHERE created_at < clock_timestamp() - :age * interval '1 second'
AND CASE WHEN state = 'complete' THEN kind = 'automatic' AND EXISTS (
             SELECT FROM checkpoint n WHERE n.group_id = c.group_id
             AND n.state = 'complete' AND n.created_at > c.created_at)
         ELSE state <> 'waiting' END
