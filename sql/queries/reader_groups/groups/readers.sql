-- Readers of groups.
-- fragments: reader_groups/moves.sql

-- name: other_reader -> maybe
-- Return another reader of a group: a streaming query rather than others.
SELECT reader_id, lease_until = 'infinity' AS query, joined_at FROM reader
WHERE group_id = :group_id AND reader_id <> :reader_id
ORDER BY lease_until DESC, reader_id LIMIT 1

-- name: renew -> count
-- Renew a reader's lease by `lease` seconds.
UPDATE reader r SET lease_until = clock_timestamp() + :lease * interval '1 second'
FROM reader_group g WHERE g.name = :group AND r.group_id = g.group_id
  AND r.reader_id = :reader_id AND r.token = :token

-- name: join -> count
-- Add a reader to a group, or give it a new token, unless another one is in the way.
WITH counted AS (
    UPDATE reader_group SET next_token = next_token + 1 WHERE group_id = :group_id
)
INSERT INTO reader (group_id, reader_id, token, lease_until, joined_at, label)
SELECT :group_id, :reader_id, :token,
    clock_timestamp() + :lease * interval '1 second', clock_timestamp(), :label
WHERE NOT EXISTS (
    SELECT FROM reader r WHERE r.group_id = :group_id AND r.reader_id <> :reader_id
    AND (r.lease_until = 'infinity' OR :alone
         AND NOT reader_is_gone(r.lease_until, :lease)))
ON CONFLICT (group_id, reader_id) DO UPDATE SET token = excluded.token,
    lease_until = excluded.lease_until, label = excluded.label

-- name: renew_alone -> none
-- Renew the lease of a reader, if no other reader of its group is there to take over what it owns.
UPDATE reader r SET lease_until = clock_timestamp() + :lease * interval '1 second'
FROM reader_group g WHERE g.name = :group AND r.group_id = g.group_id
  AND r.reader_id = :reader_id AND r.token = :token
  AND NOT EXISTS (SELECT FROM reader o WHERE o.group_id = r.group_id
                  AND o.reader_id <> r.reader_id
                  AND o.lease_until > clock_timestamp())

-- name: leave -> none
-- End the lease of a reader.
UPDATE reader SET lease_until = '-infinity'
WHERE group_id = :group_id AND reader_id = :reader_id AND token = :token

-- name: readers_of -> many
-- Return the ids of the readers of a group.
SELECT reader_id FROM reader JOIN reader_group USING (group_id) WHERE name = :name

-- fragment: cause
'reset'

-- name: put -> none
-- Record that a group is put behind what a person says is read: no batch read it.
WITH cuts AS (
    SELECT s AS stream_id, group_cut(:group_id, s) AS cut FROM unnest(CAST(:streams AS bigint[])) s
)
{placed}

-- name: put_at -> none
-- Record where a group is, in the newest row of what it was put to.
UPDATE placement p SET cut = group_cut(:group_id, p.stream_id)
FROM (SELECT stream_id, max(number) AS number FROM placement
      WHERE group_id = :group_id AND stream_id = ANY(:streams) GROUP BY stream_id) l
WHERE p.group_id = :group_id AND p.stream_id = l.stream_id AND p.number = l.number

-- name: fence -> count
-- End the lease of a reader and fence its batch, with a new token.
WITH counted AS (
    UPDATE reader_group SET next_token = next_token + 1 WHERE group_id = :group_id
), fenced AS (
    UPDATE reader_batch SET token = :token
    WHERE group_id = :group_id AND reader_id = :reader_id AND state = 'open'
)
UPDATE reader SET lease_until = '-infinity', token = :token
WHERE group_id = :group_id AND reader_id = :reader_id

-- name: abandon -> maybe Abandoned
-- Abandon the open batch of a reader.
-- type: bounds = list[dict[str, int]]
UPDATE reader_batch SET state = 'abandoned', error = :error,
    ended_at = clock_timestamp()
WHERE group_id = :group_id AND reader_id = :reader_id AND state = 'open'
RETURNING batch_id, bounds

-- name: free -> none
-- Free the segments of a reader.
UPDATE reader_group_segment SET state = 'unassigned', reader_id = NULL
WHERE group_id = :group_id AND reader_id = :reader_id

-- name: segments_of -> many SegmentOf
-- Return segments with the names of their streams.
SELECT stream_id, s.stream_name AS stream, g.segment_id, key_low, key_high
FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]))
    AS b (stream_id, segment_id)
JOIN segment g USING (stream_id, segment_id) JOIN stream s USING (stream_id)

-- name: groups_expired -> many
-- Return the groups that have readers to free.
SELECT DISTINCT g.name FROM readers_to_free(:lease) r JOIN reader_group g USING (group_id)

-- name: release_expired -> many
-- Free the segments of readers whose lease has expired, and return the readers that are removed: those
-- without an open batch, which another one takes over.
-- null: :alive, :only
WITH gone AS (
    SELECT reader_id FROM reader r WHERE group_id = :group_id
    AND reader_is_gone(r.lease_until, :lease)
    AND reader_id IS DISTINCT FROM CAST(:alive AS text)
    AND reader_id = coalesce(CAST(:only AS text), reader_id)
), freed AS (
    UPDATE reader_group_segment p SET state = 'unassigned', reader_id = NULL
    WHERE group_id = :group_id AND reader_id IN (SELECT reader_id FROM gone)
      AND (stream_id, segment_id) NOT IN (
          SELECT stream_id, segment_id FROM held_segments(:group_id))
)
DELETE FROM reader r WHERE group_id = :group_id
  AND reader_id IN (SELECT reader_id FROM gone)
  AND NOT EXISTS (SELECT FROM reader_batch b WHERE b.group_id = :group_id
                  AND b.state = 'open' AND b.reader_id = r.reader_id)
RETURNING reader_id
