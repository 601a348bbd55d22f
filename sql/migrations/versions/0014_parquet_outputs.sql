-- Batches are history, and old ones are pruned; what they wrote to Parquet counts as long as the group is
-- there. Numbered in the order of the commits, so that a part of the list that is full never changes.
CREATE TABLE weir.parquet_output (
    group_id bigint NOT NULL REFERENCES weir.reader_group ON DELETE CASCADE,
    output text NOT NULL,
    number bigint NOT NULL CHECK (number >= 0),
    batch_id bigint NOT NULL,
    root text NOT NULL,
    path text NOT NULL,
    committed_at timestamptz NOT NULL,
    PRIMARY KEY (group_id, output, number)
);
COMMENT ON TABLE weir.parquet_output IS 'The Parquet folders that count: of each batch and output exactly one attempt.';
COMMENT ON COLUMN weir.parquet_output.group_id IS 'The group.';
COMMENT ON COLUMN weir.parquet_output.output IS 'What the job calls it.';
COMMENT ON COLUMN weir.parquet_output.number IS '0, 1, 2 ... per group and output, in the order of the commits.';
COMMENT ON COLUMN weir.parquet_output.batch_id IS 'The batch; it may be pruned.';
COMMENT ON COLUMN weir.parquet_output.root IS 'The output root.';
COMMENT ON COLUMN weir.parquet_output.path IS 'The folder, below the root.';
COMMENT ON COLUMN weir.parquet_output.committed_at IS 'When it was committed.';
INSERT INTO weir.parquet_output (group_id, output, number, batch_id, root, path, committed_at)
SELECT b.group_id, o.value ->> 'output',
       row_number() OVER (PARTITION BY b.group_id, o.value ->> 'output'
                          ORDER BY b.committed_at, b.batch_id) - 1,
       b.batch_id, o.value ->> 'root', o.value ->> 'path', b.committed_at
FROM weir.reader_batch b CROSS JOIN LATERAL jsonb_array_elements(b.outputs) o
WHERE b.state = 'committed' AND o.value ->> 'kind' = 'parquet';

-- For the batches that can be pruned: those that ended, by the time.
CREATE INDEX reader_batch_ended ON weir.reader_batch ((coalesce(committed_at, opened_at)))
    WHERE state <> 'open';
