-- How far groups were over time, what the streams of owners kept, and for how long that is known.

-- name: record_groups -> none
-- Record how far groups are now, without those that are being deleted.
INSERT INTO group_history (group_id, stream_id, grain, slot, recorded_at, read, unread, read_bytes, unread_bytes)
SELECT g.group_id, l.stream_id, h.grain, h.slot, statement_timestamp(), z.events, l.unread_events, z.bytes, l.unread_bytes
FROM reader_group g JOIN weir.lag l ON l.reader_group = g.name
CROSS JOIN LATERAL size_till(l.stream_id, l.position) z
CROSS JOIN LATERAL history_slots(statement_timestamp()) h
WHERE g.name = ANY(:groups)
ORDER BY g.group_id, l.stream_id, h.grain
FOR KEY SHARE OF g SKIP LOCKED
ON CONFLICT (group_id, stream_id, grain, slot) DO UPDATE SET
    recorded_at = EXCLUDED.recorded_at, read = EXCLUDED.read, unread = EXCLUDED.unread,
    read_bytes = EXCLUDED.read_bytes, unread_bytes = EXCLUDED.unread_bytes

-- name: record_owners -> none
-- Record what the streams of each owner keep now.
INSERT INTO owner_history (owner, grain, slot, streams, bytes)
SELECT o.owner, h.grain, h.slot, o.streams, o.bytes
FROM (SELECT coalesce(s.owner, '') AS owner, count(*) AS streams, sum(s.bytes_retained)::bigint AS bytes
      FROM weir.streams s GROUP BY 1) o
CROSS JOIN LATERAL history_slots(statement_timestamp()) h WHERE h.grain >= 3600
ORDER BY o.owner, h.grain
ON CONFLICT (owner, grain, slot) DO UPDATE SET streams = EXCLUDED.streams, bytes = EXCLUDED.bytes

-- name: prune -> one
-- Delete the rows of the past that are older than such rows are kept, unless that was done today (in UTC): it reads all
-- of them. Return how many.
WITH due AS MATERIALIZED (
    SELECT g.grain, statement_timestamp() - g.kept AS before FROM history_grains() g
    WHERE NOT EXISTS (SELECT FROM owner_history o JOIN history_slots(statement_timestamp()) n USING (grain, slot)
                      WHERE o.grain = 86400)
), streams AS (
    DELETE FROM stream_history h USING due d WHERE h.grain = d.grain AND h.slot < d.before RETURNING 1
), groups AS (
    DELETE FROM group_history h USING due d WHERE h.grain = d.grain AND h.slot < d.before RETURNING 1
), owners AS (
    DELETE FROM owner_history h USING due d WHERE h.grain = d.grain AND h.slot < d.before RETURNING 1
)
SELECT (SELECT count(*) FROM streams) + (SELECT count(*) FROM groups) + (SELECT count(*) FROM owners) AS pruned
