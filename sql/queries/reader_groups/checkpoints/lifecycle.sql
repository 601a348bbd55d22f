-- Checkpoints that wait for batches, and that end.
-- import: from weir.controller.queries import Cut

-- name: state_of -> maybe
-- Return the state of a checkpoint.
SELECT state FROM checkpoint WHERE group_id = :group_id AND name = :name

-- name: waiting -> many Waiting
-- Return the checkpoints of a group that wait, and what has become of their batches.
-- null: late
SELECT name, late, waits, lost FROM waiting_checkpoints() WHERE group_id = :group_id ORDER BY created_at

-- name: open_batches -> many OpenBatch
-- Return the open batches of a group.
-- type: bounds = list[dict[str, int]]
SELECT batch_id, reader_id, bounds FROM reader_batch
WHERE group_id = :group_id AND state = 'open' ORDER BY batch_id

-- name: wait -> maybe
-- Record a checkpoint that waits for batches, and return its name; None if that is in use.
-- null: :name
WITH made AS (
    INSERT INTO checkpoint (group_id, name, kind, created_at, cuts, released, state,
                            waits_for, expires_at)
    SELECT :group_id, coalesce(CAST(:name AS text), 'automatic-' || time_clock(t.now)),
           CASE WHEN CAST(:name AS text) IS NULL THEN 'automatic' ELSE 'manual' END,
           t.now, CAST(:cuts AS jsonb), false, 'waiting', CAST(:batches AS bigint[]),
           t.now + :patience * interval '1 second'
    FROM (SELECT clock_timestamp() AS now) t
    ON CONFLICT (group_id, name) DO NOTHING RETURNING name
), looked_at AS (
    UPDATE reader_group SET checkpointed_at = clock_timestamp()
    WHERE group_id = :group_id AND CAST(:name AS text) IS NULL
)
SELECT name FROM made

-- name: cuts -> one
-- Return by stream id where a group is.
-- null: cuts
-- type: cuts = dict[str, Cut]
SELECT jsonb_object_agg(gs.stream_id::text, group_cut(gs.group_id, gs.stream_id)) AS cuts
FROM reader_group_stream gs JOIN stream s USING (stream_id)
WHERE gs.group_id = :group_id AND s.state <> 'deleted'

-- name: outstanding -> one Outstanding
-- Return how many checkpoints of a group wait, such as which, and how many may.
-- null: name
SELECT count(c.name) AS waiting, g.max_outstanding AS most, min(c.name) AS name
FROM reader_group g
LEFT JOIN checkpoint c ON c.group_id = g.group_id AND c.state = 'waiting'
WHERE g.group_id = :group_id GROUP BY g.max_outstanding

-- name: end -> none
-- End checkpoints that wait.
UPDATE checkpoint SET state = :state, ended_at = clock_timestamp(),
expires_at = NULL WHERE group_id = :group_id AND name = ANY(:names)
