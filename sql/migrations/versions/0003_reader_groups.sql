-- What reader groups need beyond the foundation.

ALTER TABLE weir.reader_group
    ADD COLUMN max_outstanding integer NOT NULL DEFAULT 3 CHECK (max_outstanding > 0);
COMMENT ON COLUMN weir.reader_group.max_outstanding IS 'How many checkpoints may wait for batches at a time.';

ALTER TABLE weir.reader_group_stream ADD COLUMN end_cut jsonb;
COMMENT ON COLUMN weir.reader_group_stream.end_cut IS 'Where the group stops for good; null for one that reads on.';

ALTER TABLE weir.reader_batch
    DROP CONSTRAINT reader_batch_state_check,
    ADD CONSTRAINT reader_batch_state_check CHECK (state IN ('open', 'committed', 'abandoned')),
    ADD COLUMN error text;
COMMENT ON COLUMN weir.reader_batch.state IS 'open, committed, or abandoned by a reset.';
COMMENT ON COLUMN weir.reader_batch.error IS 'Why it was abandoned, where that is known.';

ALTER TABLE weir.checkpoint
    ADD COLUMN state text NOT NULL DEFAULT 'complete'
        CHECK (state IN ('waiting', 'complete', 'cancelled', 'timed out')),
    ADD COLUMN waits_for bigint[] NOT NULL DEFAULT '{}',
    ADD COLUMN expires_at timestamptz,
    ADD COLUMN ended_at timestamptz,
    ADD CHECK ((state = 'waiting') = (expires_at IS NOT NULL AND ended_at IS NULL));
UPDATE weir.checkpoint SET ended_at = created_at;
CREATE INDEX checkpoint_waiting ON weir.checkpoint (group_id) WHERE state = 'waiting';
COMMENT ON COLUMN weir.checkpoint.state IS 'waiting for open batches, complete, cancelled or timed out.';
COMMENT ON COLUMN weir.checkpoint.waits_for IS 'The batches that were open when it was asked for; those that still are hold it up.';
COMMENT ON COLUMN weir.checkpoint.expires_at IS 'When it is given up; null for one that never waited.';
COMMENT ON COLUMN weir.checkpoint.ended_at IS 'When it was complete, cancelled or given up.';
