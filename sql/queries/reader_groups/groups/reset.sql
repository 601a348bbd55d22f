-- Groups that move to other cuts.
-- fragments: reader_groups/moves.sql
-- import: from weir.controller.queries import Cut

-- name: places -> many Place
-- Return where a group began in its streams, and where it is.
-- type: start_cut = Cut
-- type: cut = Cut
SELECT stream_id, start_cut, group_cut(group_id, stream_id) AS cut
FROM reader_group_stream WHERE group_id = :group_id

-- name: outputs -> many
-- Return the Parquet outputs that batches of a group have written.
SELECT DISTINCT output FROM parquet_output WHERE group_name = :group

-- name: unread -> many Unread
-- Return how many events of each stream a group has not read.
SELECT stream, unread_events FROM lag WHERE reader_group = :group

-- fragment: cause
'reset'

-- name: leave -> none
-- Take the positions of a group away, free its segments and abandon its batches.
WITH cuts AS (
    SELECT * FROM jsonb_to_recordset(CAST(:cuts AS jsonb))
        AS c (stream_id bigint, cut jsonb)
), placed AS (
    {placed}
), passed AS (  -- of the positions from before this statement
    UPDATE reader_group_stream gs SET passed_clock = passed_before(gs, c.cut)
    FROM cuts c WHERE gs.group_id = :group_id AND gs.stream_id = c.stream_id
), positions AS (
    DELETE FROM reader_group_segment WHERE group_id = :group_id AND stream_id = ANY(:ids)
), freed AS (
    UPDATE reader_group_segment SET state = 'unassigned', reader_id = NULL
    WHERE group_id = :group_id AND reader_id IS NOT NULL AND NOT stream_id = ANY(:ids)
), abandoned AS (
    UPDATE reader_batch SET state = 'abandoned', ended_at = clock_timestamp()
    WHERE group_id = :group_id AND state = 'open'
), cancelled AS (  -- they would release what is now read again
    UPDATE checkpoint SET state = 'cancelled', ended_at = clock_timestamp(),
        expires_at = NULL
    WHERE group_id = :group_id AND state = 'waiting'
)
UPDATE reader_group SET generation = generation + 1, moved_at = clock_timestamp()
WHERE group_id = :group_id

-- name: remove_readers -> none
-- Remove all readers of a group.
DELETE FROM reader WHERE group_id = :group_id

-- name: place -> none
-- Add the positions of a group at other cuts, and what it has released.
WITH cuts AS (
    SELECT * FROM jsonb_to_recordset(CAST(:cuts AS jsonb))
        AS c (stream_id bigint, cut jsonb, released jsonb)
), released AS (
    UPDATE reader_group_stream gs SET head_seen = NULL, newest_read = NULL, hole = NULL,
        released_cut = CASE WHEN gs.released_cut IS NOT NULL THEN c.released END,
        released_at = CASE WHEN gs.released_cut IS NOT NULL THEN clock_timestamp() END
    FROM cuts c WHERE gs.group_id = :group_id AND gs.stream_id = c.stream_id
)
{placing}

-- name: released -> many Released
-- Return what a group has released of streams.
-- type: released_cut = Cut
SELECT stream_id, released_cut FROM reader_group_stream
WHERE group_id = :group_id AND released_cut IS NOT NULL AND stream_id = ANY(:ids)
