-- What consumers need beyond the foundation.

ALTER TABLE weir.reader_batch
    DROP CONSTRAINT reader_batch_state_check,
    ADD CONSTRAINT reader_batch_state_check
        CHECK (state IN ('open', 'committed', 'abandoned', 'split')),
    ADD COLUMN rest jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN rejected bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN weir.reader_batch.state IS 'open; committed; abandoned by a reset or by hand; or split, as it failed: other batches read its halves.';
COMMENT ON COLUMN weir.reader_batch.attempt IS '1, and one more at each take-over or retry; names the outputs'' folders. 0 until somebody begins to read a half.';
COMMENT ON COLUMN weir.reader_batch.outputs IS 'While it is open all that its attempts began to write, then what counts of it: Parquet folders and tables.';
COMMENT ON COLUMN weir.reader_batch.error IS 'Why it was abandoned or split, where that is known.';
COMMENT ON COLUMN weir.reader_batch.rest IS 'Array of arrays of bounds: what was split off and is read after this batch, by batches of their own, in this order.';
COMMENT ON COLUMN weir.reader_batch.rejected IS 'How many of its events failed and went to <stream>.rejected.';

-- Not in the schema weir: these tables come and go with batches.
CREATE SCHEMA weir_staging;
COMMENT ON SCHEMA weir_staging IS 'Rows that consumers wrote for tables, until their batch is committed.';
