-- What open batches read of adjunct stores.
-- import: from weir.controller.queries import Cut

-- name: places -> many Place
-- Return where a group is in streams, where they end, and whether an open batch reads them.
-- type: at = Cut
-- type: tail = Cut
SELECT s.stream_id, group_cut(:group_id, s.stream_id) AS at,
    tail_cut(s.stream_id) AS tail, EXISTS (
        SELECT FROM held_segments(:group_id) h WHERE h.stream_id = s.stream_id) AS reading
FROM unnest(CAST(:ids AS bigint[])) AS s (stream_id)

-- name: pin_target -> none
-- Record the cut to which a version must be complete.
-- null: :since
INSERT INTO adjunct_pin (group_id, batch_id, store_id, cut, clock, since)
VALUES (:group_id, :batch_id, :store_id, CAST(:cut AS jsonb), :clock, :since)
ON CONFLICT DO NOTHING

-- name: pin_version -> count
-- Pin a version, unless one is pinned or it has expired.
-- null: :version
UPDATE adjunct_pin SET pinned_at = clock_timestamp(), version = :version
WHERE group_id = :group_id AND batch_id = :batch_id AND store_id = :store_id AND pinned_at IS NULL
  AND (CAST(:version AS bigint) IS NULL OR EXISTS (
      SELECT FROM adjunct_version n WHERE n.store_id = :store_id AND n.version = :version
        AND n.state = 'published'))

-- name: pins -> many Pinned
-- Return what is recorded of the stores of a batch.
-- null: since, version
-- type: cut = Cut
SELECT store_id, cut, clock, since, pinned_at IS NOT NULL AS pinned, version
FROM adjunct_pin WHERE group_id = :group_id AND batch_id = :batch_id

-- name: existing -> many
-- Return those of some streams that were not deleted.
SELECT stream_id FROM stream WHERE stream_id = ANY(:ids) AND state <> 'deleted'

-- name: clocks -> one Clocks
-- Return the clocks of the oldest and of the newest event of a batch.
SELECT coalesce(min(f.clock), 0) AS oldest, coalesce(max(l.clock), 0) AS newest
FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
    CAST(:starts AS bigint[]), CAST(:ends AS bigint[]))
    AS b (stream_id, segment_id, first, past)
LEFT JOIN LATERAL commit_at(b.stream_id, b.segment_id, b.first) f ON true
LEFT JOIN LATERAL commit_at(b.stream_id, b.segment_id, b.past - 1) l ON true

-- name: cut_at -> one
-- Return the tail of a stream at a clock.
-- type: stream_cut_at = Cut
SELECT stream_cut_at(:stream, clock_time(:clock))

-- name: clock_before -> one
-- Return the last clock that a cut includes; None if all of the stream lies before it.
-- null: clock
SELECT clock_after(:stream_id, CAST(:cut AS jsonb)) - 1 AS clock
