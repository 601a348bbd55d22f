-- Batches that have ended.

-- name: rejected -> one
-- Return how many events a group has rejected of late.
SELECT CAST(coalesce(sum(b.rejected), 0) AS bigint) FROM reader_batch b
WHERE b.group_name = :group AND b.state = 'committed'
  AND b.committed_at > clock_timestamp() - :span * interval '1 second'

-- name: prune -> one
-- Delete the rows of batches that ended long ago; return how many.
WITH pruned AS (
    DELETE FROM reader_batch b
    WHERE b.state <> 'open' AND b.ended_at
        < clock_timestamp() - :age * interval '1 second'
      AND NOT EXISTS (
        SELECT FROM checkpoint c WHERE c.group_id = b.group_id
        AND c.state = 'waiting' AND b.batch_id = ANY (c.waits_for))
    RETURNING b.group_id, b.batch_id, b.bounds
), inputs AS (
    DELETE FROM batch_input n
    USING pruned b CROSS JOIN LATERAL inputs_of(b.bounds) i
    WHERE (n.stream_id, n.segment_id, n.size_class, n.from_offset)
          = (i.stream_id, i.segment_id, i.size_class, i.from_offset)
      AND (n.group_id, n.batch_id) = (b.group_id, b.batch_id)
), noted AS (
    UPDATE installation SET batches_pruned = greatest(batches_pruned,
        clock_timestamp() - :age * interval '1 second')
    WHERE EXISTS (SELECT FROM pruned)
)
SELECT count(*) FROM pruned
