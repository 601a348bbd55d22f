CREATE TABLE weir_internal.adjunct_store (
    store_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '\A[a-z0-9][a-z0-9_-]{0,62}/[a-z0-9][a-z0-9_-]{0,62}\Z'),
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    group_id bigint NOT NULL REFERENCES weir_internal.reader_group,
    generation bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Configuration.
    layout text NOT NULL CHECK (layout IN ('auto', 'broadcast', 'partitioned')),
    bootstrap text NOT NULL,
    missing text NOT NULL CHECK (missing IN ('wait', 'empty', 'fail')),
    patience bigint NOT NULL CHECK (patience > 0),
    null_key text NOT NULL CHECK (null_key IN ('skip', 'fail')),
    on_error text NOT NULL CHECK (on_error IN ('fail', 'skip', 'quarantine')),
    on_gap text NOT NULL CHECK (on_gap IN ('fail', 'rebuild')),
    keep_versions bigint NOT NULL CHECK (keep_versions > 0),
    history bigint CHECK (history > 0),
    -- What changes as versions are built.
    definition integer NOT NULL DEFAULT 1 CHECK (definition > 0),
    next_version bigint NOT NULL DEFAULT 1,
    error text,
    failed_at timestamptz
);
CREATE INDEX adjunct_store_by_stream ON weir_internal.adjunct_store (stream_id);
CREATE INDEX adjunct_store_by_group ON weir_internal.adjunct_store (group_id);
COMMENT ON TABLE weir_internal.adjunct_store IS 'A keyed table that is kept from a stream. The lock on its row serialises its builds, pins and expiries.';
COMMENT ON COLUMN weir_internal.adjunct_store.store_id IS 'One life of the store: a store that is defined again under its name gets another id.';
COMMENT ON COLUMN weir_internal.adjunct_store.name IS 'scope/name, unique among the stores that exist.';
COMMENT ON COLUMN weir_internal.adjunct_store.stream_id IS 'The stream that it is kept from, which never changes.';
COMMENT ON COLUMN weir_internal.adjunct_store.group_id IS 'The reader group with the name of the store. Its position is the cut of the newest version, and it holds retention back like any subscriber.';
COMMENT ON COLUMN weir_internal.adjunct_store.generation IS 'Grows with each change of its configuration or definition.';
COMMENT ON COLUMN weir_internal.adjunct_store.created_at IS 'When this life of the store began.';
COMMENT ON COLUMN weir_internal.adjunct_store.layout IS 'How consumers join it: broadcast, partitioned, or auto by the size of the version.';
COMMENT ON COLUMN weir_internal.adjunct_store.bootstrap IS 'What a version must be complete to before a batch is read with it: batch (its newest event), tail, a time, a cut; or none (the newest version).';
COMMENT ON COLUMN weir_internal.adjunct_store.missing IS 'What a consumer does as long as there is no such version: wait (build it, or wait for the builder), empty (join an empty table) or fail.';
COMMENT ON COLUMN weir_internal.adjunct_store.patience IS 'Seconds that a consumer waits for another builder.';
COMMENT ON COLUMN weir_internal.adjunct_store.null_key IS 'What happens to events whose key is null: skip (and count) or fail.';
COMMENT ON COLUMN weir_internal.adjunct_store.on_error IS 'What happens to events for which the key, the value or the delete condition can''t be computed: fail, skip (and count), or quarantine.';
COMMENT ON COLUMN weir_internal.adjunct_store.on_gap IS 'What a build does if events were truncated before it read them: fail, or rebuild from the head.';
COMMENT ON COLUMN weir_internal.adjunct_store.keep_versions IS 'Seconds for which a version is kept after a newer one was published.';
COMMENT ON COLUMN weir_internal.adjunct_store.history IS 'Seconds for which changes are kept for as-of joins; null: none are kept.';
COMMENT ON COLUMN weir_internal.adjunct_store.definition IS 'The newest row of adjunct_definition.';
COMMENT ON COLUMN weir_internal.adjunct_store.next_version IS 'The number that the next version gets.';
COMMENT ON COLUMN weir_internal.adjunct_store.error IS 'Why the last build failed; null once one has succeeded.';
COMMENT ON COLUMN weir_internal.adjunct_store.failed_at IS 'When it failed.';

CREATE TABLE weir_internal.adjunct_definition (
    store_id bigint NOT NULL REFERENCES weir_internal.adjunct_store ON DELETE CASCADE,
    definition integer NOT NULL CHECK (definition > 0),
    key text NOT NULL,
    key_type text NOT NULL,
    value text NOT NULL,
    value_columns text NOT NULL,
    delete_when text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    outdated text,
    PRIMARY KEY (store_id, definition)
);
COMMENT ON TABLE weir_internal.adjunct_definition IS 'How a store makes keys and values of events; each change of that is a row. A version keeps the definition with which it was built.';
COMMENT ON COLUMN weir_internal.adjunct_definition.definition IS '1, 2, 3 ... per store.';
COMMENT ON COLUMN weir_internal.adjunct_definition.key IS 'A column, a transform of some, or module:function; empty: the routing key of the stream.';
COMMENT ON COLUMN weir_internal.adjunct_definition.key_type IS 'The type of the key that a function returns, as SQL; else empty.';
COMMENT ON COLUMN weir_internal.adjunct_definition.value IS 'Columns and transforms, with names, or module:function; empty: all columns of the event.';
COMMENT ON COLUMN weir_internal.adjunct_definition.value_columns IS 'The columns that a function returns, as SQL; else empty.';
COMMENT ON COLUMN weir_internal.adjunct_definition.delete_when IS 'A condition; an event for which it is true deletes its key. Empty: none.';
COMMENT ON COLUMN weir_internal.adjunct_definition.created_at IS 'When it was defined.';
COMMENT ON COLUMN weir_internal.adjunct_definition.outdated IS 'Which column that it names was renamed or dropped since; no version is built by it any more. Null: none was.';

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
-- Never two builders of one store at once.
CREATE UNIQUE INDEX adjunct_version_building ON weir_internal.adjunct_version (store_id) WHERE state = 'building';
CREATE INDEX adjunct_version_published ON weir_internal.adjunct_version (store_id, version) WHERE state = 'published';
CREATE INDEX adjunct_version_newest ON weir_internal.adjunct_version (store_id)
    WHERE state = 'published' AND superseded_at IS NULL;
CREATE INDEX adjunct_version_ended ON weir_internal.adjunct_version (ended_at) WHERE state IN ('expired', 'abandoned');
-- For the expiry: what may have to go, found without looking at all versions.
CREATE INDEX adjunct_version_superseded ON weir_internal.adjunct_version (superseded_at)
    WHERE state = 'published' AND superseded_at IS NOT NULL;
CREATE INDEX adjunct_version_with_history ON weir_internal.adjunct_version (store_id) WHERE history_from IS NOT NULL;
COMMENT ON TABLE weir_internal.adjunct_version IS 'The table of a store at a cut of its stream, published in one transaction. Its rows never change; its cut moves forward over epochs without events.';
COMMENT ON COLUMN weir_internal.adjunct_version.version IS '1, 2, 3 ... per store; a later one has a later cut or a later definition.';
COMMENT ON COLUMN weir_internal.adjunct_version.definition IS 'The definition with which it is built.';
COMMENT ON COLUMN weir_internal.adjunct_version.state IS 'building; published; expired: its files are garbage; or abandoned before it was published.';
COMMENT ON COLUMN weir_internal.adjunct_version.kind IS 'rebuilt from the head of the stream; converted: the rows of its base, their values computed again by the new definition, and what is new; extended: its base and what is new.';
COMMENT ON COLUMN weir_internal.adjunct_version.base IS 'The version that it continues; null if it was rebuilt.';
COMMENT ON COLUMN weir_internal.adjunct_version.from_cut IS 'Where the events that it reads begin: the cut of its base, or the head.';
COMMENT ON COLUMN weir_internal.adjunct_version.cut IS 'The cut of the stream that it is complete to.';
COMMENT ON COLUMN weir_internal.adjunct_version.clock IS 'The clock of that cut: all events up to it are included, and none after it.';
COMMENT ON COLUMN weir_internal.adjunct_version.complete_since IS 'The clock of the oldest event that was there when it, or the first of its bases, was rebuilt; null: the whole stream was.';
COMMENT ON COLUMN weir_internal.adjunct_version.history_from IS 'Its history files have all changes after this clock up to its own; null: it has no history (any more).';
COMMENT ON COLUMN weir_internal.adjunct_version.lost_events IS 'Events that were truncated before it was rebuilt because of that.';
COMMENT ON COLUMN weir_internal.adjunct_version.builder IS 'Who builds it, or has built it: a DAG run and task, or the name of a program.';
COMMENT ON COLUMN weir_internal.adjunct_version.attempt IS '1, and one more for each builder that began anew; part of the names of its folders.';
COMMENT ON COLUMN weir_internal.adjunct_version.silent_attempts IS 'How many attempts there were since the last one that said why it failed, with the present one. What has such attempts is built last, and rests in between.';
COMMENT ON COLUMN weir_internal.adjunct_version.lease_until IS 'From then on another builder may build it; null unless it is being built.';
COMMENT ON COLUMN weir_internal.adjunct_version.started_at IS 'When its cut was fixed. While it is built, a sweep keeps the files of its stream that became garbage after that.';
COMMENT ON COLUMN weir_internal.adjunct_version.published_at IS 'When it was published.';
COMMENT ON COLUMN weir_internal.adjunct_version.superseded_at IS 'When the next one was published; null for the newest.';
COMMENT ON COLUMN weir_internal.adjunct_version.ended_at IS 'When it expired or was abandoned.';
COMMENT ON COLUMN weir_internal.adjunct_version.fields IS 'Its columns, in Spark''s JSON form: the key, then those of the value.';
COMMENT ON COLUMN weir_internal.adjunct_version.code IS 'A hash of the files of its functions; null without functions. Other code counts as another definition.';
COMMENT ON COLUMN weir_internal.adjunct_version.layout IS 'How consumers join it.';
COMMENT ON COLUMN weir_internal.adjunct_version.row_count IS 'How many keys it has.';
COMMENT ON COLUMN weir_internal.adjunct_version.bytes IS 'The bytes of its files.';
COMMENT ON COLUMN weir_internal.adjunct_version.events IS 'How many events it added to its base.';
COMMENT ON COLUMN weir_internal.adjunct_version.upserts IS 'How many keys got a value from them.';
COMMENT ON COLUMN weir_internal.adjunct_version.deletes IS 'How many keys were deleted by them, whether the base had them or not.';
COMMENT ON COLUMN weir_internal.adjunct_version.null_keys IS 'How many of them were skipped because their key was null.';
COMMENT ON COLUMN weir_internal.adjunct_version.failed_rows IS 'How many of them were skipped because they failed.';

-- Versions share the files that no change has touched.
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
COMMENT ON TABLE weir_internal.adjunct_file IS 'A Parquet file of a store, sorted by the hash of its keys: a part of the table of one or more versions, or the changes that a version added.';
COMMENT ON COLUMN weir_internal.adjunct_file.path IS 'Its path below the warehouse.';
COMMENT ON COLUMN weir_internal.adjunct_file.kind IS 'table or history.';
COMMENT ON COLUMN weir_internal.adjunct_file.version IS 'The version that wrote it.';
COMMENT ON COLUMN weir_internal.adjunct_file.low IS 'The smallest hash of a key in it: the routing position times 2^53.';
COMMENT ON COLUMN weir_internal.adjunct_file.high IS 'The largest hash of a key in it.';
COMMENT ON COLUMN weir_internal.adjunct_file.row_count IS 'Its rows.';
COMMENT ON COLUMN weir_internal.adjunct_file.bytes IS 'Its size.';

CREATE TABLE weir_internal.adjunct_version_file (
    store_id bigint NOT NULL,
    version bigint NOT NULL,
    path text NOT NULL,
    PRIMARY KEY (store_id, version, path),
    FOREIGN KEY (store_id, version) REFERENCES weir_internal.adjunct_version ON DELETE CASCADE,
    FOREIGN KEY (store_id, path) REFERENCES weir_internal.adjunct_file ON DELETE CASCADE
);
CREATE INDEX adjunct_version_file_by_path ON weir_internal.adjunct_version_file (store_id, path);
COMMENT ON TABLE weir_internal.adjunct_version_file IS 'Which files are the table of a version. Each key is in one of them.';

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
COMMENT ON TABLE weir_internal.adjunct_pin IS 'The version of a store that a batch is read with, by all its tasks, tries and readers. It protects the version while the batch is open.';
COMMENT ON COLUMN weir_internal.adjunct_pin.batch_id IS 'The batch of the group.';
COMMENT ON COLUMN weir_internal.adjunct_pin.cut IS 'The cut that the version must be complete to.';
COMMENT ON COLUMN weir_internal.adjunct_pin.clock IS 'The clock of that cut.';
COMMENT ON COLUMN weir_internal.adjunct_pin.version IS 'The version; null until one is there, or for good if an empty table was pinned.';
COMMENT ON COLUMN weir_internal.adjunct_pin.pinned_at IS 'When it was decided what the batch is read with; null: the batch is being prepared.';
COMMENT ON COLUMN weir_internal.adjunct_pin.since IS 'The oldest clock at which the batch asks for a value; null: it asks only for the newest.';
-- As in 12_planning.sql.
ALTER TABLE weir_internal.adjunct_store ALTER COLUMN stream_id SET STATISTICS 0;
