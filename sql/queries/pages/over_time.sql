-- What changed over time: what streams kept, and what groups had not read.

-- name: came -> many Came
-- Return what was appended to a stream after a time, what came close to each other as one.
SELECT max(clock) AS clock, sum(events)::bigint AS events, sum(bytes)::bigint AS bytes
FROM commits_between(:id, CAST(:begin AS bigint) + 1, 9223372036854775807)
GROUP BY (clock - :begin) / :width ORDER BY 1

-- name: truncated -> many Change
-- Return the bytes that were truncated after a time, each time.
SELECT time_clock(truncated_at) AS clock, bytes AS amount FROM weir.truncations
WHERE stream = :stream AND truncated_at > clock_time(:begin) ORDER BY 1

-- name: retained -> one
-- Return the bytes that a stream keeps, and those of them that the next retention truncates.
-- null: next_time
SELECT s.stream_id, s.bytes_retained AS kept,
    (SELECT n.bytes FROM weir.next_retention n WHERE n.stream = s.stream) AS next_time
FROM weir.streams s WHERE s.stream = :stream

-- name: known_group -> maybe
-- Return a group, and since when it is known what it had not read: old batches are pruned, and what was before a reset
-- is not counted back from what is unread now.
SELECT g.group_id, now_clock() AS now, greatest(time_clock(g.created_at), (
    SELECT CASE WHEN b.batch_id > 1 THEN time_clock(b.opened_at) END FROM reader_batch b
    WHERE b.group_id = g.group_id ORDER BY b.batch_id LIMIT 1), (
    SELECT time_clock(max(p.placed_at)) FROM placement p WHERE p.group_id = g.group_id AND p.cause = 'reset')) AS known
FROM reader_group g WHERE g.name = :name

-- name: most_unread -> many
-- Return what a group has not read now, of the streams with most.
SELECT stream, stream_id, unread_events FROM weir.lag WHERE reader_group = :name
ORDER BY unread_events DESC, stream LIMIT :most

-- name: read -> many Change
-- Return how many events of a stream a group has read after a time, those that are close as one.
SELECT max(time_clock(b.committed_at)) AS clock,
    sum((e ->> 'to')::bigint - (e ->> 'from')::bigint)::bigint AS amount
FROM reader_batch b CROSS JOIN LATERAL jsonb_array_elements(b.bounds) e
WHERE b.group_id = :group_id AND b.state = 'committed' AND b.committed_at > clock_time(:begin)
    AND (e ->> 'stream')::bigint = :id
GROUP BY (time_clock(b.committed_at) - :begin) / :width ORDER BY 1
