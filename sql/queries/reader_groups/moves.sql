-- What statements of several files share: they put groups elsewhere, or wait for readers.

-- fragment: moved
-- The group was active. If it had timed out, it holds retention back again from now on, so its
-- streams are queued for a decision.
noted AS (
    UPDATE reader_group SET moved_at = clock_timestamp() WHERE group_id = :group_id
), back AS (
    INSERT INTO retention_queue (stream_id, due_at)
    SELECT stream_id, clock_timestamp()
    FROM reader_group JOIN reader_group_stream USING (group_id) JOIN stream USING (stream_id)
    WHERE group_id = :group_id AND subscriber AND stream.state = 'active'
      AND moved_at + time_out * interval '1 second' < clock_timestamp()
)

-- fragment: placing
-- Adds the positions of a group at `cuts`: rows with `stream_id` and `cut`.
INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state, next_offset)
SELECT :group_id, c.stream_id, e.segment_id,
       CASE WHEN e.event_offset IS NULL THEN 'future' ELSE 'unassigned' END, e.event_offset
FROM cuts c CROSS JOIN LATERAL cut_entries(c.cut) e

-- fragment: placed
-- Records a move that no batch made (reset, skip), to `cuts`, for a `cause` (see the table). Put it
-- into the statement that deletes the old positions, or before that. Moves that follow one another
-- are one row, unless events went in between: a receipt is compared with where the group was then.
INSERT INTO placement AS p (group_id, stream_id, group_name, number, cause, left_at, cut)
SELECT :group_id, c.stream_id, (SELECT name FROM reader_group WHERE group_id = :group_id),
       CASE WHEN l.cause = {cause} AND l.cause = 'moved' THEN l.number
       ELSE coalesce(l.number, 0) + 1 END, {cause}, group_cut(:group_id, c.stream_id), c.cut
FROM cuts c LEFT JOIN LATERAL (
    SELECT o.number, CASE WHEN NOT EXISTS (
        SELECT FROM delivered_range d WHERE d.group_id = :group_id
        AND d.stream_id = c.stream_id AND d.placement = o.number) AND NOT EXISTS (
            SELECT FROM (SELECT truncated_at FROM truncation
                         WHERE stream_id = c.stream_id ORDER BY number DESC LIMIT 1) t
            WHERE t.truncated_at >= o.placed_at) THEN o.cause END AS cause
    FROM placement o WHERE o.group_id = :group_id AND o.stream_id = c.stream_id
    ORDER BY o.number DESC LIMIT 1) l ON true
ON CONFLICT (group_id, stream_id, number) DO UPDATE SET
    cut = excluded.cut, placed_at = excluded.placed_at
