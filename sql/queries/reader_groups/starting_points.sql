-- Starting points.
-- import: from weir.controller.queries import Cut

-- name: ends -> many End
-- Return the heads or the tails of streams.
-- type: cut = Cut
SELECT stream_id, CASE WHEN :which = 'head' THEN head ELSE tail_cut(stream_id) END AS cut
FROM stream WHERE stream_id = ANY(:ids)

-- name: clock_of -> one
-- Return the clock of a time.
SELECT time_clock(CAST(:at AS timestamptz))

-- name: checkpoint -> maybe Checkpoint
-- Return the state of a checkpoint, and its cuts by stream id.
-- type: cuts = dict[str, Cut]
SELECT state, cuts FROM checkpoint WHERE group_id = :group_id AND name = :name
