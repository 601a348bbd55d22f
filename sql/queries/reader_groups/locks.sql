-- Locks of groups and their streams.
-- fragments: controller/stream.sql

-- name: lock_streams_and_groups -> many StreamColumns
-- Lock streams, and the group of a name, or with none all groups that read them; return the streams
-- in the order of their ids.
-- null: retain_min_age, retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every
-- null: target_rate, scale_factor, max_segments, event_time, owner, :group
-- type: head = dict[str, int | str]
SELECT {stream} FROM lock_streams_and_groups(CAST(:ids AS bigint[]), CAST(:scopes AS text[]),
    CAST(:names AS text[]), CAST(:group AS text))

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
