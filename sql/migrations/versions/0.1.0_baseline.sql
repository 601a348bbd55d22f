-- The tables of version 0.1.0. Their meaning is in sql/schema, which has the comments, too.
CREATE SCHEMA IF NOT EXISTS weir;
CREATE SCHEMA weir_staging;

CREATE TABLE weir_internal.installation (
    installation_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    sweep_count bigint NOT NULL DEFAULT 0,
    incarnation text NOT NULL,
    one boolean NOT NULL DEFAULT true UNIQUE CHECK (one)
);

-- As weir_internal.incarnation() has it, which is made after the tables.
INSERT INTO weir_internal.installation (incarnation)
SELECT concat_ws(
    '/', s.system_identifier, greatest(c.timeline_id, r.min_recovery_end_timeline), d.oid,
    'weir_internal.installation'::regclass::oid)
FROM pg_control_system() s, pg_control_checkpoint() c, pg_control_recovery() r, pg_database d
WHERE d.datname = current_database();

CREATE TABLE weir_internal.stream (
    stream_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope text NOT NULL CHECK (scope ~ '\A[a-z0-9][a-z0-9_-]{0,62}\Z'),
    name text NOT NULL CHECK (name ~ '\A[a-z0-9][a-z0-9_-]{0,62}(\.rejected)?\Z'),
    stream_name text NOT NULL GENERATED ALWAYS AS (scope || '/' || name) STORED,
    state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'sealed', 'deleted')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    routing_key text NOT NULL,
    on_missing_key text NOT NULL CHECK (on_missing_key IN ('fail', 'quarantine', 'spread')),
    on_bad_rows text NOT NULL CHECK (on_bad_rows IN ('fail', 'quarantine')),
    on_new_column text NOT NULL DEFAULT 'add' CHECK (on_new_column IN ('refuse', 'add')),
    event_time text,
    tags text[] NOT NULL DEFAULT '{}',
    scaling text NOT NULL DEFAULT 'fixed' CHECK (scaling IN ('fixed', 'event_rate', 'byte_rate')),
    min_segments integer NOT NULL DEFAULT 1 CHECK (min_segments > 0),
    target_rate bigint CHECK (target_rate > 0),
    scale_factor integer CHECK (scale_factor > 1),
    max_segments integer,
    scale_cooldown bigint NOT NULL DEFAULT 600 CHECK (scale_cooldown >= 0),
    scaling_policy text NOT NULL GENERATED ALWAYS AS (
        scaling || ' ' || coalesce(target_rate::text, '-') || ' ' || coalesce(scale_factor::text, '-') || ' '
        || min_segments::text || ' ' || coalesce(max_segments::text, '-') || ' ' || scale_cooldown::text) STORED,
    retention text NOT NULL CHECK (retention IN ('keep', 'age', 'size', 'consumed')),
    retain_min_age bigint CHECK (retain_min_age > 0),
    retain_max_age bigint,
    retain_min_bytes bigint CHECK (retain_min_bytes > 0),
    retain_max_bytes bigint,
    cuts_every bigint CHECK (cuts_every > 0),
    retention_every bigint CHECK (retention_every > 0),
    current_epoch integer NOT NULL DEFAULT 0,
    next_segment_number bigint NOT NULL CHECK (next_segment_number > 0),
    next_transaction_number bigint NOT NULL DEFAULT 1,
    schema_version integer NOT NULL DEFAULT 0,
    last_clock bigint NOT NULL,
    sealed_clock bigint,
    head jsonb NOT NULL,
    retained_at timestamptz,
    event_time_since bigint,
    complete_until bigint,
    newest_event_time bigint,
    late_events bigint NOT NULL DEFAULT 0,
    CONSTRAINT stream_fixed_has_no_target CHECK ((scaling = 'fixed') = (target_rate IS NULL)),
    CONSTRAINT stream_target_has_factor CHECK ((target_rate IS NULL) = (scale_factor IS NULL)),
    CONSTRAINT stream_segments_in_order
        CHECK (max_segments IS NULL OR (scaling <> 'fixed' AND max_segments >= min_segments)),
    CONSTRAINT stream_sealed_has_clock CHECK (state = 'active' OR sealed_clock IS NOT NULL),
    CONSTRAINT stream_retention_has_limits CHECK (CASE retention
        WHEN 'keep' THEN num_nonnulls(retain_min_age, retain_max_age, retain_min_bytes, retain_max_bytes) = 0
        WHEN 'age' THEN retain_max_age IS NOT NULL
        WHEN 'size' THEN retain_max_bytes IS NOT NULL ELSE true END),
    CONSTRAINT stream_ages_in_order CHECK (retain_max_age >= coalesce(retain_min_age, 1)),
    CONSTRAINT stream_sizes_in_order CHECK (retain_max_bytes >= coalesce(retain_min_bytes, 1))
);
CREATE UNIQUE INDEX stream_name_is_unique_among_the_living ON weir_internal.stream (scope, name)
    WHERE state <> 'deleted';
CREATE INDEX stream_by_name ON weir_internal.stream (stream_name) WHERE state <> 'deleted';
CREATE INDEX stream_lives ON weir_internal.stream (scope, name, stream_id);
CREATE INDEX stream_by_tag ON weir_internal.stream USING gin (tags);

CREATE TABLE weir_internal.stream_schema (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    version integer NOT NULL CHECK (version > 0),
    fields jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream_id, version)
);

CREATE TABLE weir_internal.epoch (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    stream_name text NOT NULL,
    epoch integer NOT NULL CHECK (epoch >= 0),
    reference_epoch integer NOT NULL,
    created_at bigint NOT NULL,
    splits bigint NOT NULL DEFAULT 0,
    merges bigint NOT NULL DEFAULT 0,
    sealed_events bigint NOT NULL DEFAULT 0,
    sealed_bytes bigint NOT NULL DEFAULT 0,
    cause text NOT NULL CHECK (cause IN ('create', 'scale', 'policy', 'update', 'roll')),
    request_id text NOT NULL,
    reason text NOT NULL DEFAULT '',
    PRIMARY KEY (stream_id, epoch),
    CONSTRAINT epoch_refers_back CHECK (reference_epoch <= epoch)
);
CREATE UNIQUE INDEX epoch_by_time ON weir_internal.epoch (stream_id, created_at) INCLUDE (epoch);
CREATE UNIQUE INDEX epoch_by_name ON weir_internal.epoch (stream_name, epoch);
CREATE INDEX epoch_by_name_and_time ON weir_internal.epoch
    (stream_name, (('epoch'::timestamp + created_at * interval '1 microsecond') AT TIME ZONE 'UTC'));
CREATE INDEX epoch_by_chunk ON weir_internal.epoch (stream_name, (epoch / 1000));
CREATE INDEX first_epoch_by_chunk ON weir_internal.epoch (stream_name, (epoch / 1000))
    WHERE epoch % 1000 = 0;
CREATE INDEX first_epoch_by_time ON weir_internal.epoch
    (stream_name, (('epoch'::timestamp + created_at * interval '1 microsecond') AT TIME ZONE 'UTC'))
    WHERE epoch % 1000 = 0;

CREATE TABLE weir_internal.segment (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    stream_name text NOT NULL,
    segment_id bigint NOT NULL,
    creation_epoch integer GENERATED ALWAYS AS ((segment_id >> 32)::integer) STORED,
    key_low double precision NOT NULL CHECK (key_low >= 0),
    key_high double precision NOT NULL CHECK (key_high <= 1),
    sealed_epoch integer,
    sealed_clock bigint,
    events bigint,
    bytes bigint,
    PRIMARY KEY (stream_id, segment_id) INCLUDE (key_low, key_high, sealed_epoch),
    CONSTRAINT segment_has_keys CHECK (key_low < key_high),
    CONSTRAINT segment_sealed_after_creation CHECK (sealed_epoch > (segment_id >> 32)),
    CONSTRAINT segment_sealed_has_size
        CHECK ((sealed_epoch IS NULL) = (events IS NULL) AND (events IS NULL) = (bytes IS NULL)),
    CONSTRAINT segment_sealed_has_clock CHECK ((sealed_epoch IS NULL) = (sealed_clock IS NULL))
);
CREATE INDEX segment_tiling ON weir_internal.segment (stream_id, key_low, creation_epoch)
    INCLUDE (segment_id, key_high, sealed_epoch);
CREATE INDEX segment_by_epoch ON weir_internal.segment (stream_name, creation_epoch);
CREATE INDEX segment_by_sealing ON weir_internal.segment (stream_name, sealed_epoch)
    INCLUDE (segment_id);
CREATE INDEX segment_by_time_of_sealing ON weir_internal.segment
    (stream_name, (('epoch'::timestamp + sealed_clock * interval '1 microsecond') AT TIME ZONE 'UTC'))
    WHERE sealed_epoch IS NOT NULL;
CREATE INDEX segment_by_name ON weir_internal.segment
    (((segment_id & 4294967295)::text || '.' || (segment_id >> 32)::text), stream_name)
    INCLUDE (segment_id);
CREATE UNIQUE INDEX segment_by_id ON weir_internal.segment (stream_name, segment_id);
CREATE INDEX segment_by_shard ON weir_internal.segment (stream_name, (creation_epoch / 1000));

CREATE TABLE weir_internal.segment_tail (
    stream_id bigint NOT NULL,
    segment_id bigint NOT NULL,
    tail_offset bigint NOT NULL DEFAULT 0,
    tail_bytes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (stream_id, segment_id),
    FOREIGN KEY (stream_id, segment_id) REFERENCES weir_internal.segment
) WITH (fillfactor = 50);

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
    stated_until bigint,
    complete_until bigint,
    newest_event_time bigint,
    PRIMARY KEY (stream_id, transaction_number),
    UNIQUE (stream_name, writer_id, batch_id),
    CONSTRAINT transaction_ended_or_open CHECK ((state = 'open') = (ended_at IS NULL)),
    CONSTRAINT transaction_committed_has_clock CHECK ((state = 'committed') = (clock IS NOT NULL)),
    CONSTRAINT transaction_staged_is_open CHECK (staged IS NULL OR state = 'open')
);
CREATE INDEX transaction_open ON weir_internal.transaction (stream_id, lease_until) WHERE state = 'open';
CREATE INDEX transaction_committing ON weir_internal.transaction (stream_id, transaction_number)
    WHERE staged IS NOT NULL;
CREATE UNIQUE INDEX transaction_by_name ON weir_internal.transaction (stream_name, transaction_number);
CREATE INDEX transaction_by_name_and_time ON weir_internal.transaction
    (stream_name, (('epoch'::timestamp + clock * interval '1 microsecond') AT TIME ZONE 'UTC'));
CREATE INDEX transaction_by_writer ON weir_internal.transaction (stream_name, writer_id, transaction_number);

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

CREATE TABLE weir_internal.stream_writer (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    writer_id text NOT NULL,
    complete_until bigint NOT NULL,
    stated_at timestamptz NOT NULL,
    PRIMARY KEY (stream_id, writer_id)
);

CREATE TABLE weir_internal.data_file (
    stream_id bigint NOT NULL,
    stream_name text NOT NULL,
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
    FOREIGN KEY (stream_id, segment_id) REFERENCES weir_internal.segment,
    FOREIGN KEY (stream_id, transaction_number) REFERENCES weir_internal.transaction
);
CREATE INDEX data_file_by_name ON weir_internal.data_file (stream_name, transaction_number);
CREATE INDEX data_file_by_segment ON weir_internal.data_file
    (stream_name, (((segment_id & 4294967295)::text || '.' || (segment_id >> 32)::text)), start_offset);

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
    PRIMARY KEY (stream_id, segment_id, start_offset),
    FOREIGN KEY (stream_id, segment_id) REFERENCES weir_internal.segment
);
CREATE INDEX time_index_by_clock ON weir_internal.time_index (stream_id, clock);
CREATE INDEX time_index_by_time ON weir_internal.time_index (stream_id, segment_id, clock);
CREATE INDEX time_index_by_name_and_time ON weir_internal.time_index
    (stream_name, (('epoch'::timestamp + clock * interval '1 microsecond') AT TIME ZONE 'UTC'));
CREATE INDEX time_index_by_segment ON weir_internal.time_index
    (stream_name, (((segment_id & 4294967295)::text || '.' || (segment_id >> 32)::text)), start_offset);

CREATE TABLE weir_internal.stream_cut (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    stream_name text NOT NULL,
    recorded_at timestamptz NOT NULL,
    clock bigint NOT NULL,
    cut jsonb NOT NULL,
    events bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (stream_id, recorded_at)
);
CREATE UNIQUE INDEX stream_cut_by_name ON weir_internal.stream_cut (stream_name, recorded_at);
CREATE INDEX stream_cut_by_size ON weir_internal.stream_cut (stream_id, bytes, recorded_at);

CREATE TABLE weir_internal.retention_decision (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    stream_name text NOT NULL,
    decided_at timestamptz NOT NULL,
    rule text NOT NULL,
    reason text NOT NULL,
    head jsonb NOT NULL,
    bound jsonb,
    cut jsonb,
    held_by text[] NOT NULL,
    truncated_past text[] NOT NULL DEFAULT '{}',
    timed_out text[] NOT NULL DEFAULT '{}',
    lost jsonb NOT NULL DEFAULT '{}',
    events bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (stream_id, decided_at)
);
CREATE UNIQUE INDEX retention_decision_by_name ON weir_internal.retention_decision (stream_name, decided_at);

CREATE TABLE weir_internal.capture_queue (stream_id bigint NOT NULL);

CREATE TABLE weir_internal.retention_queue (
    stream_id bigint NOT NULL,
    due_at timestamptz NOT NULL
);
CREATE INDEX retention_queue_by_time ON weir_internal.retention_queue (due_at);
CREATE INDEX retention_queue_by_stream ON weir_internal.retention_queue (stream_id);

CREATE TABLE weir_internal.reader_group (
    group_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '\A[a-z0-9][a-z0-9_-]{0,62}(/[a-z0-9][a-z0-9_-]{0,62})?\Z'),
    generation bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    subscriber boolean NOT NULL,
    on_gap text NOT NULL CHECK (on_gap IN ('fail', 'skip')),
    max_outstanding integer NOT NULL DEFAULT 3 CHECK (max_outstanding > 0),
    release text NOT NULL DEFAULT 'automatic' CHECK (release IN ('automatic', 'manual')),
    time_out bigint CHECK (time_out > 0),
    aligned boolean NOT NULL DEFAULT false,
    max_ahead bigint CHECK (max_ahead > 0),
    consumer jsonb,
    next_token bigint NOT NULL DEFAULT 1,
    next_batch bigint NOT NULL DEFAULT 1,
    moved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    checkpointed_at timestamptz NOT NULL DEFAULT '-infinity'
);
CREATE INDEX reader_group_moved ON weir_internal.reader_group (group_id) WHERE moved_at > checkpointed_at;

CREATE TABLE weir_internal.reader_group_stream (
    group_id bigint NOT NULL REFERENCES weir_internal.reader_group ON DELETE CASCADE,
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    start_cut jsonb NOT NULL,
    end_cut jsonb,
    released_cut jsonb,
    released_at timestamptz,
    lost_events bigint NOT NULL DEFAULT 0,
    head_seen jsonb,
    newest_read bigint,
    hole bigint,
    passed_clock bigint,
    PRIMARY KEY (group_id, stream_id)
);
CREATE INDEX reader_group_stream_by_stream ON weir_internal.reader_group_stream (stream_id);

CREATE TABLE weir_internal.reader (
    group_id bigint NOT NULL REFERENCES weir_internal.reader_group ON DELETE CASCADE,
    reader_id text NOT NULL,
    label text NOT NULL DEFAULT '',
    token bigint NOT NULL,
    lease_until timestamptz NOT NULL,
    joined_at timestamptz NOT NULL,
    PRIMARY KEY (group_id, reader_id)
) WITH (fillfactor = 70);

CREATE TABLE weir_internal.reader_group_segment (
    group_id bigint NOT NULL,
    stream_id bigint NOT NULL,
    segment_id bigint NOT NULL,
    state text NOT NULL CHECK (state IN ('unassigned', 'assigned', 'future', 'completed')),
    next_offset bigint,
    reader_id text,
    PRIMARY KEY (group_id, stream_id, segment_id),
    FOREIGN KEY (group_id, stream_id) REFERENCES weir_internal.reader_group_stream ON DELETE CASCADE,
    FOREIGN KEY (stream_id, segment_id) REFERENCES weir_internal.segment,
    FOREIGN KEY (group_id, reader_id) REFERENCES weir_internal.reader,
    CONSTRAINT reader_group_segment_future_has_no_offset
        CHECK ((state = 'future') = (next_offset IS NULL)),
    CONSTRAINT reader_group_segment_assigned_has_reader
        CHECK ((state = 'assigned') = (reader_id IS NOT NULL))
) WITH (fillfactor = 70);
CREATE INDEX reader_group_segment_by_stream ON weir_internal.reader_group_segment (stream_id);

CREATE TABLE weir_internal.reader_group_pin (
    group_id bigint NOT NULL,
    stream_id bigint NOT NULL,
    key_low double precision NOT NULL CHECK (key_low >= 0),
    key_high double precision NOT NULL CHECK (key_high <= 1),
    label text NOT NULL CHECK (label <> ''),
    PRIMARY KEY (group_id, stream_id, key_low),
    FOREIGN KEY (group_id, stream_id) REFERENCES weir_internal.reader_group_stream ON DELETE CASCADE,
    CONSTRAINT reader_group_pin_has_keys CHECK (key_low < key_high)
);

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
    bound bigint,
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
CREATE UNIQUE INDEX reader_batch_by_name ON weir_internal.reader_batch (group_name, batch_id);
CREATE INDEX reader_batch_open_by_name ON weir_internal.reader_batch (group_name) WHERE state = 'open';
CREATE INDEX reader_batch_by_commit ON weir_internal.reader_batch (group_name, committed_at);
CREATE INDEX reader_batch_ended ON weir_internal.reader_batch (ended_at) WHERE state <> 'open';
CREATE INDEX reader_batch_by_run ON weir_internal.reader_batch (reader_id) WHERE state = 'committed';
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
CREATE INDEX parquet_output_by_batch ON weir_internal.parquet_output (group_name, batch_id);
CREATE INDEX parquet_output_by_commit ON weir_internal.parquet_output (group_name, committed_at);

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

CREATE TABLE weir_internal.garbage (
    root text NOT NULL,
    path text NOT NULL,
    stream_id bigint,
    reason text NOT NULL,
    bytes bigint NOT NULL DEFAULT 0,
    garbage_since timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (root, path)
);
CREATE INDEX garbage_by_time ON weir_internal.garbage (garbage_since);

CREATE TABLE weir_internal.request (
    request_id text NOT NULL,
    operation text NOT NULL,
    object text NOT NULL,
    arguments text NOT NULL,
    result jsonb NOT NULL,
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (request_id, operation, object)
);
CREATE INDEX request_by_object ON weir_internal.request (object, ended_at);

CREATE TABLE weir_internal.job_run (
    dag_id text NOT NULL,
    run_id text NOT NULL,
    task_id text NOT NULL,
    map_index integer NOT NULL,
    try_number integer NOT NULL,
    job text NOT NULL,
    arguments jsonb NOT NULL,
    state text NOT NULL CHECK (state IN ('submitted', 'running', 'succeeded', 'failed', 'killed')),
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    progress text,
    report jsonb,
    error text,
    retryable boolean,
    PRIMARY KEY (dag_id, run_id, task_id, map_index, try_number)
) WITH (fillfactor = 70);
CREATE INDEX job_run_by_time ON weir_internal.job_run (started_at);

CREATE TABLE weir_internal.scale_decision (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    stream_name text NOT NULL,
    decided_at timestamptz NOT NULL,
    epoch integer NOT NULL,
    action text NOT NULL CHECK (action IN ('split', 'merge', 'none')),
    rule text NOT NULL,
    reason text NOT NULL,
    policy text NOT NULL,
    commit_interval bigint,
    loads jsonb NOT NULL,
    changes jsonb NOT NULL,
    PRIMARY KEY (stream_id, decided_at)
);
CREATE UNIQUE INDEX scale_decision_by_name ON weir_internal.scale_decision (stream_name, decided_at);

CREATE TABLE weir_internal.scale_evaluation (
    stream_id bigint PRIMARY KEY REFERENCES weir_internal.stream,
    clock bigint NOT NULL,
    policy text NOT NULL,
    next_at timestamptz
);

CREATE TABLE weir_internal.scale_measurement (
    stream_id bigint PRIMARY KEY REFERENCES weir_internal.stream,
    silent_attempts integer NOT NULL,
    begun_at timestamptz NOT NULL
);

CREATE TABLE weir_internal.hot_key (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    key_position double precision NOT NULL,
    routing_key text NOT NULL,
    share double precision NOT NULL,
    rate double precision NOT NULL,
    since timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (stream_id, key_position)
);

ALTER TABLE weir_internal.stream_schema ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.epoch ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.epoch ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.segment ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.segment ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.segment_tail ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.transaction ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.transaction ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.transaction_input ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.stream_writer ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.data_file ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.data_file ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.time_index ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.time_index ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.stream_cut ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.stream_cut ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.retention_decision ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.retention_decision ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.scale_decision ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.scale_decision ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.scale_evaluation ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.scale_measurement ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.hot_key ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.capture_queue ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.retention_queue ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.reader_group_stream ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.reader_group_segment ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.reader_group_pin ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.garbage ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.batch_input ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.reader_batch ALTER COLUMN group_name SET STATISTICS 0;
ALTER TABLE weir_internal.parquet_output ALTER COLUMN group_name SET STATISTICS 0;

-- Adjunct stores.
CREATE TABLE weir_internal.adjunct_store (
    store_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '\A[a-z0-9][a-z0-9_-]{0,62}/[a-z0-9][a-z0-9_-]{0,62}\Z'),
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    group_id bigint NOT NULL REFERENCES weir_internal.reader_group,
    generation bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    layout text NOT NULL CHECK (layout IN ('auto', 'broadcast', 'partitioned')),
    bootstrap text NOT NULL,
    missing text NOT NULL CHECK (missing IN ('wait', 'empty', 'fail')),
    patience bigint NOT NULL CHECK (patience > 0),
    null_key text NOT NULL CHECK (null_key IN ('skip', 'fail')),
    on_error text NOT NULL CHECK (on_error IN ('fail', 'skip', 'quarantine')),
    on_gap text NOT NULL CHECK (on_gap IN ('fail', 'rebuild')),
    keep_versions bigint NOT NULL CHECK (keep_versions > 0),
    history bigint CHECK (history > 0),
    definition integer NOT NULL DEFAULT 1 CHECK (definition > 0),
    next_version bigint NOT NULL DEFAULT 1,
    error text,
    failed_at timestamptz
);
CREATE INDEX adjunct_store_by_stream ON weir_internal.adjunct_store (stream_id);
CREATE INDEX adjunct_store_by_group ON weir_internal.adjunct_store (group_id);

CREATE TABLE weir_internal.adjunct_definition (
    store_id bigint NOT NULL REFERENCES weir_internal.adjunct_store ON DELETE CASCADE,
    definition integer NOT NULL CHECK (definition > 0),
    key text NOT NULL,
    key_type text NOT NULL,
    value text NOT NULL,
    value_columns text NOT NULL,
    delete_when text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (store_id, definition)
);

CREATE TABLE weir_internal.adjunct_version (
    store_id bigint NOT NULL REFERENCES weir_internal.adjunct_store ON DELETE CASCADE,
    version bigint NOT NULL CHECK (version > 0),
    definition integer NOT NULL,
    state text NOT NULL CHECK (state IN ('building', 'published', 'expired', 'abandoned')),
    kind text NOT NULL CHECK (kind IN ('rebuilt', 'converted', 'extended')),
    base bigint,
    from_cut jsonb NOT NULL,
    cut jsonb NOT NULL,
    clock bigint NOT NULL,
    complete_since bigint,
    history_from bigint,
    lost_events bigint NOT NULL DEFAULT 0,
    builder text NOT NULL,
    attempt integer NOT NULL DEFAULT 1,
    silent_attempts integer NOT NULL DEFAULT 1,
    lease_until timestamptz,
    started_at timestamptz NOT NULL,
    published_at timestamptz,
    superseded_at timestamptz,
    ended_at timestamptz,
    fields jsonb,
    code text,
    layout text CHECK (layout IN ('broadcast', 'partitioned')),
    row_count bigint,
    bytes bigint,
    events bigint,
    upserts bigint,
    deletes bigint,
    null_keys bigint,
    failed_rows bigint,
    PRIMARY KEY (store_id, version),
    FOREIGN KEY (store_id, definition) REFERENCES weir_internal.adjunct_definition,
    CONSTRAINT adjunct_version_building_has_lease CHECK ((state = 'building') = (lease_until IS NOT NULL)),
    CONSTRAINT adjunct_version_published_is_whole
        CHECK (published_at IS NULL OR (fields IS NOT NULL AND row_count IS NOT NULL))
);
CREATE UNIQUE INDEX adjunct_version_building ON weir_internal.adjunct_version (store_id) WHERE state = 'building';
CREATE INDEX adjunct_version_published ON weir_internal.adjunct_version (store_id, version) WHERE state = 'published';
CREATE INDEX adjunct_version_newest ON weir_internal.adjunct_version (store_id)
    WHERE state = 'published' AND superseded_at IS NULL;
CREATE INDEX adjunct_version_ended ON weir_internal.adjunct_version (ended_at) WHERE state IN ('expired', 'abandoned');
CREATE INDEX adjunct_version_superseded ON weir_internal.adjunct_version (superseded_at)
    WHERE state = 'published' AND superseded_at IS NOT NULL;
CREATE INDEX adjunct_version_with_history ON weir_internal.adjunct_version (store_id) WHERE history_from IS NOT NULL;

CREATE TABLE weir_internal.adjunct_file (
    store_id bigint NOT NULL REFERENCES weir_internal.adjunct_store ON DELETE CASCADE,
    path text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('table', 'history')),
    version bigint NOT NULL,
    low bigint NOT NULL,
    high bigint NOT NULL,
    row_count bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (store_id, path),
    FOREIGN KEY (store_id, version) REFERENCES weir_internal.adjunct_version ON DELETE CASCADE,
    CONSTRAINT adjunct_file_range CHECK (low <= high)
);
CREATE INDEX adjunct_file_history ON weir_internal.adjunct_file (store_id, version) WHERE kind = 'history';

CREATE TABLE weir_internal.adjunct_version_file (
    store_id bigint NOT NULL,
    version bigint NOT NULL,
    path text NOT NULL,
    PRIMARY KEY (store_id, version, path),
    FOREIGN KEY (store_id, version) REFERENCES weir_internal.adjunct_version ON DELETE CASCADE,
    FOREIGN KEY (store_id, path) REFERENCES weir_internal.adjunct_file ON DELETE CASCADE
);
CREATE INDEX adjunct_version_file_by_path ON weir_internal.adjunct_version_file (store_id, path);

CREATE TABLE weir_internal.adjunct_pin (
    group_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    store_id bigint NOT NULL REFERENCES weir_internal.adjunct_store,
    cut jsonb NOT NULL,
    clock bigint NOT NULL,
    version bigint,
    since bigint,
    pinned_at timestamptz,
    PRIMARY KEY (group_id, batch_id, store_id),
    FOREIGN KEY (group_id, batch_id) REFERENCES weir_internal.reader_batch ON DELETE CASCADE,
    FOREIGN KEY (store_id, version) REFERENCES weir_internal.adjunct_version,
    CONSTRAINT adjunct_pin_of_version CHECK (version IS NULL OR pinned_at IS NOT NULL)
);
CREATE INDEX adjunct_pin_by_version ON weir_internal.adjunct_pin (store_id, version);
ALTER TABLE weir_internal.adjunct_store ALTER COLUMN stream_id SET STATISTICS 0;
-- End of adjunct stores.

-- Without a key, a publication FOR ALL TABLES would forbid to delete from them.
ALTER TABLE weir_internal.capture_queue REPLICA IDENTITY FULL;
ALTER TABLE weir_internal.retention_queue REPLICA IDENTITY FULL;
ALTER TABLE weir_internal.batch_input REPLICA IDENTITY FULL;
