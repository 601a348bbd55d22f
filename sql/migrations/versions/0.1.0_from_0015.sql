-- The last layout before version 0.1.0 had everything in the schema weir. Tables and internal functions
-- move to weir_internal, where the functions are replaced afterwards. Views and the functions that people
-- call stay where they are, with what others made of them, and so does what others have put there.
DO $$
DECLARE
    moved text;
    public_functions CONSTANT text[] := ARRAY[
        'active_segments(text,timestamp with time zone)', 'epoch_at(text,timestamp with time zone)',
        'next_cut(text,jsonb,bigint)', 'predecessors(text,text)',
        'recorded_cut(text,timestamp with time zone)', 'retention_dry_run(text)',
        'scale_metadata(text,timestamp with time zone,timestamp with time zone)',
        'segments_between(text,jsonb,jsonb)', 'size_between(text,jsonb,jsonb)', 'size_till(text,jsonb)',
        'span(text,jsonb)', 'stream_cut_at(text,timestamp with time zone)', 'successors(text,text)',
        'why_kept(text,text)'];
    tables CONSTANT text[] := ARRAY[
        'checkpoint', 'data_file', 'epoch', 'garbage', 'installation', 'job_run', 'moved_stream',
        'parquet_output', 'reader', 'reader_batch', 'reader_group', 'reader_group_pin',
        'reader_group_segment', 'reader_group_stream', 'request', 'retention_decision',
        'retention_due', 'segment', 'segment_tail', 'stream', 'stream_cut', 'stream_schema',
        'time_index', 'transaction', 'transaction_input'];
    functions CONSTANT text[] := ARRAY[
        'active_segments', 'active_segments_at', 'active_tails', 'alerts_of', 'at_or_before',
        'begin_append', 'beyond_limit', 'bytes_till', 'clock_after', 'clock_time',
        'commit_append', 'cut_entries', 'cut_segments', 'dead_staging', 'drop_staging',
        'epoch_at', 'first_behind', 'front', 'group_cut', 'has_passed', 'held_input',
        'held_segments', 'holders', 'holding', 'incarnation', 'join_cuts', 'last_checkpoint',
        'last_record', 'lock_groups', 'lock_streams', 'lock_streams_and_groups', 'lost_to',
        'make_staging', 'meet_cuts', 'needing_batches', 'next_cut', 'oldest_unread', 'owner_path',
        'passed_till', 'place_append', 'predecessors', 'prune_below', 'readable_cut',
        'recorded_cut', 'retention_dry_run', 'retention_inputs', 'retention_limits',
        'scale_metadata', 'segment_id', 'segment_name', 'segment_of', 'segments_between',
        'size_between', 'size_till', 'span', 'stale_after', 'stream_cut_at', 'stream_id',
        'successors', 'tail_cut', 'time_clock', 'times_out_at', 'unread_from', 'valid_cut',
        'warning_time', 'why_kept'];
BEGIN
    FOR moved IN
        SELECT format('ALTER TABLE weir.%I SET SCHEMA weir_internal', tablename) FROM pg_tables
        WHERE schemaname = 'weir' AND tablename = ANY (tables)
        UNION ALL
        SELECT format('ALTER FUNCTION %s SET SCHEMA weir_internal', f.oid::regprocedure) FROM pg_proc f
        WHERE f.pronamespace = 'weir'::regnamespace AND f.proname = ANY (functions)
          AND f.oid <> ALL (SELECT ('weir.' || name)::regprocedure FROM unnest(public_functions) name)
    LOOP
        EXECUTE moved;
    END LOOP;
END $$;
-- Not ours to move, but ours to drop, as we own the schema.
DROP FUNCTION weir.publish_staging, weir.settle_constraints;
DROP TABLE weir.alembic_version;
ALTER TABLE weir_internal.job_run DROP CONSTRAINT job_run_state_check,
    ADD CONSTRAINT job_run_state_check CHECK (state IN ('submitted', 'running', 'succeeded', 'failed', 'killed'));

ALTER TABLE weir_internal.stream ADD COLUMN stream_name text NOT NULL
    GENERATED ALWAYS AS (scope || '/' || name) STORED;
DROP INDEX weir_internal.stream_by_name;
CREATE INDEX stream_by_name ON weir_internal.stream (stream_name) WHERE state <> 'deleted';
ALTER TABLE weir_internal.segment ADD COLUMN stream_name text;
UPDATE weir_internal.segment g SET stream_name = s.stream_name
FROM weir_internal.stream s WHERE s.stream_id = g.stream_id;
ALTER TABLE weir_internal.segment ALTER COLUMN stream_name SET NOT NULL,
    ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.segment DROP CONSTRAINT segment_pkey CASCADE,
    ADD PRIMARY KEY (stream_id, segment_id) INCLUDE (key_low, key_high, sealed_epoch);
ALTER TABLE weir_internal.segment_tail
    ADD FOREIGN KEY (stream_id, segment_id) REFERENCES weir_internal.segment;
ALTER TABLE weir_internal.data_file
    ADD FOREIGN KEY (stream_id, segment_id) REFERENCES weir_internal.segment;
ALTER TABLE weir_internal.time_index
    ADD FOREIGN KEY (stream_id, segment_id) REFERENCES weir_internal.segment;
ALTER TABLE weir_internal.reader_group_segment
    ADD FOREIGN KEY (stream_id, segment_id) REFERENCES weir_internal.segment;
CREATE INDEX segment_by_epoch ON weir_internal.segment (stream_name, creation_epoch);
DROP INDEX weir_internal.segment_by_sealing;
CREATE INDEX segment_by_sealing ON weir_internal.segment (stream_name, sealed_epoch)
    INCLUDE (segment_id);
DROP INDEX weir_internal.segment_by_name;
CREATE INDEX segment_by_name ON weir_internal.segment
    (((segment_id & 4294967295)::text || '.' || (segment_id >> 32)::text), stream_name)
    INCLUDE (segment_id);
-- The epoch that sealed a segment may be pruned: then the first one that is left.
ALTER TABLE weir_internal.segment ADD COLUMN sealed_clock bigint;
UPDATE weir_internal.segment g SET sealed_clock = (
    SELECT e.created_at FROM weir_internal.epoch e
    WHERE e.stream_id = g.stream_id AND e.epoch >= g.sealed_epoch ORDER BY e.epoch LIMIT 1)
WHERE g.sealed_epoch IS NOT NULL;
ALTER TABLE weir_internal.segment
    ADD CONSTRAINT segment_sealed_has_clock CHECK ((sealed_epoch IS NULL) = (sealed_clock IS NULL));
CREATE INDEX segment_by_time_of_sealing ON weir_internal.segment
    (stream_name, (('epoch'::timestamp + sealed_clock * interval '1 microsecond') AT TIME ZONE 'UTC'))
    WHERE sealed_epoch IS NOT NULL;
CREATE UNIQUE INDEX segment_by_id ON weir_internal.segment (stream_name, segment_id);
DROP INDEX weir_internal.segment_by_shard;
CREATE INDEX segment_by_shard ON weir_internal.segment (stream_name, (creation_epoch / 1000));

-- The last layout did not record when a batch ended that was not committed.
ALTER TABLE weir_internal.reader_group ADD COLUMN consumer jsonb;
ALTER TABLE weir_internal.reader_batch ADD COLUMN ended_at timestamptz;
UPDATE weir_internal.reader_batch SET ended_at = coalesce(committed_at, opened_at)
WHERE state <> 'open';
ALTER TABLE weir_internal.reader_batch
    ADD CONSTRAINT reader_batch_ended_or_open CHECK ((state = 'open') = (ended_at IS NULL));
DROP INDEX weir_internal.reader_batch_ended;
CREATE INDEX reader_batch_ended ON weir_internal.reader_batch (ended_at) WHERE state <> 'open';

ALTER TABLE weir_internal.installation RENAME tide TO sweep_count;
ALTER TABLE weir_internal.moved_stream RENAME TO capture_queue;
ALTER TABLE weir_internal.retention_due RENAME TO retention_queue;
ALTER INDEX weir_internal.retention_due_by_time RENAME TO retention_queue_by_time;
ALTER INDEX weir_internal.retention_due_by_stream RENAME TO retention_queue_by_stream;
ALTER TABLE weir_internal.retention_decision RENAME overtaken TO truncated_past;
ALTER TABLE weir_internal.retention_decision RENAME left_out TO timed_out;
ALTER VIEW weir.retention_decisions RENAME overtaken TO truncated_past;
ALTER VIEW weir.retention_decisions RENAME left_out TO timed_out;
ALTER VIEW weir.retention_status RENAME left_out TO timed_out;
ALTER VIEW weir.retention_status RENAME looked_at TO checked_at;
ALTER TABLE weir_internal.reader_group_stream RENAME published_cut TO released_cut;
ALTER TABLE weir_internal.reader_group_stream RENAME published_at TO released_at;
ALTER TABLE weir_internal.checkpoint RENAME published TO released;
ALTER VIEW weir.checkpoints RENAME published TO released;
ALTER VIEW weir.stream_subscriber RENAME published_at TO released_at;
ALTER TABLE weir_internal.request RENAME finished_at TO ended_at;
ALTER TABLE weir_internal.garbage RENAME dead_at TO garbage_since;
ALTER INDEX weir_internal.garbage_by_death RENAME TO garbage_by_time;
ALTER VIEW weir.garbage_files RENAME dead_at TO garbage_since;
ALTER VIEW weir.readers RENAME lapsed TO lease_expired;
ALTER VIEW weir.open_batches RENAME lapsed TO lease_expired;
ALTER VIEW weir.checkpoint_blockers RENAME lapsed TO lease_expired;
ALTER VIEW weir.subscribers RENAME stale_after TO loses_after;

ALTER TABLE weir_internal.stream RENAME CONSTRAINT stream_check TO stream_fixed_has_no_target;
ALTER TABLE weir_internal.stream RENAME CONSTRAINT stream_check1 TO stream_target_has_factor;
ALTER TABLE weir_internal.stream RENAME CONSTRAINT stream_check2 TO stream_sealed_has_clock;
ALTER TABLE weir_internal.stream RENAME CONSTRAINT stream_check3 TO stream_ages_in_order;
ALTER TABLE weir_internal.stream RENAME CONSTRAINT stream_check4 TO stream_sizes_in_order;
-- Retention by consumption was a switch. Without it a minimum alone was what retention left, so it becomes the maximum
-- too. The views of the switch say what it would be until they are replaced, so that those of others stay.
ALTER TABLE weir_internal.stream ADD COLUMN retention text
    CHECK (retention IN ('keep', 'age', 'size', 'consumed'));
UPDATE weir_internal.stream SET
    retention = CASE WHEN retain_by_consumption THEN 'consumed'
                     WHEN retain_min_age IS NOT NULL THEN 'age' WHEN retain_min_bytes IS NOT NULL THEN 'size'
                     WHEN retain_max_age IS NOT NULL THEN 'age' WHEN retain_max_bytes IS NOT NULL THEN 'size'
                     ELSE 'keep' END,
    retain_max_age = CASE WHEN NOT retain_by_consumption AND num_nonnulls(retain_min_age, retain_min_bytes) > 0
                          THEN retain_min_age ELSE retain_max_age END,
    retain_max_bytes = CASE WHEN NOT retain_by_consumption AND num_nonnulls(retain_min_age, retain_min_bytes) > 0
                            THEN retain_min_bytes ELSE retain_max_bytes END;
DO $$
DECLARE
    replaced text;
BEGIN
    FOREACH replaced IN ARRAY ARRAY['weir.streams', 'weir.stream_configuration'] LOOP
        EXECUTE 'CREATE OR REPLACE VIEW ' || replaced || ' AS ' || replace(pg_get_viewdef(replaced::regclass),
            's.retain_by_consumption', $view$s.retention = 'consumed' AS retain_by_consumption$view$);
    END LOOP;
END $$;
ALTER TABLE weir_internal.stream ADD COLUMN on_new_column text NOT NULL DEFAULT 'add'  -- as before
    CHECK (on_new_column IN ('refuse', 'add'));
ALTER TABLE weir_internal.stream ALTER COLUMN retention SET NOT NULL, DROP COLUMN retain_by_consumption,
    ADD CONSTRAINT stream_retention_has_limits CHECK (CASE retention
        WHEN 'keep' THEN num_nonnulls(retain_min_age, retain_max_age, retain_min_bytes, retain_max_bytes) = 0
        WHEN 'age' THEN retain_max_age IS NOT NULL
        WHEN 'size' THEN retain_max_bytes IS NOT NULL ELSE true END);
ALTER TABLE weir_internal.epoch RENAME CONSTRAINT epoch_check TO epoch_refers_back;
ALTER TABLE weir_internal.segment RENAME CONSTRAINT segment_check TO segment_has_keys;
ALTER TABLE weir_internal.segment RENAME CONSTRAINT segment_check1 TO segment_sealed_after_creation;
ALTER TABLE weir_internal.segment RENAME CONSTRAINT segment_check2 TO segment_sealed_has_size;
ALTER TABLE weir_internal.transaction RENAME COLUMN append_again TO allow_repeated_files;
ALTER TABLE weir_internal.transaction RENAME CONSTRAINT transaction_check TO transaction_ended_or_open;
ALTER TABLE weir_internal.transaction
    RENAME CONSTRAINT transaction_check1 TO transaction_committed_has_clock;
ALTER TABLE weir_internal.transaction RENAME CONSTRAINT transaction_check2 TO transaction_staged_is_open;
ALTER TABLE weir_internal.reader_group_segment
    RENAME CONSTRAINT reader_group_segment_check TO reader_group_segment_future_has_no_offset;
ALTER TABLE weir_internal.reader_group_segment
    RENAME CONSTRAINT reader_group_segment_check1 TO reader_group_segment_assigned_has_reader;
ALTER TABLE weir_internal.reader_group_pin
    RENAME CONSTRAINT reader_group_pin_check TO reader_group_pin_has_keys;
ALTER TABLE weir_internal.checkpoint RENAME CONSTRAINT checkpoint_check TO checkpoint_waiting_expires;

-- For questions by name and time: the name of its stream in every row.
ALTER TABLE weir_internal.stream_cut ADD COLUMN stream_name text;
UPDATE weir_internal.stream_cut c SET stream_name = s.stream_name
FROM weir_internal.stream s WHERE s.stream_id = c.stream_id;
ALTER TABLE weir_internal.stream_cut ALTER COLUMN stream_name SET NOT NULL,
    ALTER COLUMN stream_name SET STATISTICS 0;
CREATE UNIQUE INDEX stream_cut_by_name ON weir_internal.stream_cut (stream_name, recorded_at);
ALTER TABLE weir_internal.retention_decision ADD COLUMN stream_name text;
UPDATE weir_internal.retention_decision d SET stream_name = s.stream_name
FROM weir_internal.stream s WHERE s.stream_id = d.stream_id;
ALTER TABLE weir_internal.retention_decision ALTER COLUMN stream_name SET NOT NULL,
    ALTER COLUMN stream_name SET STATISTICS 0;
CREATE UNIQUE INDEX retention_decision_by_name ON weir_internal.retention_decision
    (stream_name, decided_at);
ALTER TABLE weir_internal.data_file ADD COLUMN stream_name text;
UPDATE weir_internal.data_file t SET stream_name = s.stream_name
FROM weir_internal.stream s WHERE s.stream_id = t.stream_id;
ALTER TABLE weir_internal.data_file ALTER COLUMN stream_name SET NOT NULL,
    ALTER COLUMN stream_name SET STATISTICS 0;
CREATE INDEX data_file_by_name ON weir_internal.data_file (stream_name, transaction_number);
CREATE INDEX data_file_by_segment ON weir_internal.data_file
    (stream_name, (((segment_id & 4294967295)::text || '.' || (segment_id >> 32)::text)), start_offset);
ALTER TABLE weir_internal.time_index ADD COLUMN stream_name text;
UPDATE weir_internal.time_index t SET stream_name = s.stream_name
FROM weir_internal.stream s WHERE s.stream_id = t.stream_id;
ALTER TABLE weir_internal.time_index ALTER COLUMN stream_name SET NOT NULL,
    ALTER COLUMN stream_name SET STATISTICS 0;
CREATE INDEX time_index_by_name_and_time ON weir_internal.time_index
    (stream_name, (('epoch'::timestamp + clock * interval '1 microsecond') AT TIME ZONE 'UTC'));
CREATE INDEX time_index_by_segment ON weir_internal.time_index
    (stream_name, (((segment_id & 4294967295)::text || '.' || (segment_id >> 32)::text)), start_offset);
ALTER TABLE weir_internal.transaction
    DROP CONSTRAINT transaction_stream_id_writer_id_batch_id_key,
    ADD UNIQUE (stream_name, writer_id, batch_id);
CREATE INDEX transaction_by_writer ON weir_internal.transaction (stream_name, writer_id, transaction_number);

-- For questions by name and time: the name of its group in every row.
ALTER TABLE weir_internal.reader_batch ADD COLUMN group_name text;
UPDATE weir_internal.reader_batch b SET group_name = g.name
FROM weir_internal.reader_group g WHERE g.group_id = b.group_id;
ALTER TABLE weir_internal.reader_batch ALTER COLUMN group_name SET NOT NULL,
    ALTER COLUMN group_name SET STATISTICS 0;
CREATE UNIQUE INDEX reader_batch_by_name ON weir_internal.reader_batch (group_name, batch_id);
CREATE INDEX reader_batch_open_by_name ON weir_internal.reader_batch (group_name) WHERE state = 'open';
DROP INDEX weir_internal.reader_batch_by_commit;
CREATE INDEX reader_batch_by_commit ON weir_internal.reader_batch (group_name, committed_at);
ALTER TABLE weir_internal.parquet_output ADD COLUMN partitions text NOT NULL DEFAULT '';
ALTER TABLE weir_internal.parquet_output ADD COLUMN group_name text;
UPDATE weir_internal.parquet_output o SET group_name = g.name
FROM weir_internal.reader_group g WHERE g.group_id = o.group_id;
ALTER TABLE weir_internal.parquet_output ALTER COLUMN group_name SET NOT NULL,
    ALTER COLUMN group_name SET STATISTICS 0;
CREATE INDEX parquet_output_by_batch ON weir_internal.parquet_output (group_name, batch_id);
CREATE INDEX parquet_output_by_commit ON weir_internal.parquet_output (group_name, committed_at);

-- Scaling by load.
ALTER TABLE weir_internal.stream ADD COLUMN max_segments integer,
    ADD COLUMN scale_cooldown bigint NOT NULL DEFAULT 600 CHECK (scale_cooldown >= 0),
    ADD CONSTRAINT stream_segments_in_order
        CHECK (max_segments IS NULL OR (scaling <> 'fixed' AND max_segments >= min_segments));
ALTER TABLE weir_internal.stream ADD COLUMN scaling_policy text NOT NULL GENERATED ALWAYS AS (
        scaling || ' ' || coalesce(target_rate::text, '-') || ' ' || coalesce(scale_factor::text, '-') || ' '
        || min_segments::text || ' ' || coalesce(max_segments::text, '-') || ' ' || scale_cooldown::text) STORED;
ALTER TABLE weir_internal.epoch DROP CONSTRAINT epoch_cause_check,
    ADD CHECK (cause IN ('create', 'scale', 'policy', 'update', 'roll'));
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
-- Order across routing keys.
ALTER TABLE weir_internal.reader_group ADD COLUMN aligned boolean NOT NULL DEFAULT false,
    ADD COLUMN max_ahead bigint CHECK (max_ahead > 0);
ALTER TABLE weir_internal.reader_group_stream ADD COLUMN newest_read bigint, ADD COLUMN hole bigint,
    ADD COLUMN passed_clock bigint;
ALTER TABLE weir_internal.reader_batch ADD COLUMN read_order text NOT NULL DEFAULT 'segment',
    ADD COLUMN readers integer NOT NULL DEFAULT 1, ADD COLUMN bound bigint,
    ADD COLUMN max_lateness bigint, ADD COLUMN p99_lateness bigint, ADD COLUMN hole bigint;
ALTER TABLE weir_internal.scale_decision ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.scale_decision ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.scale_evaluation ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.scale_measurement ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.hot_key ALTER COLUMN stream_id SET STATISTICS 0;

-- Adjunct stores.
ALTER TABLE weir_internal.reader_group DROP CONSTRAINT reader_group_name_check,
    ADD CHECK (name ~ '\A[a-z0-9][a-z0-9_-]{0,62}(/[a-z0-9][a-z0-9_-]{0,62})?\Z');
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

-- Event time.
ALTER TABLE weir_internal.stream ADD COLUMN event_time text, ADD COLUMN event_time_since bigint,
    ADD COLUMN complete_until bigint, ADD COLUMN newest_event_time bigint,
    ADD COLUMN late_events bigint NOT NULL DEFAULT 0;
ALTER TABLE weir_internal.transaction ADD COLUMN min_event_time bigint, ADD COLUMN max_event_time bigint,
    ADD COLUMN untimed bigint, ADD COLUMN late bigint, ADD COLUMN stated_until bigint,
    ADD COLUMN complete_until bigint, ADD COLUMN newest_event_time bigint;
-- What an append that waits for a roll has written: without event times.
UPDATE weir_internal.transaction SET staged = staged || '{"times": null, "stated": null}' WHERE staged IS NOT NULL;
ALTER TABLE weir_internal.time_index ADD COLUMN min_event_time bigint, ADD COLUMN max_event_time bigint;
ALTER TABLE weir_internal.reader_batch ADD COLUMN complete_until bigint;
CREATE TABLE weir_internal.stream_writer (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    writer_id text NOT NULL,
    complete_until bigint NOT NULL,
    stated_at timestamptz NOT NULL,
    PRIMARY KEY (stream_id, writer_id)
);
ALTER TABLE weir_internal.stream_writer ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.reader_batch ADD COLUMN function text, ADD COLUMN function_version text;
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
ALTER TABLE weir_internal.batch_input ALTER COLUMN stream_id SET STATISTICS 0;
INSERT INTO weir_internal.batch_input
    (stream_id, segment_id, from_offset, to_offset, size_class, group_id, batch_id)
SELECT i.stream, i.segment, i."from", i."to", ceil(ln(i."to" - i."from") / ln(2::double precision)),
       b.group_id, b.batch_id
FROM weir_internal.reader_batch b
CROSS JOIN LATERAL jsonb_to_recordset(b.bounds) AS i (stream bigint, segment bigint, "from" bigint, "to" bigint)
WHERE b.state = 'committed' AND i."to" > i."from";

-- Without a key, a publication FOR ALL TABLES would forbid to delete from them.
ALTER TABLE weir_internal.capture_queue REPLICA IDENTITY FULL;
ALTER TABLE weir_internal.retention_queue REPLICA IDENTITY FULL;
ALTER TABLE weir_internal.batch_input REPLICA IDENTITY FULL;
