-- Groups: created and deleted, what they own and where they end.
-- fragments: reader_groups/moves.sql
-- import: from weir.controller.queries import Cut

-- name: insert -> maybe
-- Record a group, and return its id; None if the name is taken.
-- null: :time_out, :max_ahead, :owner
INSERT INTO reader_group (name, subscriber, on_gap, release, time_out, max_outstanding, aligned, max_ahead, owner, subject)
VALUES (:name, :subscriber, :on_gap, :release, :time_out, :max_outstanding, :aligned, :max_ahead, :owner,
    :subject)
ON CONFLICT (name) DO NOTHING RETURNING group_id

-- fragment: cause
'entered'

-- name: enter -> none
-- Add streams to a group, and its positions at their cuts.
WITH cuts AS (
    INSERT INTO reader_group_stream (group_id, stream_id, start_cut, end_cut,
                                     released_cut, released_at, subscriber_since,
                                     passed_clock)
    SELECT :group_id, c.stream, c.start_cut, c.end_cut,
           CASE WHEN :subscriber THEN c.start_cut END,
           CASE WHEN :subscriber THEN clock_timestamp() END,
           CASE WHEN :subscriber THEN clock_timestamp() END,
           clock_between(s.stream_id, s.head, c.start_cut)
    FROM jsonb_to_recordset(CAST(:cuts AS jsonb))
        AS c (stream bigint, start_cut jsonb, end_cut jsonb)
    JOIN stream s ON s.stream_id = c.stream
    RETURNING stream_id, start_cut AS cut
), due AS (
    INSERT INTO retention_queue (stream_id, due_at)
    SELECT stream_id, clock_timestamp() FROM cuts JOIN stream USING (stream_id)
    WHERE state = 'active'
), placed AS (
    {placed}
)
{placing}

-- name: owned -> one Owned
-- Return the positions of a group by stream, and how many checkpoints and open batches it has.
-- type: position = dict[str, Cut]
SELECT (SELECT coalesce(jsonb_object_agg(s.stream_name, group_cut(gs.group_id, gs.stream_id)), '{}')
    FROM reader_group_stream gs JOIN stream s USING (stream_id)
    WHERE gs.group_id = :group_id AND s.state <> 'deleted') AS position,
(SELECT count(*) FROM checkpoint WHERE group_id = :group_id) AS checkpoints,
(SELECT count(*) FROM reader_batch WHERE group_id = :group_id AND state = 'open')
    AS batches

-- name: delete -> none
-- Delete a group with what belongs to it.
WITH positions AS (DELETE FROM reader_group_segment WHERE group_id = :group_id),
batches AS (
    DELETE FROM reader_batch WHERE group_id = :group_id RETURNING group_id, batch_id, bounds
), inputs AS (
    DELETE FROM batch_input n USING batches b CROSS JOIN LATERAL inputs_of(b.bounds) i
    WHERE (n.stream_id, n.segment_id, n.size_class, n.from_offset)
          = (i.stream_id, i.segment_id, i.size_class, i.from_offset)
      AND (n.group_id, n.batch_id) = (b.group_id, b.batch_id)
),
readers AS (DELETE FROM reader WHERE group_id = :group_id),
checkpoints AS (DELETE FROM checkpoint WHERE group_id = :group_id),
streams AS (DELETE FROM reader_group_stream WHERE group_id = :group_id)
DELETE FROM reader_group WHERE group_id = :group_id

-- name: ends -> many End
-- Return the ends of a group.
-- type: end_cut = Cut
SELECT stream_id, end_cut FROM reader_group_stream
WHERE group_id = :group_id AND end_cut IS NOT NULL

-- name: at_end -> maybe
-- Return the streams of a group if it is at the end of all of them, but for those not delivered.
SELECT string_agg(l.stream, ', ' ORDER BY l.stream) FROM lag l
WHERE l.reader_group = :name AND l.stream_id <> ALL(:not_delivered)
HAVING bool_and(l.at_end)
