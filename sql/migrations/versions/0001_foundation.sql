-- The base tables. Each piece of state is in one place; whatever can be derived is a view.
-- Clocks are microseconds since 1970 UTC, strictly increasing per stream.
-- A stream cut is a jsonb object: {"<number>.<epoch>": <next offset> or "future"}.

CREATE TABLE weir.installation (
    installation_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    one boolean NOT NULL DEFAULT true UNIQUE CHECK (one)
);
COMMENT ON TABLE weir.installation IS 'This database''s identity; the warehouse carries the same id, checked before every delete.';
COMMENT ON COLUMN weir.installation.installation_id IS 'Also in the warehouse''s file _weir_installation.';
COMMENT ON COLUMN weir.installation.created_at IS 'When the database was first migrated.';
COMMENT ON COLUMN weir.installation.one IS 'Keeps the table at one row.';
INSERT INTO weir.installation DEFAULT VALUES;

CREATE TABLE weir.stream (
    stream_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope text NOT NULL CHECK (scope ~ '\A[a-z0-9][a-z0-9_-]{0,62}\Z'),
    name text NOT NULL CHECK (name ~ '\A[a-z0-9][a-z0-9_-]{0,62}(\.rejected)?\Z'),
    state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'sealed', 'deleted')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    routing_key text NOT NULL,
    on_missing_key text NOT NULL CHECK (on_missing_key IN ('fail', 'quarantine', 'spread')),
    on_bad_rows text NOT NULL CHECK (on_bad_rows IN ('fail', 'quarantine')),
    retain_by_consumption boolean NOT NULL,
    current_epoch integer NOT NULL DEFAULT 0,
    next_segment_number bigint NOT NULL CHECK (next_segment_number > 0),
    next_transaction_number bigint NOT NULL DEFAULT 1,
    schema_version integer NOT NULL DEFAULT 0,
    last_clock bigint NOT NULL,
    head jsonb NOT NULL
);
CREATE UNIQUE INDEX stream_name_is_unique_among_the_living ON weir.stream (scope, name)
    WHERE state <> 'deleted';
COMMENT ON TABLE weir.stream IS 'A stream. The lock on its row serialises every change of the stream.';
COMMENT ON COLUMN weir.stream.stream_id IS 'This life of the stream: a re-created stream of the same name has another.';
COMMENT ON COLUMN weir.stream.scope IS 'The first half of the name.';
COMMENT ON COLUMN weir.stream.name IS 'The second half; ends in .rejected for the reserved stream of rejected rows.';
COMMENT ON COLUMN weir.stream.state IS 'active, sealed (read only) or deleted.';
COMMENT ON COLUMN weir.stream.created_at IS 'When it was created.';
COMMENT ON COLUMN weir.stream.routing_key IS 'Spark SQL expression over the user''s columns, cast to string and hashed.';
COMMENT ON COLUMN weir.stream.on_missing_key IS 'What happens to rows whose routing key is null: fail, quarantine, or spread by rank.';
COMMENT ON COLUMN weir.stream.on_bad_rows IS 'What happens to rows that do not fit the schema: fail or quarantine.';
COMMENT ON COLUMN weir.stream.retain_by_consumption IS 'Whether what all subscribers have consumed is truncated.';
COMMENT ON COLUMN weir.stream.current_epoch IS 'The active epoch.';
COMMENT ON COLUMN weir.stream.next_segment_number IS 'The number of the next new segment.';
COMMENT ON COLUMN weir.stream.next_transaction_number IS 'The number of the next append transaction.';
COMMENT ON COLUMN weir.stream.schema_version IS 'The newest row of stream_schema; 0 before the first append of a stream without a declared schema.';
COMMENT ON COLUMN weir.stream.last_clock IS 'The last clock issued; the next one is greatest(last_clock + 1, now).';
COMMENT ON COLUMN weir.stream.head IS 'The cut where the stream begins now.';

CREATE TABLE weir.stream_schema (
    stream_id bigint NOT NULL REFERENCES weir.stream,
    version integer NOT NULL CHECK (version > 0),
    fields jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream_id, version)
);
COMMENT ON TABLE weir.stream_schema IS 'The user''s columns; a newer version only adds nullable ones.';
COMMENT ON COLUMN weir.stream_schema.stream_id IS 'The stream.';
COMMENT ON COLUMN weir.stream_schema.version IS '1, 2, 3 ...';
COMMENT ON COLUMN weir.stream_schema.fields IS 'Spark''s JSON form of the struct type.';
COMMENT ON COLUMN weir.stream_schema.created_at IS 'When this version came.';

CREATE TABLE weir.epoch (
    stream_id bigint NOT NULL REFERENCES weir.stream,
    epoch integer NOT NULL CHECK (epoch >= 0),
    reference_epoch integer NOT NULL CHECK (reference_epoch <= epoch),
    created_at bigint NOT NULL,
    splits bigint NOT NULL DEFAULT 0,
    merges bigint NOT NULL DEFAULT 0,
    sealed_events bigint NOT NULL DEFAULT 0,
    sealed_bytes bigint NOT NULL DEFAULT 0,
    cause text NOT NULL CHECK (cause IN ('create', 'scale', 'roll')),
    request_id text NOT NULL,
    PRIMARY KEY (stream_id, epoch)
);
CREATE UNIQUE INDEX epoch_by_time ON weir.epoch (stream_id, created_at) INCLUDE (epoch);
COMMENT ON TABLE weir.epoch IS 'One generation of active segments; they tile [0, 1). Written once.';
COMMENT ON COLUMN weir.epoch.stream_id IS 'The stream.';
COMMENT ON COLUMN weir.epoch.epoch IS '0, 1, 2 ...';
COMMENT ON COLUMN weir.epoch.reference_epoch IS 'Itself, or the original of which a roll made this duplicate.';
COMMENT ON COLUMN weir.epoch.created_at IS 'A tick of the stream''s clock.';
COMMENT ON COLUMN weir.epoch.splits IS 'Splits from epoch 0 up to this one (semantics of PDP-32).';
COMMENT ON COLUMN weir.epoch.merges IS 'Merges likewise.';
COMMENT ON COLUMN weir.epoch.sealed_events IS 'Events of all segments sealed by this epoch: a prefix sum.';
COMMENT ON COLUMN weir.epoch.sealed_bytes IS 'Bytes likewise.';
COMMENT ON COLUMN weir.epoch.cause IS 'What made it: create, scale or roll.';
COMMENT ON COLUMN weir.epoch.request_id IS 'Who asked for it.';

CREATE TABLE weir.segment (
    stream_id bigint NOT NULL REFERENCES weir.stream,
    segment_id bigint NOT NULL,
    creation_epoch integer GENERATED ALWAYS AS ((segment_id >> 32)::integer) STORED,
    key_low double precision NOT NULL CHECK (key_low >= 0),
    key_high double precision NOT NULL CHECK (key_high <= 1),
    sealed_epoch integer,
    events bigint,
    bytes bigint,
    PRIMARY KEY (stream_id, segment_id),
    CHECK (key_low < key_high),
    CHECK (sealed_epoch > (segment_id >> 32)),
    CHECK ((sealed_epoch IS NULL) = (events IS NULL) AND (events IS NULL) = (bytes IS NULL))
);
CREATE INDEX segment_tiling ON weir.segment (stream_id, key_low, creation_epoch)
    INCLUDE (segment_id, key_high, sealed_epoch);
CREATE INDEX segment_by_sealing ON weir.segment (stream_id, sealed_epoch);
COMMENT ON TABLE weir.segment IS 'A shard of the key space [key_low, key_high); written at its creation and its sealing only.';
COMMENT ON COLUMN weir.segment.stream_id IS 'The stream.';
COMMENT ON COLUMN weir.segment.segment_id IS 'creation epoch << 32 | number; written number.epoch.';
COMMENT ON COLUMN weir.segment.creation_epoch IS 'The high half of the id.';
COMMENT ON COLUMN weir.segment.key_low IS 'Where its range begins (inclusive).';
COMMENT ON COLUMN weir.segment.key_high IS 'Where its range ends (exclusive).';
COMMENT ON COLUMN weir.segment.sealed_epoch IS 'The epoch in which it is no longer; null while it is active.';
COMMENT ON COLUMN weir.segment.events IS 'Its final number of events; null while it is active.';
COMMENT ON COLUMN weir.segment.bytes IS 'Its final bytes; null while it is active.';

CREATE TABLE weir.segment_tail (
    stream_id bigint NOT NULL,
    segment_id bigint NOT NULL,
    tail_offset bigint NOT NULL DEFAULT 0,
    tail_bytes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (stream_id, segment_id),
    FOREIGN KEY (stream_id, segment_id) REFERENCES weir.segment
) WITH (fillfactor = 50);
COMMENT ON TABLE weir.segment_tail IS 'Where the next event of each active segment goes: the only rows per segment that a commit updates.';
COMMENT ON COLUMN weir.segment_tail.stream_id IS 'The stream.';
COMMENT ON COLUMN weir.segment_tail.segment_id IS 'An active segment.';
COMMENT ON COLUMN weir.segment_tail.tail_offset IS 'The offset of the next event.';
COMMENT ON COLUMN weir.segment_tail.tail_bytes IS 'The bytes before it, as first committed.';

CREATE TABLE weir.transaction (
    stream_id bigint NOT NULL REFERENCES weir.stream,
    transaction_number bigint NOT NULL,
    writer_id text NOT NULL,
    batch_id text NOT NULL,
    fingerprint text NOT NULL,
    state text NOT NULL CHECK (state IN ('open', 'committed', 'aborted')),
    attempt integer NOT NULL DEFAULT 1,
    epoch integer NOT NULL,
    opened_at timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    ended_at timestamptz,
    clock bigint,
    events bigint,
    bytes bigint,
    files integer,
    rejected bigint,
    append_again boolean NOT NULL,
    source text NOT NULL,
    PRIMARY KEY (stream_id, transaction_number),
    UNIQUE (stream_id, writer_id, batch_id),
    FOREIGN KEY (stream_id, epoch) REFERENCES weir.epoch,
    CHECK ((state = 'open') = (ended_at IS NULL)),
    CHECK ((state = 'committed') = (clock IS NOT NULL))
);
CREATE INDEX transaction_open ON weir.transaction (stream_id, lease_until) WHERE state = 'open';
CREATE INDEX transaction_by_clock ON weir.transaction (stream_id, clock) WHERE state = 'committed';
COMMENT ON TABLE weir.transaction IS 'One append: staged files that become visible at once. Kept as long as the stream.';
COMMENT ON COLUMN weir.transaction.stream_id IS 'The stream.';
COMMENT ON COLUMN weir.transaction.transaction_number IS '1, 2, 3 ... per stream; the _weir_tx of its folder.';
COMMENT ON COLUMN weir.transaction.writer_id IS 'Who appends; with batch_id the identity that makes a retry harmless.';
COMMENT ON COLUMN weir.transaction.batch_id IS 'What is appended.';
COMMENT ON COLUMN weir.transaction.fingerprint IS 'Of the input; the same identity with another is refused.';
COMMENT ON COLUMN weir.transaction.state IS 'open, committed or aborted.';
COMMENT ON COLUMN weir.transaction.attempt IS 'The attempt that may commit; older ones are fenced.';
COMMENT ON COLUMN weir.transaction.epoch IS 'The epoch that was current when this attempt began.';
COMMENT ON COLUMN weir.transaction.opened_at IS 'When this attempt began.';
COMMENT ON COLUMN weir.transaction.lease_until IS 'From then on it may be aborted by others.';
COMMENT ON COLUMN weir.transaction.ended_at IS 'When it was committed or aborted.';
COMMENT ON COLUMN weir.transaction.clock IS 'The clock of the commit: that of all its events.';
COMMENT ON COLUMN weir.transaction.events IS 'Events it appended.';
COMMENT ON COLUMN weir.transaction.bytes IS 'Bytes of its files.';
COMMENT ON COLUMN weir.transaction.files IS 'Number of its files.';
COMMENT ON COLUMN weir.transaction.rejected IS 'Rows of its input that went to <stream>.rejected.';
COMMENT ON COLUMN weir.transaction.append_again IS 'Whether input files that another transaction holds were wanted.';
COMMENT ON COLUMN weir.transaction.source IS 'What asked for it: DAG run and task, or a program''s name.';

CREATE TABLE weir.transaction_input (
    stream_id bigint NOT NULL,
    path text NOT NULL,
    transaction_number bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (stream_id, path, transaction_number),
    FOREIGN KEY (stream_id, transaction_number) REFERENCES weir.transaction
);
COMMENT ON TABLE weir.transaction_input IS 'The input files of a transaction, so that a file is not appended twice by mistake.';
COMMENT ON COLUMN weir.transaction_input.stream_id IS 'The stream.';
COMMENT ON COLUMN weir.transaction_input.path IS 'The file''s path below its input root.';
COMMENT ON COLUMN weir.transaction_input.transaction_number IS 'The transaction that appends it.';
COMMENT ON COLUMN weir.transaction_input.bytes IS 'Its size.';

CREATE TABLE weir.data_file (
    stream_id bigint NOT NULL,
    segment_id bigint NOT NULL,
    start_offset bigint NOT NULL,
    events bigint NOT NULL CHECK (events > 0),
    bytes bigint NOT NULL,
    transaction_number bigint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    schema_version integer NOT NULL,
    path text NOT NULL,
    PRIMARY KEY (stream_id, segment_id, start_offset),
    FOREIGN KEY (stream_id, segment_id) REFERENCES weir.segment,
    FOREIGN KEY (stream_id, transaction_number) REFERENCES weir.transaction
);
COMMENT ON TABLE weir.data_file IS 'Where offsets lie now: one Parquet file holds one contiguous run of one segment.';
COMMENT ON COLUMN weir.data_file.stream_id IS 'The stream.';
COMMENT ON COLUMN weir.data_file.segment_id IS 'The segment its events belong to (its folder may name another: see rolls).';
COMMENT ON COLUMN weir.data_file.start_offset IS 'The offset of its first row; the others follow.';
COMMENT ON COLUMN weir.data_file.events IS 'Its number of rows.';
COMMENT ON COLUMN weir.data_file.bytes IS 'Its size on disk.';
COMMENT ON COLUMN weir.data_file.transaction_number IS 'The transaction that wrote it.';
COMMENT ON COLUMN weir.data_file.first_seq IS 'The smallest _weir_seq in it: the rank of the row in the transaction''s input.';
COMMENT ON COLUMN weir.data_file.last_seq IS 'The largest.';
COMMENT ON COLUMN weir.data_file.schema_version IS 'The schema it was written with.';
COMMENT ON COLUMN weir.data_file.path IS 'Below the warehouse.';

CREATE TABLE weir.time_index (
    stream_id bigint NOT NULL,
    segment_id bigint NOT NULL,
    start_offset bigint NOT NULL,
    events bigint NOT NULL CHECK (events > 0),
    start_byte bigint NOT NULL,
    bytes bigint NOT NULL,
    clock bigint NOT NULL,
    transaction_number bigint NOT NULL,
    PRIMARY KEY (stream_id, segment_id, start_offset),
    FOREIGN KEY (stream_id, segment_id) REFERENCES weir.segment
);
CREATE INDEX time_index_by_clock ON weir.time_index (stream_id, clock);
COMMENT ON TABLE weir.time_index IS 'What was committed: an entry per commit and segment, never changed (PDP-28).';
COMMENT ON COLUMN weir.time_index.stream_id IS 'The stream.';
COMMENT ON COLUMN weir.time_index.segment_id IS 'The segment.';
COMMENT ON COLUMN weir.time_index.start_offset IS 'The first offset of the commit in this segment.';
COMMENT ON COLUMN weir.time_index.events IS 'How many events it has there.';
COMMENT ON COLUMN weir.time_index.start_byte IS 'The bytes of the segment before them, as first committed.';
COMMENT ON COLUMN weir.time_index.bytes IS 'Their bytes, as first committed.';
COMMENT ON COLUMN weir.time_index.clock IS 'The clock of the commit.';
COMMENT ON COLUMN weir.time_index.transaction_number IS 'The transaction.';

CREATE TABLE weir.stream_cut (
    stream_id bigint NOT NULL REFERENCES weir.stream,
    recorded_at timestamptz NOT NULL,
    clock bigint NOT NULL,
    cut jsonb NOT NULL,
    events bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (stream_id, recorded_at)
);
COMMENT ON TABLE weir.stream_cut IS 'The retention set: recorded tail cuts, strictly later each.';
COMMENT ON COLUMN weir.stream_cut.stream_id IS 'The stream.';
COMMENT ON COLUMN weir.stream_cut.recorded_at IS 'When it was captured.';
COMMENT ON COLUMN weir.stream_cut.clock IS 'The stream''s last clock then.';
COMMENT ON COLUMN weir.stream_cut.cut IS 'The tail then.';
COMMENT ON COLUMN weir.stream_cut.events IS 'Events before the cut, from the beginning of the stream.';
COMMENT ON COLUMN weir.stream_cut.bytes IS 'Bytes likewise.';

CREATE TABLE weir.retention_decision (
    stream_id bigint NOT NULL REFERENCES weir.stream,
    decided_at timestamptz NOT NULL,
    rule text NOT NULL,
    reason text NOT NULL,
    head jsonb NOT NULL,
    bound jsonb,
    cut jsonb,
    held_by text[] NOT NULL,
    events bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (stream_id, decided_at)
);
COMMENT ON TABLE weir.retention_decision IS 'What retention decided and why; a decision that repeats the last one is not repeated here.';
COMMENT ON COLUMN weir.retention_decision.stream_id IS 'The stream.';
COMMENT ON COLUMN weir.retention_decision.decided_at IS 'When.';
COMMENT ON COLUMN weir.retention_decision.rule IS 'The rule that chose: no_rule, nothing_consumed, consumed.';
COMMENT ON COLUMN weir.retention_decision.reason IS 'The same in words.';
COMMENT ON COLUMN weir.retention_decision.head IS 'The head before.';
COMMENT ON COLUMN weir.retention_decision.bound IS 'The lower bound of the subscribers; null without any.';
COMMENT ON COLUMN weir.retention_decision.cut IS 'The new head; null when nothing is to do.';
COMMENT ON COLUMN weir.retention_decision.held_by IS 'The subscribers whose cuts make the bound.';
COMMENT ON COLUMN weir.retention_decision.events IS 'Events freed.';
COMMENT ON COLUMN weir.retention_decision.bytes IS 'Bytes freed, as first committed.';

CREATE TABLE weir.reader_group (
    group_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '\A[a-z0-9][a-z0-9_-]{0,62}\Z'),
    generation bigint NOT NULL DEFAULT 0,
    subscriber boolean NOT NULL,
    on_gap text NOT NULL CHECK (on_gap IN ('fail', 'skip')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    next_token bigint NOT NULL DEFAULT 1,
    next_batch bigint NOT NULL DEFAULT 1,
    moved_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE weir.reader_group IS 'A named set of readers. The lock on its row serialises every change of the group.';
COMMENT ON COLUMN weir.reader_group.group_id IS 'Its id.';
COMMENT ON COLUMN weir.reader_group.name IS 'Its name.';
COMMENT ON COLUMN weir.reader_group.generation IS 'Grows with each change of its configuration.';
COMMENT ON COLUMN weir.reader_group.subscriber IS 'Whether its checkpoints hold retention back.';
COMMENT ON COLUMN weir.reader_group.on_gap IS 'What a reader does that finds its position truncated: fail, or skip to the head.';
COMMENT ON COLUMN weir.reader_group.created_at IS 'When it was created.';
COMMENT ON COLUMN weir.reader_group.next_token IS 'The next fencing token.';
COMMENT ON COLUMN weir.reader_group.next_batch IS 'The next batch id.';
COMMENT ON COLUMN weir.reader_group.moved_at IS 'When its positions last moved.';

CREATE TABLE weir.reader_group_stream (
    group_id bigint NOT NULL REFERENCES weir.reader_group ON DELETE CASCADE,
    stream_id bigint NOT NULL REFERENCES weir.stream,
    start_cut jsonb NOT NULL,
    published_cut jsonb,
    published_at timestamptz,
    lost_events bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (group_id, stream_id)
);
CREATE INDEX reader_group_stream_by_stream ON weir.reader_group_stream (stream_id);
COMMENT ON TABLE weir.reader_group_stream IS 'A stream that a group reads.';
COMMENT ON COLUMN weir.reader_group_stream.group_id IS 'The group.';
COMMENT ON COLUMN weir.reader_group_stream.stream_id IS 'The stream (this life of it).';
COMMENT ON COLUMN weir.reader_group_stream.start_cut IS 'Where the group began.';
COMMENT ON COLUMN weir.reader_group_stream.published_cut IS 'What the subscriber released; from its creation its start cut. Null for a group that is not a subscriber.';
COMMENT ON COLUMN weir.reader_group_stream.published_at IS 'When that was.';
COMMENT ON COLUMN weir.reader_group_stream.lost_events IS 'Events truncated before this group read them, as its readers skipped them.';

CREATE TABLE weir.reader (
    group_id bigint NOT NULL REFERENCES weir.reader_group ON DELETE CASCADE,
    reader_id text NOT NULL,
    token bigint NOT NULL,
    lease_until timestamptz NOT NULL,
    joined_at timestamptz NOT NULL,
    PRIMARY KEY (group_id, reader_id)
) WITH (fillfactor = 70);
COMMENT ON TABLE weir.reader IS 'A reader that has joined a group and not left it.';
COMMENT ON COLUMN weir.reader.group_id IS 'The group.';
COMMENT ON COLUMN weir.reader.reader_id IS 'DAG, run, task and map index: the same over retries.';
COMMENT ON COLUMN weir.reader.token IS 'Its fencing token; an older one may do nothing.';
COMMENT ON COLUMN weir.reader.lease_until IS 'From then on others may take over.';
COMMENT ON COLUMN weir.reader.joined_at IS 'When it joined.';

CREATE TABLE weir.reader_batch (
    group_id bigint NOT NULL REFERENCES weir.reader_group ON DELETE CASCADE,
    batch_id bigint NOT NULL,
    reader_id text NOT NULL,
    token bigint NOT NULL,
    attempt integer NOT NULL DEFAULT 1,
    state text NOT NULL CHECK (state IN ('open', 'committed')),
    bounds jsonb NOT NULL,
    events bigint NOT NULL,
    bytes bigint NOT NULL,
    opened_at timestamptz NOT NULL,
    committed_at timestamptz,
    outputs jsonb,
    PRIMARY KEY (group_id, batch_id)
);
CREATE INDEX reader_batch_open ON weir.reader_batch (group_id) WHERE state = 'open';
COMMENT ON TABLE weir.reader_batch IS 'What one reader reads at once; the bounds are recorded before reading starts.';
COMMENT ON COLUMN weir.reader_batch.group_id IS 'The group; the batch belongs to it, not to its reader.';
COMMENT ON COLUMN weir.reader_batch.batch_id IS '1, 2, 3 ... per group.';
COMMENT ON COLUMN weir.reader_batch.reader_id IS 'The reader that holds it, or committed it.';
COMMENT ON COLUMN weir.reader_batch.token IS 'The token with which it may be committed.';
COMMENT ON COLUMN weir.reader_batch.attempt IS '1, and one more at each take-over or retry; names the outputs'' folders.';
COMMENT ON COLUMN weir.reader_batch.state IS 'open or committed.';
COMMENT ON COLUMN weir.reader_batch.bounds IS 'Array of {stream, segment, from, to}: offsets, to exclusive.';
COMMENT ON COLUMN weir.reader_batch.events IS 'Events between the bounds.';
COMMENT ON COLUMN weir.reader_batch.bytes IS 'Their bytes, about.';
COMMENT ON COLUMN weir.reader_batch.opened_at IS 'When the bounds were fixed; files that died later are not deleted while it is open.';
COMMENT ON COLUMN weir.reader_batch.committed_at IS 'When it was committed.';
COMMENT ON COLUMN weir.reader_batch.outputs IS 'What counts of what it wrote: Parquet folders and stream transactions.';

CREATE TABLE weir.reader_group_segment (
    group_id bigint NOT NULL REFERENCES weir.reader_group ON DELETE CASCADE,
    stream_id bigint NOT NULL,
    segment_id bigint NOT NULL,
    state text NOT NULL CHECK (state IN ('unassigned', 'assigned', 'future', 'completed')),
    next_offset bigint,
    reader_id text,
    batch_id bigint,
    PRIMARY KEY (group_id, stream_id, segment_id),
    FOREIGN KEY (group_id, stream_id) REFERENCES weir.reader_group_stream ON DELETE CASCADE,
    FOREIGN KEY (stream_id, segment_id) REFERENCES weir.segment,
    FOREIGN KEY (group_id, reader_id) REFERENCES weir.reader,
    FOREIGN KEY (group_id, batch_id) REFERENCES weir.reader_batch,
    CHECK ((state = 'future') = (next_offset IS NULL)),
    CHECK ((state = 'assigned') = (reader_id IS NOT NULL)),
    CHECK (batch_id IS NULL OR state = 'assigned')
) WITH (fillfactor = 70);
CREATE INDEX reader_group_segment_by_stream ON weir.reader_group_segment (stream_id);
COMMENT ON TABLE weir.reader_group_segment IS 'The positions of a group. A completed segment is kept only where it has no successor (the end of a sealed stream).';
COMMENT ON COLUMN weir.reader_group_segment.group_id IS 'The group.';
COMMENT ON COLUMN weir.reader_group_segment.stream_id IS 'The stream.';
COMMENT ON COLUMN weir.reader_group_segment.segment_id IS 'The segment.';
COMMENT ON COLUMN weir.reader_group_segment.state IS 'unassigned, assigned to one reader, future (waits for predecessors) or completed.';
COMMENT ON COLUMN weir.reader_group_segment.next_offset IS 'The next offset to read, as committed; null for a future segment.';
COMMENT ON COLUMN weir.reader_group_segment.reader_id IS 'Who owns it.';
COMMENT ON COLUMN weir.reader_group_segment.batch_id IS 'The open batch it is part of.';

CREATE TABLE weir.checkpoint (
    group_id bigint NOT NULL REFERENCES weir.reader_group ON DELETE CASCADE,
    name text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('automatic', 'manual')),
    created_at timestamptz NOT NULL,
    cuts jsonb NOT NULL,
    published boolean NOT NULL,
    PRIMARY KEY (group_id, name)
);
CREATE INDEX checkpoint_by_time ON weir.checkpoint (group_id, created_at);
COMMENT ON TABLE weir.checkpoint IS 'A named, consistent cut of a reader group.';
COMMENT ON COLUMN weir.checkpoint.group_id IS 'The group.';
COMMENT ON COLUMN weir.checkpoint.name IS 'Given by a person, or automatic-<clock>.';
COMMENT ON COLUMN weir.checkpoint.kind IS 'automatic (periodic) or manual.';
COMMENT ON COLUMN weir.checkpoint.created_at IS 'When.';
COMMENT ON COLUMN weir.checkpoint.cuts IS 'Object from stream id to the group''s cut of that stream.';
COMMENT ON COLUMN weir.checkpoint.published IS 'Whether it was published to retention (subscribers only).';

CREATE TABLE weir.garbage (
    root text NOT NULL,
    path text NOT NULL,
    stream_id bigint,
    reason text NOT NULL,
    bytes bigint NOT NULL DEFAULT 0,
    dead_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (root, path)
);
CREATE INDEX garbage_by_death ON weir.garbage (dead_at);
COMMENT ON TABLE weir.garbage IS 'Files and folders that nothing refers to any more, until they are deleted.';
COMMENT ON COLUMN weir.garbage.root IS 'Empty for the warehouse, else the output root.';
COMMENT ON COLUMN weir.garbage.path IS 'Below the root; a folder ends in /.';
COMMENT ON COLUMN weir.garbage.stream_id IS 'The stream whose open batches may still need it.';
COMMENT ON COLUMN weir.garbage.reason IS 'truncated, aborted, fenced or rejected (copied to <stream>.rejected).';
COMMENT ON COLUMN weir.garbage.bytes IS 'Its size, where known.';
COMMENT ON COLUMN weir.garbage.dead_at IS 'When nothing referred to it any more.';

CREATE TABLE weir.request (
    request_id text NOT NULL,
    operation text NOT NULL,
    object text NOT NULL,
    arguments text NOT NULL,
    result jsonb NOT NULL,
    finished_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (request_id, operation, object)
);
COMMENT ON TABLE weir.request IS 'Requests that changed something: the same again returns its result, with other arguments it is a conflict.';
COMMENT ON COLUMN weir.request.request_id IS 'By default DAG, run, task and map index, without the try number.';
COMMENT ON COLUMN weir.request.operation IS 'create_stream, scale ...';
COMMENT ON COLUMN weir.request.object IS 'The name of the stream or group.';
COMMENT ON COLUMN weir.request.arguments IS 'A hash of the arguments.';
COMMENT ON COLUMN weir.request.result IS 'What it returned.';
COMMENT ON COLUMN weir.request.finished_at IS 'When.';

CREATE TABLE weir.job_run (
    dag_id text NOT NULL,
    run_id text NOT NULL,
    task_id text NOT NULL,
    map_index integer NOT NULL,
    try_number integer NOT NULL,
    job text NOT NULL,
    arguments jsonb NOT NULL,
    state text NOT NULL CHECK (state IN ('running', 'succeeded', 'failed')),
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    progress text,
    report jsonb,
    error text,
    retryable boolean,
    PRIMARY KEY (dag_id, run_id, task_id, map_index, try_number)
) WITH (fillfactor = 70);
CREATE INDEX job_run_by_time ON weir.job_run (started_at);
COMMENT ON TABLE weir.job_run IS 'What each job did: its progress, its report, or the sentence with which it failed. Also the lineage.';
COMMENT ON COLUMN weir.job_run.dag_id IS 'Airflow''s DAG (or "by hand").';
COMMENT ON COLUMN weir.job_run.run_id IS 'Airflow''s run.';
COMMENT ON COLUMN weir.job_run.task_id IS 'Airflow''s task.';
COMMENT ON COLUMN weir.job_run.map_index IS 'Airflow''s map index; -1 for a task that is not mapped.';
COMMENT ON COLUMN weir.job_run.try_number IS 'Airflow''s try.';
COMMENT ON COLUMN weir.job_run.job IS 'The file in spark_jobs.';
COMMENT ON COLUMN weir.job_run.arguments IS 'What it was given; never a secret.';
COMMENT ON COLUMN weir.job_run.state IS 'running, succeeded or failed; one that was killed stays running.';
COMMENT ON COLUMN weir.job_run.started_at IS 'When it began.';
COMMENT ON COLUMN weir.job_run.updated_at IS 'When it last reported.';
COMMENT ON COLUMN weir.job_run.progress IS 'What it said last.';
COMMENT ON COLUMN weir.job_run.report IS 'What it did.';
COMMENT ON COLUMN weir.job_run.error IS 'Why it failed, in one sentence.';
COMMENT ON COLUMN weir.job_run.retryable IS 'Whether trying again may help.';
