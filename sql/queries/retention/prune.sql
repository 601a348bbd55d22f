-- Prune metadata.

-- name: candidates -> many Candidate
-- Return the streams that have something old below the head: the segment that was sealed first, the
-- first entry of the time index of a segment that the head lies in (unless a file still has events
-- of it), or a decision of retention or scaling that is not the newest of its kind, nor the newest
-- that truncated, and by which nobody lost an event.
SELECT s.stream_id, s.stream_name AS stream FROM stream s
CROSS JOIN (SELECT clock_timestamp() - :history * interval '1 second' AS old) h
WHERE s.state <> 'deleted' AND (
    EXISTS (
        SELECT FROM (
            SELECT g.sealed_epoch FROM segment g
            WHERE g.stream_name = s.stream_name AND NOT s.head ? segment_name(g.segment_id)
              AND g.sealed_epoch <= (
                  SELECT creation_epoch(max(segment_id)) FROM cut_entries(s.head))
            ORDER BY g.sealed_epoch LIMIT 1) g
        WHERE NOT EXISTS (SELECT FROM epoch p WHERE p.stream_id = s.stream_id
                          AND p.epoch = g.sealed_epoch AND p.created_at > time_clock(h.old)))
    OR EXISTS (
        SELECT FROM commits_needed_from(s.stream_id, s.head) e CROSS JOIN LATERAL (
            SELECT * FROM time_index t
            WHERE t.stream_id = s.stream_id AND t.segment_id = e.segment_id
            ORDER BY t.start_offset LIMIT 1) i
        WHERE i.start_offset + i.events < e.event_offset AND i.clock < time_clock(h.old))
    OR EXISTS (
        SELECT FROM commits_needed_from(s.stream_id, s.head) e CROSS JOIN LATERAL (
            SELECT * FROM packed_commits p
            WHERE p.stream_id = s.stream_id AND p.segment_id = e.segment_id
            ORDER BY p.start_offset LIMIT 1) p
        WHERE p.past < e.event_offset AND p.last_clock < time_clock(h.old))
    OR EXISTS (
        SELECT FROM retention_decision d
        WHERE d.stream_id = s.stream_id AND d.decided_at < h.old AND d.lost = '{}'
          AND d.decided_at < (SELECT max(n.decided_at) FROM retention_decision n
                              WHERE n.stream_id = s.stream_id
                                AND (d.events = 0 OR n.events > 0)))
    OR EXISTS (
        SELECT FROM scale_decision d
        WHERE d.stream_id = s.stream_id AND d.decided_at < h.old
          AND d.decided_at < (SELECT max(n.decided_at) FROM scale_decision n
                              WHERE n.stream_id = s.stream_id)))
ORDER BY s.stream_id

-- name: raise_released -> none
-- Let what was released below the head mean the head.
UPDATE reader_group_stream SET
    released_cut = readable_cut(:stream_id, released_cut, CAST(:head AS jsonb))
WHERE stream_id = :stream_id AND released_cut IS NOT NULL
  AND NOT at_or_before(:stream_id, CAST(:head AS jsonb), released_cut)

-- name: drop_cuts -> none
-- Delete the recorded cuts below the head: they mean nothing.
DELETE FROM stream_cut WHERE stream_id = :stream_id
  AND recorded_at <= (SELECT last_record(:stream_id, CAST(:head AS jsonb)))

-- name: cuts_needed -> many
-- Return the cuts that the floor of a stream is below.
-- null: cut
-- type: cut = dict[str, int | str]
SELECT group_cut(group_id, stream_id) AS cut FROM reader_group_stream
WHERE stream_id = :stream_id
UNION ALL SELECT end_cut FROM reader_group_stream
WHERE stream_id = :stream_id AND end_cut IS NOT NULL
UNION ALL (SELECT cut FROM stream_cut WHERE stream_id = :stream_id
           ORDER BY recorded_at LIMIT 1)

-- name: prune_below -> one Pruned
-- Delete the rows below a floor that are older than `history` seconds; return how many.
SELECT * FROM prune_below(:stream_id, CAST(:floor AS jsonb), :history)
