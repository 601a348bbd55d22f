-- Clocks are microseconds since 1970 UTC and strictly increase per stream. A stream cut is a jsonb
-- object: {"<number>.<epoch>": <next offset> or "future"}.

CREATE TABLE weir_internal.stream (
    stream_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope text NOT NULL CHECK (scope ~ '\A[a-z0-9][a-z0-9_-]{0,62}\Z'),
    name text NOT NULL CHECK (name ~ '\A[a-z0-9][a-z0-9_-]{0,62}(\.rejected)?\Z'),
    stream_name text NOT NULL GENERATED ALWAYS AS (scope || '/' || name) STORED,
    state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'sealed', 'deleted')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Configuration.
    routing_key text NOT NULL,
    on_missing_key text NOT NULL CHECK (on_missing_key IN ('fail', 'quarantine', 'spread')),
    on_bad_rows text NOT NULL CHECK (on_bad_rows IN ('fail', 'quarantine')),
    on_new_column text NOT NULL DEFAULT 'add' CHECK (on_new_column IN ('refuse', 'add')),
    event_time text,
    event_time_ahead bigint NOT NULL DEFAULT 0 CHECK (event_time_ahead >= 0),
    event_time_back bigint NOT NULL DEFAULT 2678400 CHECK (event_time_back > 0),
    tags text[] NOT NULL DEFAULT '{}',
    owner text CHECK (owner <> ''),
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
    publish text NOT NULL DEFAULT 'none' CHECK (publish IN ('none', 'iceberg')),
    refuse_erased boolean NOT NULL DEFAULT false,
    -- What changes as the stream lives.
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
    ahead_events bigint NOT NULL DEFAULT 0,
    behind_events bigint NOT NULL DEFAULT 0,
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
-- Not part of stream_by_name: two sessions that create a stream at the same time meet in this index.
CREATE UNIQUE INDEX stream_name_is_unique_among_the_living ON weir_internal.stream (scope, name)
    WHERE state <> 'deleted';
CREATE INDEX stream_by_name ON weir_internal.stream (stream_name) WHERE state <> 'deleted';
-- For the newest life of a name: a stream that is created again continues its segment numbers.
CREATE INDEX stream_lives ON weir_internal.stream (scope, name, stream_id);
-- Most streams have no owner, and what is hidden is found by these.
CREATE INDEX stream_owned ON weir_internal.stream (owner, stream_id) WHERE owner IS NOT NULL;
CREATE INDEX stream_published ON weir_internal.stream (stream_id) WHERE publish <> 'none';
CREATE INDEX stream_by_tag ON weir_internal.stream USING gin (tags);
COMMENT ON TABLE weir_internal.stream IS 'A stream. The lock on its row serialises every change of the stream.';
COMMENT ON COLUMN weir_internal.stream.stream_id IS 'One life of the stream: a stream that is created again under its name gets another id.';
COMMENT ON COLUMN weir_internal.stream.scope IS 'The first half of the name.';
COMMENT ON COLUMN weir_internal.stream.name IS 'The second half of the name; ends in .rejected for the reserved stream of rejected rows.';
COMMENT ON COLUMN weir_internal.stream.stream_name IS 'scope/stream.';
COMMENT ON COLUMN weir_internal.stream.state IS 'active, sealed (read only) or deleted.';
COMMENT ON COLUMN weir_internal.stream.created_at IS 'When this life of the stream began.';
COMMENT ON COLUMN weir_internal.stream.routing_key IS 'A column with its transforms, whose text is hashed.';
COMMENT ON COLUMN weir_internal.stream.on_missing_key IS 'What happens to rows whose routing key is null: fail, quarantine, or spread by rank.';
COMMENT ON COLUMN weir_internal.stream.on_bad_rows IS 'What happens to rows that do not fit the schema: fail or quarantine.';
COMMENT ON COLUMN weir_internal.stream.on_new_column IS 'What happens to rows with a column that the stream does not have: refuse the append, or add the column.';
COMMENT ON COLUMN weir_internal.stream.event_time IS 'A column with its transforms: when an event happened. Null: the stream has no event time.';
COMMENT ON COLUMN weir_internal.stream.event_time_ahead IS 'Seconds that a writer may state, and an event may be, later than now.';
COMMENT ON COLUMN weir_internal.stream.event_time_back IS 'Seconds before what it is complete to within which its events, hours and days count as its own.';
COMMENT ON COLUMN weir_internal.stream.tags IS 'Words to find it by.';
COMMENT ON COLUMN weir_internal.stream.owner IS 'The role of the database whose members see and change it; null: everybody.';
COMMENT ON COLUMN weir_internal.stream.scaling IS 'fixed, or by event_rate or byte_rate.';
COMMENT ON COLUMN weir_internal.stream.min_segments IS 'A scale may not leave fewer active segments.';
COMMENT ON COLUMN weir_internal.stream.target_rate IS 'Events or bytes per second and segment; null when fixed.';
COMMENT ON COLUMN weir_internal.stream.scale_factor IS 'Into how many segments one is split at most; null when fixed.';
COMMENT ON COLUMN weir_internal.stream.max_segments IS 'A scale may not leave more active segments. Null: no such limit.';
COMMENT ON COLUMN weir_internal.stream.scale_cooldown IS 'Seconds for which scaling by load leaves a new segment as it is.';
COMMENT ON COLUMN weir_internal.stream.scaling_policy IS 'The scaling policy in one text, to be compared: kind, target rate, scale factor, minimum, maximum (- for none), cool-down.';
COMMENT ON COLUMN weir_internal.stream.retention IS 'What retention truncates: nothing (keep), what exceeds a maximum (age, size), or also what all subscribers have released (consumed).';
COMMENT ON COLUMN weir_internal.stream.retain_min_age IS 'Seconds; retention keeps younger events, even if all subscribers have released them. Null: no such limit.';
COMMENT ON COLUMN weir_internal.stream.retain_max_age IS 'Seconds; retention truncates older events, even if a subscriber has not released them. Null: no such limit.';
COMMENT ON COLUMN weir_internal.stream.retain_min_bytes IS 'Retention keeps so many of the newest bytes, even if all subscribers have released them. Null: no such limit.';
COMMENT ON COLUMN weir_internal.stream.retain_max_bytes IS 'Retention truncates what exceeds so many bytes, even if a subscriber has not released it. Null: no such limit.';
COMMENT ON COLUMN weir_internal.stream.cuts_every IS 'Least seconds between two cuts of the retention set; null: every run records one.';
COMMENT ON COLUMN weir_internal.stream.publish IS 'As what weir_upkeep publishes it: iceberg, a table of that format; or none.';
COMMENT ON COLUMN weir_internal.stream.refuse_erased IS 'Whether an append with a routing key that was erased from it is refused.';
COMMENT ON COLUMN weir_internal.stream.current_epoch IS 'The active epoch; the last one of a sealed stream.';
COMMENT ON COLUMN weir_internal.stream.next_segment_number IS 'The number that the next new segment gets.';
COMMENT ON COLUMN weir_internal.stream.next_transaction_number IS 'The number that the next append transaction gets.';
COMMENT ON COLUMN weir_internal.stream.schema_version IS 'The newest row of stream_schema; 0 before the first append of a stream without a declared schema.';
COMMENT ON COLUMN weir_internal.stream.last_clock IS 'The last clock issued; the next one is greatest(last_clock + 1, now).';
COMMENT ON COLUMN weir_internal.stream.sealed_clock IS 'The clock of its sealing; null while it is active.';
COMMENT ON COLUMN weir_internal.stream.head IS 'The cut where the stream begins now.';
COMMENT ON COLUMN weir_internal.stream.retained_at IS 'When retention last decided about it.';
COMMENT ON COLUMN weir_internal.stream.event_time_since IS 'The clock at which the event time was last set; earlier commits have event times of another meaning, or none.';
COMMENT ON COLUMN weir_internal.stream.complete_until IS 'The event time that it is complete to, as its writers state, in microseconds since 1970 UTC; null if none has. It decreases only when that is taken back.';
COMMENT ON COLUMN weir_internal.stream.newest_event_time IS 'The largest event time since the event time was set.';
COMMENT ON COLUMN weir_internal.stream.late_events IS 'How many events came late since the event time was set: earlier than what the stream was already complete to.';
COMMENT ON COLUMN weir_internal.stream.ahead_events IS 'How many events were later than now, by more than event_time_ahead, since the event time was set.';
COMMENT ON COLUMN weir_internal.stream.behind_events IS 'How many events were earlier than what it was complete to, by more than event_time_back, since the event time was set.';

CREATE TABLE weir_internal.stream_schema (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    version integer NOT NULL CHECK (version > 0),
    fields jsonb NOT NULL,
    dropped text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    number bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY UNIQUE,
    PRIMARY KEY (stream_id, version)
);
CREATE INDEX stream_schema_by_time ON weir_internal.stream_schema (created_at);
COMMENT ON TABLE weir_internal.stream_schema IS 'The user''s columns. A column has the same name in all files, whatever a version calls it.';
COMMENT ON COLUMN weir_internal.stream_schema.version IS '1, 2, 3 ... per stream.';
COMMENT ON COLUMN weir_internal.stream_schema.fields IS 'Spark''s JSON form of the struct type. stored: the name of a column in files, if it is another one; default: what rows have whose append did not have the column.';
COMMENT ON COLUMN weir_internal.stream_schema.dropped IS 'The names in files of columns that were dropped, in this version or before. No column gets one of them again.';
COMMENT ON COLUMN weir_internal.stream_schema.created_at IS 'When the first append with these columns was committed, or the stream was created or updated with them.';
COMMENT ON COLUMN weir_internal.stream_schema.number IS 'In the order of commits, over all streams: DuckLake asks for what came after a number.';
