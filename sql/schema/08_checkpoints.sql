CREATE TABLE weir_internal.checkpoint (
    group_id bigint NOT NULL REFERENCES weir_internal.reader_group ON DELETE CASCADE,
    name text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('automatic', 'manual')),
    state text NOT NULL DEFAULT 'complete'
        CHECK (state IN ('waiting', 'complete', 'cancelled', 'timed out')),
    created_at timestamptz NOT NULL,
    cuts jsonb NOT NULL,
    released boolean NOT NULL,
    waits_for bigint[] NOT NULL DEFAULT '{}',
    expires_at timestamptz,
    ended_at timestamptz,
    PRIMARY KEY (group_id, name),
    CONSTRAINT checkpoint_waiting_expires
        CHECK ((state = 'waiting') = (expires_at IS NOT NULL AND ended_at IS NULL))
);
CREATE INDEX checkpoint_by_time ON weir_internal.checkpoint (group_id, created_at);
CREATE INDEX checkpoint_waiting ON weir_internal.checkpoint (group_id) WHERE state = 'waiting';
COMMENT ON TABLE weir_internal.checkpoint IS 'A named, consistent cut of a reader group.';
COMMENT ON COLUMN weir_internal.checkpoint.name IS 'Given by a person, or automatic-<clock>.';
COMMENT ON COLUMN weir_internal.checkpoint.kind IS 'automatic (periodic) or manual.';
COMMENT ON COLUMN weir_internal.checkpoint.state IS 'waiting for open batches, complete, cancelled or timed out.';
COMMENT ON COLUMN weir_internal.checkpoint.created_at IS 'When it was asked for.';
COMMENT ON COLUMN weir_internal.checkpoint.cuts IS 'Object from stream id to the group''s cut of that stream.';
COMMENT ON COLUMN weir_internal.checkpoint.released IS 'Whether it released events to retention (subscribers only).';
COMMENT ON COLUMN weir_internal.checkpoint.waits_for IS 'The batches that were open when it was asked for. It waits as long as one of them is open.';
COMMENT ON COLUMN weir_internal.checkpoint.expires_at IS 'When it times out; null for one that never waited.';
COMMENT ON COLUMN weir_internal.checkpoint.ended_at IS 'When it was completed, was cancelled or timed out.';

-- See stream_history: what is unread at a later time is what was unread here and what was appended since.
CREATE TABLE weir_internal.group_history (
    group_id bigint NOT NULL REFERENCES weir_internal.reader_group ON DELETE CASCADE,
    stream_id bigint NOT NULL,
    grain integer NOT NULL,
    slot timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    read bigint NOT NULL,
    unread bigint NOT NULL,
    read_bytes bigint NOT NULL,
    unread_bytes bigint NOT NULL,
    PRIMARY KEY (group_id, stream_id, grain, slot)
) WITH (fillfactor = 80);
COMMENT ON TABLE weir_internal.group_history IS 'How far each group was in each stream over time: a row for each part of time in which it moved.';
COMMENT ON COLUMN weir_internal.group_history.stream_id IS 'The stream.';
COMMENT ON COLUMN weir_internal.group_history.grain IS 'How long the part of time is, in seconds.';
COMMENT ON COLUMN weir_internal.group_history.slot IS 'When the part began.';
COMMENT ON COLUMN weir_internal.group_history.recorded_at IS 'When weir_checkpoints last recorded it in the part.';
COMMENT ON COLUMN weir_internal.group_history.read IS 'Events before its position then, from the beginning of the stream.';
COMMENT ON COLUMN weir_internal.group_history.unread IS 'Events that it had not read then.';
COMMENT ON COLUMN weir_internal.group_history.read_bytes IS 'Bytes before its position then, as first committed.';
COMMENT ON COLUMN weir_internal.group_history.unread_bytes IS 'Bytes that it had not read then.';
