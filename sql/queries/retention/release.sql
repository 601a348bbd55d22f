-- Release the events of a subscriber by hand.

-- name: released -> many
-- Return what a group has released of streams.
-- type: released_cut = dict[str, int | str]
SELECT stream_id, released_cut FROM reader_group_stream
WHERE group_id = :group_id AND stream_id = ANY(:ids)

-- name: release -> none
-- Release cuts of a locked group, given as a list of `stream` and `cut`.
UPDATE reader_group_stream gs SET released_cut = c.cut, released_at = clock_timestamp()
FROM jsonb_to_recordset(CAST(:cuts AS jsonb)) AS c (stream bigint, cut jsonb)
WHERE gs.group_id = :group_id AND gs.stream_id = c.stream

-- name: alerts -> many
-- Return the messages of alerts about streams, by time.
SELECT message FROM retention_alerts WHERE stream = ANY(:streams) ORDER BY at, message
