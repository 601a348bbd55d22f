-- Clocks up to which batches read.

-- name: ends_at -> many EndAt
-- Return the offsets at which segments end at clocks.
SELECT w.stream_id, w.segment_id, coalesce((
    SELECT i.start_offset + i.events
    FROM commit_by(w.stream_id, w.segment_id, w.clock) i), 0) AS ends_at
FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
            CAST(:clocks AS bigint[])) AS w (stream_id, segment_id, clock)

-- name: oldest_unread -> many OldestUnread
-- Return the clocks of the oldest unread events of a group, by position.
SELECT stream_id, segment_id, clock FROM oldest_unread(:group_id)

-- name: epochs -> many Epoch
-- Return when epochs were created.
SELECT e.stream_id, e.created_at
FROM unnest(CAST(:streams AS bigint[]), CAST(:epochs AS integer[]))
    AS w (stream_id, epoch)
JOIN epoch e USING (stream_id, epoch)
