CREATE TABLE weir_internal.packed_commits (
    stream_id bigint NOT NULL,
    stream_name text NOT NULL,
    segment_id bigint NOT NULL,
    start_offset bigint NOT NULL,
    past bigint NOT NULL,
    past_byte bigint NOT NULL,
    first_clock bigint NOT NULL,
    last_clock bigint NOT NULL,
    commits integer NOT NULL,
    offsets bigint[] NOT NULL,
    bytes_before bigint[] NOT NULL,
    clocks bigint[] NOT NULL,
    transaction_numbers bigint[] NOT NULL,
    min_event_times bigint[],
    max_event_times bigint[],
    digests bigint[],
    PRIMARY KEY (stream_id, segment_id, start_offset),
    FOREIGN KEY (stream_id, segment_id) REFERENCES weir_internal.segment,
    CONSTRAINT packed_commits_are_several CHECK (
        commits > 1 AND cardinality(offsets) = commits AND cardinality(bytes_before) = commits
        AND cardinality(clocks) = commits AND cardinality(transaction_numbers) = commits
        AND offsets[1] = start_offset AND clocks[1] = first_clock AND clocks[commits] = last_clock
        AND offsets[commits] < past AND first_clock < last_clock)
);
CREATE INDEX packed_commits_by_clock ON weir_internal.packed_commits (stream_id, last_clock);
CREATE INDEX packed_commits_by_time ON weir_internal.packed_commits (stream_id, segment_id, first_clock);
-- For questions by name, as the views ask them: see epoch_by_name and segment_by_name.
CREATE INDEX packed_commits_by_segment ON weir_internal.packed_commits
    (stream_name, (((segment_id & 4294967295)::text || '.' || (segment_id >> 32)::text)));
COMMENT ON TABLE weir_internal.packed_commits IS 'Old entries of the time index, of neighbouring commits to a segment, in one row: an array for each of their columns. In a segment they come before all entries that have rows of their own.';
COMMENT ON COLUMN weir_internal.packed_commits.stream_name IS 'scope/stream, which never changes.';
COMMENT ON COLUMN weir_internal.packed_commits.start_offset IS 'The first offset of the first commit.';
COMMENT ON COLUMN weir_internal.packed_commits.past IS 'The offset after the last commit.';
COMMENT ON COLUMN weir_internal.packed_commits.past_byte IS 'The bytes of the segment up to there, as first committed.';
COMMENT ON COLUMN weir_internal.packed_commits.first_clock IS 'The clock of the first commit.';
COMMENT ON COLUMN weir_internal.packed_commits.last_clock IS 'The clock of the last commit.';
COMMENT ON COLUMN weir_internal.packed_commits.commits IS 'How many commits they are.';
COMMENT ON COLUMN weir_internal.packed_commits.offsets IS 'Per commit its first offset; it ends where the next one begins.';
COMMENT ON COLUMN weir_internal.packed_commits.bytes_before IS 'Per commit the bytes of the segment before it, as first committed.';
COMMENT ON COLUMN weir_internal.packed_commits.clocks IS 'Per commit its clock.';
COMMENT ON COLUMN weir_internal.packed_commits.transaction_numbers IS 'Per commit its transaction.';
COMMENT ON COLUMN weir_internal.packed_commits.min_event_times IS 'Per commit the smallest event time of its events; null if no commit has one.';
COMMENT ON COLUMN weir_internal.packed_commits.max_event_times IS 'Per commit the largest event time of its events; null if no commit has one.';
COMMENT ON COLUMN weir_internal.packed_commits.digests IS 'Per commit the digest of its events; null if none was recorded.';
ALTER TABLE weir_internal.packed_commits ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.packed_commits ALTER COLUMN stream_name SET STATISTICS 0;
