-- Events that were truncated before groups read them.
-- fragments: reader_groups/moves.sql
-- import: from weir.controller.queries import Cut

-- name: moved_heads -> many MovedHead
-- Return the streams of a group whose head is not the one that its positions were compared with, and
-- that no batch reads.
-- null: end_cut
-- type: head = Cut
-- type: cut = Cut
-- type: end_cut = Cut
SELECT gs.stream_id, s.stream_name AS stream, s.head,
          group_cut(gs.group_id, gs.stream_id) AS cut, gs.end_cut, s.state
FROM reader_group_stream gs JOIN stream s USING (stream_id)
WHERE gs.group_id = :group_id AND gs.head_seen IS DISTINCT FROM s.head AND NOT EXISTS (
    SELECT FROM held_segments(:group_id) h WHERE h.stream_id = gs.stream_id)

-- fragment: cause
'skipped'

-- name: skip -> none
-- Move a group to a cut of a stream, and count the events that it loses by that.
WITH {moved}, cuts AS (
    SELECT CAST(:stream_id AS bigint) AS stream_id, CAST(:cut AS jsonb) AS cut
), counted AS (
    UPDATE reader_group_stream SET lost_events = lost_events + :lost,
        passed_clock = least(passed_clock, clock_between(
            :stream_id, group_cut(:group_id, :stream_id), CAST(:cut AS jsonb)))
    WHERE group_id = :group_id AND stream_id = :stream_id
), placed AS (
    {placed}
), passed AS (
    DELETE FROM reader_group_segment WHERE group_id = :group_id AND stream_id = :stream_id
    AND segment_id NOT IN (SELECT segment_id FROM cut_entries(CAST(:cut AS jsonb)))
)
{placing}
ON CONFLICT (group_id, stream_id, segment_id) DO UPDATE SET
    state = CASE WHEN excluded.state = 'unassigned'
                 AND reader_group_segment.state = 'assigned'
            THEN 'assigned' ELSE excluded.state END,
    next_offset = excluded.next_offset

-- name: seen -> none
-- Record the heads that the positions of a group were compared with.
UPDATE reader_group_stream gs SET head_seen = CAST(h.head AS jsonb)
FROM unnest(CAST(:streams AS bigint[]), CAST(:heads AS text[])) AS h (stream_id, head)
WHERE gs.group_id = :group_id AND gs.stream_id = h.stream_id

-- name: unread_lost -> one
-- Return by group how many events before a cut it has not read.
-- type: unread_events_lost = dict[str, int]
SELECT unread_events_lost(:stream_id, CAST(:cut AS jsonb), :subscribers)
