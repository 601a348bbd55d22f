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
-- For questions by name and time, as the views ask them. The last ten rows of a stream are the last ten
-- entries of an index only if the index begins with the name: Postgres does not know that a name has
-- one id. The expressions are the bodies of clock_time, which Postgres puts in place of its calls.
CREATE UNIQUE INDEX epoch_by_name ON weir_internal.epoch (stream_name, epoch);
CREATE INDEX epoch_by_name_and_time ON weir_internal.epoch
    (stream_name, (('epoch'::timestamp + created_at * interval '1 microsecond') AT TIME ZONE 'UTC'));
CREATE INDEX epoch_by_chunk ON weir_internal.epoch (stream_name, (epoch / 1000));
CREATE INDEX first_epoch_by_chunk ON weir_internal.epoch (stream_name, (epoch / 1000))
    WHERE epoch % 1000 = 0;
CREATE INDEX first_epoch_by_time ON weir_internal.epoch
    (stream_name, (('epoch'::timestamp + created_at * interval '1 microsecond') AT TIME ZONE 'UTC'))
    WHERE epoch % 1000 = 0;
COMMENT ON TABLE weir_internal.epoch IS 'One generation of active segments, which tile [0, 1). Written once.';
COMMENT ON COLUMN weir_internal.epoch.stream_name IS 'scope/stream, which never changes.';
COMMENT ON COLUMN weir_internal.epoch.epoch IS '0, 1, 2 ... per stream.';
COMMENT ON COLUMN weir_internal.epoch.reference_epoch IS 'The epoch itself; of a duplicate that a roll made, the epoch it repeats.';
COMMENT ON COLUMN weir_internal.epoch.created_at IS 'A clock of the stream.';
COMMENT ON COLUMN weir_internal.epoch.splits IS 'Splits from epoch 0 up to this one, counted as in PDP-32.';
COMMENT ON COLUMN weir_internal.epoch.merges IS 'Merges from epoch 0 up to this one, counted as in PDP-32.';
COMMENT ON COLUMN weir_internal.epoch.sealed_events IS 'Events of all segments that were sealed in this epoch or before: a prefix sum.';
COMMENT ON COLUMN weir_internal.epoch.sealed_bytes IS 'Bytes of all segments that were sealed in this epoch or before: a prefix sum.';
COMMENT ON COLUMN weir_internal.epoch.cause IS 'The operation that created it: create, scale (by hand), policy (scale by load), update (of the configuration) or roll.';
COMMENT ON COLUMN weir_internal.epoch.request_id IS 'The request that asked for it; empty for a roll.';
COMMENT ON COLUMN weir_internal.epoch.reason IS 'Why it was created, in words.';

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
    -- With all that walks from segment to segment need of one, or Postgres would look for it in segment_tiling.
    PRIMARY KEY (stream_id, segment_id) INCLUDE (key_low, key_high, sealed_epoch),
    CONSTRAINT segment_has_keys CHECK (key_low < key_high),
    CONSTRAINT segment_sealed_after_creation CHECK (sealed_epoch > (segment_id >> 32)),
    CONSTRAINT segment_sealed_has_size
        CHECK ((sealed_epoch IS NULL) = (events IS NULL) AND (events IS NULL) = (bytes IS NULL)),
    CONSTRAINT segment_sealed_has_clock CHECK ((sealed_epoch IS NULL) = (sealed_clock IS NULL))
);
-- Walking the tiling of an epoch: the newest segment that begins at a key, then on at its end.
CREATE INDEX segment_tiling ON weir_internal.segment (stream_id, key_low, creation_epoch)
    INCLUDE (segment_id, key_high, sealed_epoch);
-- For questions by the stream's name, as the views ask them: see epoch_by_name.
CREATE INDEX segment_by_epoch ON weir_internal.segment (stream_name, creation_epoch);
CREATE INDEX segment_by_sealing ON weir_internal.segment (stream_name, sealed_epoch)
    INCLUDE (segment_id);
CREATE INDEX segment_by_time_of_sealing ON weir_internal.segment
    (stream_name, (('epoch'::timestamp + sealed_clock * interval '1 microsecond') AT TIME ZONE 'UTC'))
    WHERE sealed_epoch IS NOT NULL;
-- The expression is the body of segment_name, which Postgres puts in place of its calls.
CREATE INDEX segment_by_name ON weir_internal.segment
    (((segment_id & 4294967295)::text || '.' || (segment_id >> 32)::text), stream_name)
    INCLUDE (segment_id);
CREATE UNIQUE INDEX segment_by_id ON weir_internal.segment (stream_name, segment_id);
CREATE INDEX segment_by_shard ON weir_internal.segment (stream_name, (creation_epoch / 1000));
COMMENT ON TABLE weir_internal.segment IS 'A shard of the key space [key_low, key_high); written at its creation and its sealing only.';
COMMENT ON COLUMN weir_internal.segment.stream_name IS 'scope/stream, which never changes.';
COMMENT ON COLUMN weir_internal.segment.segment_id IS 'creation epoch << 32 | number; written number.epoch.';
COMMENT ON COLUMN weir_internal.segment.creation_epoch IS 'The high half of the id.';
COMMENT ON COLUMN weir_internal.segment.key_low IS 'Where its key range begins (inclusive).';
COMMENT ON COLUMN weir_internal.segment.key_high IS 'Where its key range ends (exclusive).';
COMMENT ON COLUMN weir_internal.segment.sealed_epoch IS 'The first epoch without it; null as long as there is none.';
COMMENT ON COLUMN weir_internal.segment.sealed_clock IS 'When that epoch was created; null while it is active.';
COMMENT ON COLUMN weir_internal.segment.events IS 'Its final number of events; null while it is active.';
COMMENT ON COLUMN weir_internal.segment.bytes IS 'Its final bytes; null while it is active.';

CREATE TABLE weir_internal.segment_tail (
    stream_id bigint NOT NULL,
    segment_id bigint NOT NULL,
    tail_offset bigint NOT NULL DEFAULT 0,
    tail_bytes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (stream_id, segment_id),
    FOREIGN KEY (stream_id, segment_id) REFERENCES weir_internal.segment
) WITH (fillfactor = 50);
COMMENT ON TABLE weir_internal.segment_tail IS 'The tails of the active segments: the only rows per segment that a commit updates.';
COMMENT ON COLUMN weir_internal.segment_tail.tail_offset IS 'The offset of the next event.';
COMMENT ON COLUMN weir_internal.segment_tail.tail_bytes IS 'The bytes before it, as first committed.';
