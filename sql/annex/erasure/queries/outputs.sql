-- What consumers wrote of streams to output roots and to tables.

-- name: outputs -> many Output
-- Return the Parquet outputs of the groups that read some streams.
SELECT p.group_name, p.output, p.root, array_agg(p.path ORDER BY p.number) AS folders,
    g.subject, g.streams
FROM parquet_output p JOIN (
    SELECT g.group_id, g.subject, array_agg(DISTINCT l.stream_id) AS streams
    FROM placement l JOIN reader_group g USING (group_id)
    WHERE l.stream_id = ANY(:streams) GROUP BY g.group_id) g USING (group_id)
GROUP BY p.group_id, p.group_name, p.output, p.root, g.subject, g.streams ORDER BY 1, 2, 3

-- name: tables -> many OutputTable
-- Return the tables that groups have written to which read some streams, one for each subject.
-- null: subject
SELECT o ->> 'output' AS name, g.subject, array_agg(DISTINCT l.stream_id) AS streams
FROM placement l JOIN reader_batch b USING (group_id) LEFT JOIN reader_group g USING (group_id)
CROSS JOIN LATERAL jsonb_array_elements(b.outputs) o
WHERE l.stream_id = ANY(:streams) AND l.number = 1 AND o ->> 'kind' = 'table'
GROUP BY 1, 2 ORDER BY 1, 2

-- name: lock_folder -> none
-- Lock a folder of an output.
SELECT FROM parquet_output WHERE group_name = :group AND output = :name AND root = :root
    AND path = :path FOR NO KEY UPDATE

-- name: erase_from_table -> one
-- Delete the rows of a table with some keys, or only count them. Returns how many, or why the table
-- is left.
-- null: erased, why
SELECT erased, why FROM erase_from_table(:name, CAST(:columns AS text[]), CAST(:keys AS text[]), :only_count)

-- name: count_erased -> none
-- Record how many rows a request has erased of an output, or of a part of it.
-- null: :part
SELECT count_erased(:request_id, NULL, :name, :part, :rows)
