-- Readers that wait for others.

-- name: waits -> maybe Waits
-- Return whether other readers have what is left of a group, and whether it is aligned.
SELECT EXISTS (
    SELECT FROM reader r WHERE r.group_id = g.group_id AND r.reader_id <> :reader_id
) AND EXISTS (
    SELECT FROM jsonb_each(CAST(:until AS jsonb)) u
    JOIN reader_group_stream gs
        ON gs.group_id = g.group_id AND gs.stream_id = u.key::bigint
    JOIN stream s USING (stream_id)
    CROSS JOIN LATERAL unread_from(
        gs.stream_id, group_cut(gs.group_id, gs.stream_id), s.head, u.value) n
    WHERE n.events > 0) AS others, g.aligned
FROM reader_group g WHERE g.name = :group
