-- Pins of groups.

-- name: delete -> none
-- Delete the pins of a group.
DELETE FROM reader_group_pin WHERE group_id = :group_id

-- name: insert -> none
-- Add pins to a group.
INSERT INTO reader_group_pin (group_id, stream_id, key_low, key_high, label)
SELECT :group_id, p.* FROM unnest(
    CAST(:streams AS bigint[]), CAST(:lows AS double precision[]),
    CAST(:highs AS double precision[]), CAST(:labels AS text[])) AS p

-- name: pins -> many PinRow
-- Return the pins of a group.
SELECT stream_id, key_low, key_high, label FROM reader_group_pin
WHERE group_id = :group_id ORDER BY stream_id, key_low
