CREATE TABLE weir_internal.reader_batch (
    group_id bigint NOT NULL REFERENCES weir_internal.reader_group ON DELETE CASCADE,
    group_name text NOT NULL,
    batch_id bigint NOT NULL,
    reader_id text NOT NULL,
    token bigint NOT NULL,
    attempt integer NOT NULL DEFAULT 1,
    state text NOT NULL CHECK (state IN ('open', 'committed', 'abandoned', 'split')),
    bounds jsonb NOT NULL,
    rest jsonb NOT NULL DEFAULT '[]',
    events bigint NOT NULL,
    bytes bigint NOT NULL,
    read_order text NOT NULL DEFAULT 'segment',
    readers integer NOT NULL DEFAULT 1,
    up_to bigint,
    opened_at timestamptz NOT NULL,
    committed_at timestamptz,
    ended_at timestamptz,
    outputs jsonb,
    rejected bigint NOT NULL DEFAULT 0,
    error text,
    max_lateness bigint,
    p99_lateness bigint,
    hole bigint,
    complete_until bigint,
    function text,
    function_version text,
    PRIMARY KEY (group_id, batch_id),
    CONSTRAINT reader_batch_ended_or_open CHECK ((state = 'open') = (ended_at IS NULL))
);
CREATE INDEX reader_batch_open ON weir_internal.reader_batch (group_id) WHERE state = 'open';
-- For questions by the group's name, as the views ask them: see epoch_by_name.
CREATE UNIQUE INDEX reader_batch_by_name ON weir_internal.reader_batch (group_name, batch_id);
CREATE INDEX reader_batch_open_by_name ON weir_internal.reader_batch (group_name) WHERE state = 'open';
-- Also: how fast a group reads follows from its batches of the last hour, however many there were before.
CREATE INDEX reader_batch_by_commit ON weir_internal.reader_batch (group_name, committed_at);
-- For pruning: the batches that ended, by time.
CREATE INDEX reader_batch_ended ON weir_internal.reader_batch (ended_at) WHERE state <> 'open';
-- For lineage: what a run has committed.
CREATE INDEX reader_batch_by_run ON weir_internal.reader_batch (reader_id) WHERE state = 'committed';
COMMENT ON TABLE weir_internal.reader_batch IS 'What one reader reads at once. Its bounds are recorded before the reader begins to read.';
COMMENT ON COLUMN weir_internal.reader_batch.group_id IS 'The group. The batch belongs to it, not to the reader.';
COMMENT ON COLUMN weir_internal.reader_batch.group_name IS 'The name of the group, which never changes.';
COMMENT ON COLUMN weir_internal.reader_batch.batch_id IS '1, 2, 3 ... per group.';
COMMENT ON COLUMN weir_internal.reader_batch.reader_id IS 'The reader that holds it, or committed it.';
COMMENT ON COLUMN weir_internal.reader_batch.token IS 'The token with which it may be committed.';
COMMENT ON COLUMN weir_internal.reader_batch.attempt IS '1, and one more at each take-over or retry; part of the names of the output folders. 0 until a reader begins to read a half.';
COMMENT ON COLUMN weir_internal.reader_batch.state IS 'open; committed; abandoned by a reset or by weir_reader_offline; or split because it failed: other batches read its halves.';
COMMENT ON COLUMN weir_internal.reader_batch.bounds IS 'Array of {stream, segment, from, to}: offsets, to exclusive.';
COMMENT ON COLUMN weir_internal.reader_batch.rest IS 'Array of arrays of bounds: what was split off. Batches of their own read it after this batch, in this order.';
COMMENT ON COLUMN weir_internal.reader_batch.events IS 'Events between the bounds when it was opened.';
COMMENT ON COLUMN weir_internal.reader_batch.bytes IS 'Their bytes, approximately.';
COMMENT ON COLUMN weir_internal.reader_batch.read_order IS 'The order that the reader that opened it asked for: segment, stream or none. Its bounds are planned for that order.';
COMMENT ON COLUMN weir_internal.reader_batch.readers IS 'Among how many readers the group was shared when it was opened.';
COMMENT ON COLUMN weir_internal.reader_batch.up_to IS 'Of an aligned group: the clock up to which everything is in this batch or was read before; nothing in it is later. Null otherwise.';
COMMENT ON COLUMN weir_internal.reader_batch.opened_at IS 'When the bounds were fixed. While the batch is open, a sweep keeps the files that became garbage after that.';
COMMENT ON COLUMN weir_internal.reader_batch.committed_at IS 'When it was committed; null for a batch that was not.';
COMMENT ON COLUMN weir_internal.reader_batch.ended_at IS 'When it was committed, abandoned or split; null while it is open.';
COMMENT ON COLUMN weir_internal.reader_batch.outputs IS 'While it is open, all outputs that its attempts began to write; then the outputs that count: Parquet folders, tables and appends to streams.';
COMMENT ON COLUMN weir_internal.reader_batch.rejected IS 'How many of its events failed and were written to <stream>.rejected.';
COMMENT ON COLUMN weir_internal.reader_batch.error IS 'Why it was abandoned or split, if that is known.';
COMMENT ON COLUMN weir_internal.reader_batch.max_lateness IS 'Microseconds by which its oldest event is older than the newest event of its stream that was read before it; null until it is committed.';
COMMENT ON COLUMN weir_internal.reader_batch.p99_lateness IS 'The same for its events: 99 % of them are at most so late.';
COMMENT ON COLUMN weir_internal.reader_batch.hole IS 'By how many microseconds, after its commit, the oldest unread event of a stream was older than the newest one that the group has read of that stream: the most of its streams. 0 if no unread event was older; null until it is committed.';
COMMENT ON COLUMN weir_internal.reader_batch.complete_until IS 'The event time that its group has read everything before, once it is committed, as the writers state; null if no stream has such a statement.';
COMMENT ON COLUMN weir_internal.reader_batch.function IS 'The function that made its results, as module:function; null for a program of one''s own, and until it is committed.';
COMMENT ON COLUMN weir_internal.reader_batch.function_version IS 'The first 16 digits of the SHA-256 of the file that defines the function.';

-- What batches read, to be found by what they read. A B-tree can't find ranges that overlap one, but it can if the
-- ranges are no longer than a power of two; so a range is looked for once per size class.
CREATE TABLE weir_internal.batch_input (
    stream_id bigint NOT NULL,
    segment_id bigint NOT NULL,
    from_offset bigint NOT NULL,
    to_offset bigint NOT NULL CHECK (to_offset > from_offset),
    size_class smallint NOT NULL,
    group_id bigint NOT NULL,
    batch_id bigint NOT NULL
);
CREATE INDEX batch_input_by_range ON weir_internal.batch_input (stream_id, segment_id, size_class, from_offset);
COMMENT ON TABLE weir_internal.batch_input IS 'Which events each committed batch read: its bounds, to be found by the events. Pruned with the batch.';
COMMENT ON COLUMN weir_internal.batch_input.stream_id IS 'The stream, which may have been deleted.';
COMMENT ON COLUMN weir_internal.batch_input.segment_id IS 'The segment.';
COMMENT ON COLUMN weir_internal.batch_input.from_offset IS 'The first offset.';
COMMENT ON COLUMN weir_internal.batch_input.to_offset IS 'The offset after the last one.';
COMMENT ON COLUMN weir_internal.batch_input.size_class IS 'A number n such that the batch read at most 2^n events of the segment.';
COMMENT ON COLUMN weir_internal.batch_input.group_id IS 'The group of the batch, which may have been deleted.';
COMMENT ON COLUMN weir_internal.batch_input.batch_id IS 'The batch of the group.';

-- Old batches are pruned, but the list of Parquet outputs is kept as long as the group. Rows are numbered
-- in the order of the commits, so that a full part of the list never changes.
CREATE TABLE weir_internal.parquet_output (
    group_id bigint NOT NULL REFERENCES weir_internal.reader_group ON DELETE CASCADE,
    group_name text NOT NULL,
    output text NOT NULL,
    number bigint NOT NULL CHECK (number >= 0),
    batch_id bigint NOT NULL,
    root text NOT NULL,
    path text NOT NULL,
    partitions text NOT NULL DEFAULT '',
    committed_at timestamptz NOT NULL,
    PRIMARY KEY (group_id, output, number)
);
-- For questions by the group's name, as the views ask them: see epoch_by_name.
CREATE INDEX parquet_output_by_batch ON weir_internal.parquet_output (group_name, batch_id);
CREATE INDEX parquet_output_by_commit ON weir_internal.parquet_output (group_name, committed_at);
COMMENT ON TABLE weir_internal.parquet_output IS 'The Parquet folders that count: exactly one attempt of each batch and output.';
COMMENT ON COLUMN weir_internal.parquet_output.group_name IS 'The name of the group, which never changes.';
COMMENT ON COLUMN weir_internal.parquet_output.output IS 'The name that the job gives to the output.';
COMMENT ON COLUMN weir_internal.parquet_output.number IS '0, 1, 2 ... per group and output, in the order of the commits.';
COMMENT ON COLUMN weir_internal.parquet_output.batch_id IS 'The batch that wrote it; its row may be pruned.';
COMMENT ON COLUMN weir_internal.parquet_output.root IS 'The output root.';
COMMENT ON COLUMN weir_internal.parquet_output.path IS 'The folder, below the root.';
COMMENT ON COLUMN weir_internal.parquet_output.partitions IS 'The columns by which its files are partitioned, with their types as SQL; empty without any.';
COMMENT ON COLUMN weir_internal.parquet_output.committed_at IS 'When the batch was committed.';
