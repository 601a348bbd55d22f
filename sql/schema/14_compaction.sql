CREATE TABLE weir_internal.compaction (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    number bigint NOT NULL,
    stream_name text NOT NULL,
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done', 'aborted')),
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz NOT NULL,
    ended_at timestamptz,
    files_before bigint NOT NULL DEFAULT 0,
    files_after bigint NOT NULL DEFAULT 0,
    events bigint NOT NULL DEFAULT 0,
    bytes_before bigint NOT NULL DEFAULT 0,
    bytes_after bigint NOT NULL DEFAULT 0,
    apart boolean NOT NULL DEFAULT false,
    holder text,
    token text,
    PRIMARY KEY (stream_id, number),
    CONSTRAINT compaction_ended_or_open CHECK ((state = 'open') = (ended_at IS NULL))
);
CREATE UNIQUE INDEX compaction_open ON weir_internal.compaction (stream_id) WHERE state = 'open';
CREATE INDEX compaction_ended ON weir_internal.compaction (ended_at) WHERE state <> 'open';
CREATE INDEX compaction_by_name ON weir_internal.compaction (stream_name, number);
COMMENT ON TABLE weir_internal.compaction IS 'Who writes files of a stream anew, and what that came to. Pruned as what jobs did.';
COMMENT ON COLUMN weir_internal.compaction.number IS 'A number like those of the stream''s transactions, which no transaction has; the _weir_tx of its folder.';
COMMENT ON COLUMN weir_internal.compaction.stream_name IS 'scope/stream, which never changes.';
COMMENT ON COLUMN weir_internal.compaction.state IS 'open; done: its files took the place of others; or aborted.';
COMMENT ON COLUMN weir_internal.compaction.begun_at IS 'When it began to write.';
COMMENT ON COLUMN weir_internal.compaction.lease_until IS 'From then on another one may abort it.';
COMMENT ON COLUMN weir_internal.compaction.ended_at IS 'When its files took the place of others, or it was aborted.';
COMMENT ON COLUMN weir_internal.compaction.files_before IS 'How many files it replaced.';
COMMENT ON COLUMN weir_internal.compaction.files_after IS 'By how many.';
COMMENT ON COLUMN weir_internal.compaction.events IS 'The events in them.';
COMMENT ON COLUMN weir_internal.compaction.bytes_before IS 'The size of the files that it replaced.';
COMMENT ON COLUMN weir_internal.compaction.bytes_after IS 'The size of those that it wrote.';
COMMENT ON COLUMN weir_internal.compaction.apart IS 'Whether its run looked at all small files of the stream, and none could be put together with a neighbour, because they store columns in different ways.';
COMMENT ON COLUMN weir_internal.compaction.holder IS 'The request that writes: another try of it takes over at once.';
COMMENT ON COLUMN weir_internal.compaction.token IS 'What its try begins with: whoever begins with it again gets the same number, as the answer was lost.';
ALTER TABLE weir_internal.compaction ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.compaction ALTER COLUMN stream_name SET STATISTICS 0;
