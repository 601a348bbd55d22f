-- Batches that are split.

-- name: split -> none
-- Close a batch that is split.
UPDATE reader_batch SET state = 'split', error = :error,
    ended_at = clock_timestamp()
WHERE group_id = :group_id AND batch_id = :batch_id

-- name: open_part -> none
-- Open a part of a batch, with the rest and the versions of stores that it is read with.
WITH counted AS (
    UPDATE reader_group SET next_batch = next_batch + 1 WHERE group_id = :group_id
), awaited AS (
    UPDATE checkpoint SET waits_for = array_replace(waits_for, :before, :batch_id)
    WHERE group_id = :group_id AND state = 'waiting' AND :before = ANY (waits_for)
), opened AS (
    INSERT INTO reader_batch (group_id, group_name, batch_id, reader_id, token,
                              attempt, state, bounds, rest, events, bytes,
                              read_order, readers, up_to, opened_at, complete_until)
    SELECT :group_id, o.group_name, :batch_id, :reader_id, :token, 0, 'open', CAST(:bounds AS jsonb),
           CAST(:rest AS jsonb),
           :events - holes_of(CAST(:bounds AS jsonb)),
           sum(bytes_before(b.stream, b.segment, b."to")
               - bytes_before(b.stream, b.segment, b."from")),
           o.read_order, o.readers, o.up_to, o.opened_at,
           batch_complete_until(:group_id, CAST(:bounds AS jsonb))
    FROM reader_batch o, jsonb_to_recordset(CAST(:bounds AS jsonb))
        AS b (stream bigint, segment bigint, "from" bigint, "to" bigint)
    WHERE o.group_id = :group_id AND o.batch_id = :before
    GROUP BY o.group_id, o.batch_id
), pinned AS (  -- the parts are read with the same versions
    INSERT INTO adjunct_pin (group_id, batch_id, store_id, cut, clock, version, since,
                             pinned_at)
    SELECT group_id, :batch_id, store_id, cut, clock, version, since, pinned_at
    FROM adjunct_pin WHERE group_id = :group_id AND batch_id = :before
)
UPDATE reader_group_segment p
SET state = 'assigned', reader_id = :reader_id
FROM jsonb_array_elements(CAST(:bounds AS jsonb) || CAST(:later AS jsonb)) b
WHERE p.group_id = :group_id AND p.stream_id = (b ->> 'stream')::bigint
  AND p.segment_id = (b ->> 'segment')::bigint AND p.state <> 'future'
  AND p.reader_id IS DISTINCT FROM :reader_id
