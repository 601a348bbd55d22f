-- What the controller needs beyond the foundation.

ALTER TABLE weir.stream
    ADD COLUMN scaling text NOT NULL DEFAULT 'fixed'
        CHECK (scaling IN ('fixed', 'event_rate', 'byte_rate')),
    ADD COLUMN min_segments integer NOT NULL DEFAULT 1 CHECK (min_segments > 0),
    ADD COLUMN target_rate bigint CHECK (target_rate > 0),
    ADD COLUMN scale_factor integer CHECK (scale_factor > 1),
    ADD COLUMN tags text[] NOT NULL DEFAULT '{}',
    ADD COLUMN sealed_clock bigint,
    ADD CHECK ((scaling = 'fixed') = (target_rate IS NULL)),
    ADD CHECK ((target_rate IS NULL) = (scale_factor IS NULL)),
    ADD CHECK (state = 'active' OR sealed_clock IS NOT NULL);
COMMENT ON COLUMN weir.stream.scaling IS 'fixed, or by event_rate or byte_rate.';
COMMENT ON COLUMN weir.stream.min_segments IS 'A scale may not leave fewer active segments.';
COMMENT ON COLUMN weir.stream.target_rate IS 'Events or bytes per second and segment; null when fixed.';
COMMENT ON COLUMN weir.stream.scale_factor IS 'Into how many segments one is split at most; null when fixed.';
COMMENT ON COLUMN weir.stream.tags IS 'Words to find it by.';
COMMENT ON COLUMN weir.stream.sealed_clock IS 'When it was sealed; null while it is active.';
-- Of the lives of a name the newest: a re-created stream goes on with its segment numbers.
CREATE INDEX stream_lives ON weir.stream (scope, name, stream_id);
CREATE INDEX stream_by_tag ON weir.stream USING gin (tags);

ALTER TABLE weir.epoch
    DROP CONSTRAINT epoch_cause_check,
    ADD CONSTRAINT epoch_cause_check CHECK (cause IN ('create', 'scale', 'update', 'roll')),
    ADD COLUMN reason text NOT NULL DEFAULT '';
COMMENT ON COLUMN weir.epoch.cause IS 'What made it: create, scale, update (of the configuration) or roll.';
COMMENT ON COLUMN weir.epoch.reason IS 'Why, in words.';

ALTER TABLE weir.transaction
    ADD COLUMN staged jsonb,
    ADD CHECK (staged IS NULL OR state = 'open');
CREATE INDEX transaction_committing ON weir.transaction (stream_id, transaction_number)
    WHERE staged IS NOT NULL;
COMMENT ON COLUMN weir.transaction.staged IS 'The files of a commit that waits for a roll; null otherwise.';

CREATE INDEX time_index_by_time ON weir.time_index (stream_id, segment_id, clock);
