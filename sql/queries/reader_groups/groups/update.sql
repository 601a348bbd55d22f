-- Groups whose settings, streams or release change.

-- name: store -> none
-- Store the settings of a group, as another generation. The next run releases what the group has read,
-- also if it reads no more.
-- null: :time_out, :max_ahead, :owner
UPDATE reader_group SET generation = generation + 1,
    subscriber = :subscriber, on_gap = :on_gap, release = :release, time_out = :time_out,
    max_outstanding = :max_outstanding, aligned = :aligned, max_ahead = :max_ahead, owner =
    :owner, subject = :subject,
    moved_at = CASE WHEN :subscriber AND NOT subscriber THEN clock_timestamp() ELSE moved_at END,
    checkpointed_at = CASE WHEN :release <> release OR :subscriber <> subscriber THEN '-infinity'
                      ELSE checkpointed_at END
WHERE group_id = :group_id

-- name: being_read -> one
-- Take streams out of the positions and the waiting checkpoints of a group; return of how many
-- segments of these an open batch reads.
WITH gone AS (
    DELETE FROM reader_group_segment
    WHERE group_id = :group_id AND NOT stream_id = ANY(:wanted)
), removed AS (  -- if the group reads them again later, it begins elsewhere
    UPDATE checkpoint SET cuts = coalesce((
        SELECT jsonb_object_agg(key, value) FROM jsonb_each(cuts)
        WHERE key::bigint = ANY(:wanted)), '{}')
    WHERE group_id = :group_id AND state = 'waiting'
)
SELECT count(*) FROM held_segments(:group_id) WHERE NOT stream_id = ANY(:wanted)

-- name: remove_streams -> none
-- Let a group read no other streams.
DELETE FROM reader_group_stream WHERE group_id = :group_id AND NOT stream_id = ANY(:ids)

-- name: touch -> none
-- Let the time-out of a group begin again: the events of a new stream may be old.
UPDATE reader_group SET moved_at = clock_timestamp() WHERE group_id = :group_id

-- name: protect -> none
-- Let a group hold back what it has not read, if it is a subscriber.
UPDATE reader_group_stream SET
    released_cut = CASE WHEN :subscriber THEN
        coalesce(released_cut, group_cut(group_id, stream_id)) END,
    subscriber_since = CASE WHEN :subscriber THEN
        coalesce(subscriber_since, clock_timestamp()) END,
    released_at = CASE WHEN :subscriber THEN
        CASE WHEN :anew THEN clock_timestamp()
        ELSE coalesce(released_at, clock_timestamp()) END END
WHERE group_id = :group_id
