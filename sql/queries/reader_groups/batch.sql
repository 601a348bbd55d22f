-- Open batches, and who holds them.

-- fragment: columns
b.token, b.state, b.rest, b.outputs IS NOT NULL AS has_outputs,
    EXISTS (SELECT FROM checkpoint c WHERE c.group_id = b.group_id AND c.state = 'waiting')
        AS awaited

-- name: record -> maybe Held
-- Return the record of a batch.
-- type: rest = list[list[dict[str, int]]]
SELECT {columns} FROM reader_batch b WHERE b.group_id = :group_id AND b.batch_id = :batch_id

-- name: hold -> maybe Held
-- Lock the reader of a batch, and return the batch's record. The group is locked, so a batch does not
-- change while this waits for the reader. A part of a query that nothing depends on would not run: so
-- the rows that are locked are counted.
-- type: rest = list[list[dict[str, int]]]
WITH reader AS MATERIALIZED (
    SELECT FROM reader
    WHERE group_id = :group_id AND reader_id = :reader_id FOR NO KEY UPDATE
)
SELECT {columns} FROM reader_batch b
WHERE b.group_id = :group_id AND b.batch_id = :batch_id AND (SELECT count(*) FROM reader) >= 0
