-- What the metadata says of a stream's past.

-- name: past_stream -> maybe
-- Return a stream: when it was sealed, the clock of now, since when it is known, and `since` as a clock.
-- null: sealed_clock, :since
SELECT s.stream_id, s.sealed_clock, now_clock() AS now,
    (SELECT min(created_at) FROM epoch e WHERE e.stream_id = s.stream_id) AS known,
    coalesce(time_clock(CAST(:since AS timestamptz)), 0) AS since
FROM stream s WHERE s.stream_name = :stream AND s.state <> 'deleted'

-- name: past_epochs -> many RecordedEpoch
-- Return when epochs began, and by which operation.
SELECT epoch, created_at AS clock, cause FROM epoch
WHERE stream_id = :id AND created_at >= :since ORDER BY epoch LIMIT :most

-- name: past_segments -> many RecordedSegment
-- Return segments from when to when they were there. One whose epoch is pruned is as old as the history.
-- null: ends
SELECT g.segment_id, g.key_low, g.key_high, coalesce(c.created_at, :known) AS begin,
    g.sealed_clock AS ends
FROM segment g LEFT JOIN epoch c ON c.stream_id = g.stream_id AND c.epoch = g.creation_epoch
WHERE g.stream_id = :id AND (g.sealed_clock IS NULL OR g.sealed_clock > :since)
ORDER BY g.segment_id LIMIT :most

-- name: past_commits -> many
-- Return the commits of each segment.
SELECT segment_id, clock, sum(events)::bigint AS events, sum(bytes)::bigint AS bytes
FROM commits_between(:id, CAST(:since AS bigint) + 1, 9223372036854775807)
GROUP BY segment_id, clock ORDER BY segment_id, clock LIMIT :most
