-- Batches that are opened, and segments that are given to readers.

-- name: open -> one Opened
-- Record a batch, and return how many events it has without those that were erased.
-- null: :up_to, complete_until
WITH counted AS (
    UPDATE reader_group SET next_batch = next_batch + 1 WHERE group_id = :group_id
)
INSERT INTO reader_batch (group_id, group_name, batch_id, reader_id, token, state,
                          bounds, events, bytes, read_order, readers, up_to, opened_at,
                          complete_until)
SELECT :group_id, :group, :batch_id, :reader_id, :token, 'open', n.bounds,
       :events - holes_of(n.bounds),
       :bytes, :read_order, :readers, :up_to, clock_timestamp(),
       batch_complete_until(:group_id, n.bounds)
FROM (SELECT CAST(:bounds AS jsonb) AS bounds OFFSET 0) n  -- long, so sent once
RETURNING complete_until, events

-- name: give -> none
-- Assign segments to readers, or free them.
-- type: :readers = Sequence[str | None]
UPDATE reader_group_segment p SET reader_id = m.reader_id,
    state = CASE WHEN m.reader_id IS NULL THEN 'unassigned' ELSE 'assigned' END
FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
            CAST(:readers AS text[])) AS m (stream_id, segment_id, reader_id)
WHERE p.group_id = :group_id AND p.stream_id = m.stream_id
  AND p.segment_id = m.segment_id
