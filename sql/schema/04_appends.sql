CREATE TABLE weir_internal.transaction (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    transaction_number bigint NOT NULL,
    stream_name text NOT NULL,
    writer_id text NOT NULL,
    batch_id text NOT NULL,
    fingerprint text NOT NULL,
    allow_repeated_files boolean NOT NULL,
    source text NOT NULL,
    state text NOT NULL CHECK (state IN ('open', 'committed', 'aborted')),
    attempt integer NOT NULL DEFAULT 1,
    epoch integer NOT NULL,
    opened_at timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    staged jsonb,
    ended_at timestamptz,
    clock bigint,
    events bigint,
    bytes bigint,
    files integer,
    rejected bigint,
    min_event_time bigint,
    max_event_time bigint,
    untimed bigint,
    late bigint,
    ahead bigint,
    behind bigint,
    stated_until bigint,
    complete_until bigint,
    newest_event_time bigint,
    final_after xid8,
    PRIMARY KEY (stream_id, transaction_number),
    UNIQUE (stream_name, writer_id, batch_id),
    CONSTRAINT transaction_ended_or_open CHECK ((state = 'open') = (ended_at IS NULL)),
    CONSTRAINT transaction_committed_has_clock CHECK ((state = 'committed') = (clock IS NOT NULL)),
    CONSTRAINT transaction_staged_is_open CHECK (staged IS NULL OR state = 'open')
);
CREATE INDEX transaction_open ON weir_internal.transaction (stream_id, lease_until) WHERE state = 'open';
CREATE INDEX transaction_committing ON weir_internal.transaction (stream_id, transaction_number)
    WHERE staged IS NOT NULL;
-- For questions by name and time, as the views ask them: see epoch_by_name.
CREATE UNIQUE INDEX transaction_by_name ON weir_internal.transaction (stream_name, transaction_number);
CREATE INDEX transaction_by_name_and_time ON weir_internal.transaction
    (stream_name, (('epoch'::timestamp + clock * interval '1 microsecond') AT TIME ZONE 'UTC'));
-- For the snapshots of DuckLake, which are of all streams.
CREATE INDEX transaction_by_clock ON weir_internal.transaction (clock) INCLUDE (stream_id, final_after);
CREATE INDEX transaction_by_writer ON weir_internal.transaction (stream_name, writer_id, transaction_number);
COMMENT ON TABLE weir_internal.transaction IS 'One append: staged files that become visible at once. Kept as long as the stream.';
COMMENT ON COLUMN weir_internal.transaction.transaction_number IS '1, 2, 3 ... per stream; the _weir_tx of its folder.';
COMMENT ON COLUMN weir_internal.transaction.stream_name IS 'scope/stream, which never changes.';
COMMENT ON COLUMN weir_internal.transaction.writer_id IS 'The writer; together with batch_id the identity that makes a retry harmless.';
COMMENT ON COLUMN weir_internal.transaction.batch_id IS 'What the writer calls this input; in weir_ingest a hash of the input paths.';
COMMENT ON COLUMN weir_internal.transaction.fingerprint IS 'A hash of the input; Weir refuses the same identity with another fingerprint.';
COMMENT ON COLUMN weir_internal.transaction.allow_repeated_files IS 'Whether it may append input files that another committed transaction appended.';
COMMENT ON COLUMN weir_internal.transaction.source IS 'What asked for it: DAG run and task, or the name of a program.';
COMMENT ON COLUMN weir_internal.transaction.state IS 'open, committed or aborted.';
COMMENT ON COLUMN weir_internal.transaction.attempt IS 'The attempt that may commit; older ones are fenced.';
COMMENT ON COLUMN weir_internal.transaction.epoch IS 'The epoch that was current when this attempt began.';
COMMENT ON COLUMN weir_internal.transaction.opened_at IS 'When this attempt began.';
COMMENT ON COLUMN weir_internal.transaction.lease_until IS 'From then on weir_upkeep may abort it, but not within the first transaction_lease after the start of Postgres.';
COMMENT ON COLUMN weir_internal.transaction.staged IS 'The files of a commit that waits for a roll; null otherwise.';
COMMENT ON COLUMN weir_internal.transaction.ended_at IS 'When it was committed or aborted.';
COMMENT ON COLUMN weir_internal.transaction.clock IS 'The clock of the commit, and so of all its events.';
COMMENT ON COLUMN weir_internal.transaction.events IS 'How many events it appended; null unless it is committed.';
COMMENT ON COLUMN weir_internal.transaction.bytes IS 'The size of its files; null unless it is committed.';
COMMENT ON COLUMN weir_internal.transaction.files IS 'The number of its files; null unless it is committed.';
COMMENT ON COLUMN weir_internal.transaction.rejected IS 'How many rows of its input were written to <stream>.rejected.';
COMMENT ON COLUMN weir_internal.transaction.min_event_time IS 'The smallest event time of its events, in microseconds since 1970 UTC; null if none has one.';
COMMENT ON COLUMN weir_internal.transaction.max_event_time IS 'The largest event time of its events; null if none has one.';
COMMENT ON COLUMN weir_internal.transaction.untimed IS 'How many of its events have no event time; null if the stream had no event time.';
COMMENT ON COLUMN weir_internal.transaction.late IS 'How many of its events are earlier than what the stream was complete to before it; null if they were not counted.';
COMMENT ON COLUMN weir_internal.transaction.ahead IS 'How many of its events are later than now was, by more than event_time_ahead; null if they were not counted.';
COMMENT ON COLUMN weir_internal.transaction.behind IS 'How many of its events are earlier than what the stream was complete to before it, by more than event_time_back; null if they were not counted.';
COMMENT ON COLUMN weir_internal.transaction.stated_until IS 'The event time that its writer stated with it: everything before has been appended. The largest bigint: the writer appends nothing more.';
COMMENT ON COLUMN weir_internal.transaction.complete_until IS 'The event time that the stream is complete to from this commit on, as its writers state; null if none has.';
COMMENT ON COLUMN weir_internal.transaction.newest_event_time IS 'The largest event time of the stream up to this commit.';
COMMENT ON COLUMN weir_internal.transaction.final_after IS 'Once all transactions of Postgres with a lower number have ended, no commit gets an earlier clock in any stream.';

CREATE TABLE weir_internal.transaction_input (
    stream_id bigint NOT NULL,
    path text NOT NULL,
    transaction_number bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (stream_id, path, transaction_number),
    FOREIGN KEY (stream_id, transaction_number) REFERENCES weir_internal.transaction
);
CREATE INDEX transaction_input_by_transaction ON weir_internal.transaction_input
    (stream_id, transaction_number);
COMMENT ON TABLE weir_internal.transaction_input IS 'The input files of each transaction, so that no file is appended twice by mistake.';
COMMENT ON COLUMN weir_internal.transaction_input.path IS 'The path of the file below its input root.';
COMMENT ON COLUMN weir_internal.transaction_input.bytes IS 'Its size.';

CREATE TABLE weir_internal.stream_writer (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    writer_id text NOT NULL,
    complete_until bigint NOT NULL,
    stated_at timestamptz NOT NULL,
    PRIMARY KEY (stream_id, writer_id)
);
COMMENT ON TABLE weir_internal.stream_writer IS 'The writers that have stated up to which event time they have appended everything.';
COMMENT ON COLUMN weir_internal.stream_writer.writer_id IS 'The writer, as in its transactions.';
COMMENT ON COLUMN weir_internal.stream_writer.complete_until IS 'The latest event time that it has stated, in microseconds since 1970 UTC; the largest bigint once it appends nothing more.';
COMMENT ON COLUMN weir_internal.stream_writer.stated_at IS 'When it stated that.';

CREATE TABLE weir_internal.data_file (
    stream_id bigint NOT NULL,
    stream_name text NOT NULL,
    segment_id bigint NOT NULL,
    start_offset bigint NOT NULL,
    events bigint NOT NULL CHECK (events > 0),
    bytes bigint NOT NULL,
    transaction_number bigint,
    first_clock bigint,
    last_clock bigint,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    schema_version integer NOT NULL,
    path text NOT NULL,
    end_hash bigint,
    file_hash bigint,
    file_id bigint GENERATED BY DEFAULT AS IDENTITY,
    since bigint,
    erased bigint NOT NULL DEFAULT 0 CHECK (erased BETWEEN 0 AND events),
    PRIMARY KEY (stream_id, segment_id, start_offset),
    FOREIGN KEY (stream_id, segment_id) REFERENCES weir_internal.segment,
    FOREIGN KEY (stream_id, transaction_number) REFERENCES weir_internal.transaction,
    CONSTRAINT data_file_of_one_commit_or_with_clocks CHECK (CASE WHEN transaction_number IS NULL
        THEN first_clock < last_clock ELSE num_nonnulls(first_clock, last_clock) = 0 END)
);
-- For questions by name, as the views ask them: see epoch_by_name and segment_by_name.
CREATE INDEX data_file_by_name ON weir_internal.data_file (stream_name, transaction_number);
CREATE INDEX data_file_by_segment ON weir_internal.data_file
    (stream_name, (((segment_id & 4294967295)::text || '.' || (segment_id >> 32)::text)), start_offset);
COMMENT ON TABLE weir_internal.data_file IS 'Which file has which offsets now: a Parquet file has one contiguous run of offsets of one segment.';
COMMENT ON COLUMN weir_internal.data_file.stream_name IS 'scope/stream, which never changes.';
COMMENT ON COLUMN weir_internal.data_file.segment_id IS 'The segment of its events. After a roll its folder may have the name of another segment.';
COMMENT ON COLUMN weir_internal.data_file.start_offset IS 'The first of its offsets; the others follow.';
COMMENT ON COLUMN weir_internal.data_file.events IS 'How many offsets it has: a row each, but for those that were erased.';
COMMENT ON COLUMN weir_internal.data_file.bytes IS 'Its size on disk.';
COMMENT ON COLUMN weir_internal.data_file.transaction_number IS 'The transaction that committed its events; null for a file of several commits, which a compaction wrote: it has the clock of each event in _weir_clock.';
COMMENT ON COLUMN weir_internal.data_file.first_clock IS 'Of a file of several commits: the clock of its first row.';
COMMENT ON COLUMN weir_internal.data_file.last_clock IS 'Of a file of several commits: the clock of its last row.';
COMMENT ON COLUMN weir_internal.data_file.first_seq IS 'The smallest _weir_seq in it: the rank of the row in the input of its transaction.';
COMMENT ON COLUMN weir_internal.data_file.last_seq IS 'The largest _weir_seq in it.';
COMMENT ON COLUMN weir_internal.data_file.schema_version IS 'The version in stream_schema that it was written with.';
COMMENT ON COLUMN weir_internal.data_file.path IS 'Its path below the warehouse.';
COMMENT ON COLUMN weir_internal.data_file.end_hash IS 'XXH64 of its end: of all that follows its pages, and of its last 64 KiB at least; null if it was not recorded.';
COMMENT ON COLUMN weir_internal.data_file.file_hash IS 'XXH64 of all its bytes, recorded when it was written with pyarrow, or first verified with it; else null.';
COMMENT ON COLUMN weir_internal.data_file.file_id IS 'A number that no other file has: DuckLake names it by that.';
COMMENT ON COLUMN weir_internal.data_file.erased IS 'How many of its offsets have no row, because the events were erased. Such a file has the offset of each row in _weir_offset.';
COMMENT ON COLUMN weir_internal.data_file.since IS 'The clock of its first event, for DuckLake, which asks for all files of a stream up to a clock.';

CREATE TABLE weir_internal.time_index (
    stream_id bigint NOT NULL,
    stream_name text NOT NULL,
    segment_id bigint NOT NULL,
    start_offset bigint NOT NULL,
    events bigint NOT NULL CHECK (events > 0),
    start_byte bigint NOT NULL,
    bytes bigint NOT NULL,
    clock bigint NOT NULL,
    transaction_number bigint NOT NULL,
    min_event_time bigint,
    max_event_time bigint,
    digest bigint,
    PRIMARY KEY (stream_id, segment_id, start_offset),
    FOREIGN KEY (stream_id, segment_id) REFERENCES weir_internal.segment
);
CREATE INDEX time_index_by_clock ON weir_internal.time_index (stream_id, clock);
CREATE INDEX time_index_by_time ON weir_internal.time_index (stream_id, segment_id, clock);
-- For questions by name, as the views ask them: see epoch_by_name and segment_by_name.
CREATE INDEX time_index_by_name_and_time ON weir_internal.time_index
    (stream_name, (('epoch'::timestamp + clock * interval '1 microsecond') AT TIME ZONE 'UTC'));
CREATE INDEX time_index_by_segment ON weir_internal.time_index
    (stream_name, (((segment_id & 4294967295)::text || '.' || (segment_id >> 32)::text)), start_offset);
COMMENT ON TABLE weir_internal.time_index IS 'What was committed: one entry per commit and segment, never changed (PDP-28).';
COMMENT ON COLUMN weir_internal.time_index.stream_name IS 'scope/stream, which never changes.';
COMMENT ON COLUMN weir_internal.time_index.start_offset IS 'The first offset of the commit in this segment.';
COMMENT ON COLUMN weir_internal.time_index.events IS 'How many events the commit has in this segment.';
COMMENT ON COLUMN weir_internal.time_index.start_byte IS 'The bytes of the segment before them, as first committed.';
COMMENT ON COLUMN weir_internal.time_index.bytes IS 'Their bytes, as first committed.';
COMMENT ON COLUMN weir_internal.time_index.clock IS 'The clock of the commit.';
COMMENT ON COLUMN weir_internal.time_index.transaction_number IS 'The transaction that was committed.';
COMMENT ON COLUMN weir_internal.time_index.min_event_time IS 'The smallest event time of these events, in microseconds since 1970 UTC; null if none has one.';
COMMENT ON COLUMN weir_internal.time_index.max_event_time IS 'The largest event time of these events; null if none has one.';
COMMENT ON COLUMN weir_internal.time_index.digest IS 'The digest of these events (semantics 18.1); null if it was not recorded.';
