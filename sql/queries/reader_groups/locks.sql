-- Locks of groups and their streams.

-- name: may_act_for -> one
-- Return whether the login may act for a role.
SELECT may_act_for(current_user, :owner)

-- name: streams_of -> many StreamsOf
-- Return the streams of groups: those that are still there, and all.
SELECT g.group_id,
    coalesce(array_agg(gs.stream_id) FILTER (WHERE s.state <> 'deleted'), '{}') AS alive,
    coalesce(array_agg(gs.stream_id) FILTER (WHERE s.state IS NOT NULL), '{}') AS streams
FROM reader_group g
LEFT JOIN (reader_group_stream gs JOIN stream s USING (stream_id)) USING (group_id)
WHERE g.group_id = ANY(:ids) GROUP BY g.group_id

-- name: lock_free_streams -> many
-- Lock those of some streams that nobody has locked.
SELECT stream_id FROM stream WHERE stream_id = ANY(:ids) AND state <> 'deleted'
ORDER BY stream_id FOR NO KEY UPDATE SKIP LOCKED

-- fragment: group
SELECT group_id, name, generation, next_token, next_batch, subscriber, on_gap, release, time_out,
    max_outstanding, aligned, max_ahead, owner, subject
FROM reader_group

-- name: read_group -> maybe GroupRow
-- Return a group.
-- null: time_out, max_ahead, owner
{group} WHERE name = :name

-- name: lock_group -> maybe GroupRow
-- Lock a group.
-- null: time_out, max_ahead, owner
{group} WHERE name = :name FOR NO KEY UPDATE

-- name: lock_free_groups -> many GroupRow
-- Lock those of some groups that nobody has locked.
-- null: time_out, max_ahead, owner
{group} WHERE group_id = ANY(:ids) ORDER BY group_id FOR NO KEY UPDATE SKIP LOCKED
