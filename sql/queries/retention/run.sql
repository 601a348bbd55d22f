-- Decide about streams.

-- name: decide -> one Decision
-- Return what retention decides about an active stream.
-- null: cut, bound, next_at
-- type: cut = dict[str, int | str]
-- type: bound = dict[str, int | str]
SELECT * FROM decide_retention(:stream_id)

-- name: record -> none
-- Record a decision, unless it truncates nothing for the same reasons as the last one. Delete the
-- recorded cuts below the new head, and queue the stream for the next decision: at once after a
-- truncation, as there may be more to delete; otherwise at the time when something becomes old
-- enough, if there is one.
-- null: :cut, :bound, :next_at
WITH made AS (
    INSERT INTO retention_decision (stream_id, stream_name, decided_at, rule, reason,
        head, bound, cut, held_by, truncated_past, timed_out, lost, events, bytes)
    SELECT :stream_id, :stream, clock_timestamp(), :rule, :reason, CAST(:head AS jsonb),
        CAST(:bound AS jsonb), CAST(:cut AS jsonb), CAST(:held_by AS text[]),
        CAST(:truncated_past AS text[]), CAST(:timed_out AS text[]),
        CAST(:lost AS jsonb), :events, :bytes
    WHERE CAST(:cut AS jsonb) IS NOT NULL OR NOT EXISTS (
        SELECT FROM (SELECT rule, reason, bound, held_by, timed_out
                     FROM retention_decision
                     WHERE stream_id = :stream_id ORDER BY decided_at DESC LIMIT 1) l
        WHERE l.rule = :rule AND l.reason = :reason
          AND l.held_by = CAST(:held_by AS text[])
          AND l.timed_out = CAST(:timed_out AS text[])
          AND l.bound IS NOT DISTINCT FROM CAST(:bound AS jsonb))
), passed AS (
    DELETE FROM stream_cut WHERE stream_id = :stream_id
      AND recorded_at <= (SELECT last_record(:stream_id, CAST(:cut AS jsonb)))
), again AS (
    INSERT INTO retention_queue (stream_id, due_at)
    SELECT stream_id, CASE WHEN CAST(:cut AS jsonb) IS NULL
        THEN CAST(:next_at AS timestamptz) ELSE clock_timestamp() END
    FROM stream WHERE stream_id = :stream_id
      AND (CAST(:cut AS jsonb) IS NOT NULL OR CAST(:next_at AS timestamptz) IS NOT NULL)
)
UPDATE stream SET retained_at = clock_timestamp() WHERE stream_id = :stream_id
