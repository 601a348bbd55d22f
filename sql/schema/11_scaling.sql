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
-- For questions by name and time, as the views ask them: see epoch_by_name.
CREATE UNIQUE INDEX scale_decision_by_name ON weir_internal.scale_decision (stream_name, decided_at);
COMMENT ON TABLE weir_internal.scale_decision IS 'What scaling by load decided and why. A decision to do nothing that repeats the one before is not recorded.';
COMMENT ON COLUMN weir_internal.scale_decision.stream_name IS 'scope/stream, which never changes.';
COMMENT ON COLUMN weir_internal.scale_decision.decided_at IS 'When it was decided.';
COMMENT ON COLUMN weir_internal.scale_decision.epoch IS 'The epoch on which it was decided; a split or a merge created the next one.';
COMMENT ON COLUMN weir_internal.scale_decision.action IS 'split, merge or none.';
COMMENT ON COLUMN weir_internal.scale_decision.rule IS 'Why, in a word, see semantics 7.3: hot or cold; for none: fixed, steady, too_young, no_interval, at_minimum, at_maximum, no_cold_neighbours, merge_too_hot, one_key.';
COMMENT ON COLUMN weir_internal.scale_decision.reason IS 'The decision in words.';
COMMENT ON COLUMN weir_internal.scale_decision.policy IS 'The policy by which it was decided: kind, target rate, scale factor, minimum, maximum (- for none), cool-down in seconds.';
COMMENT ON COLUMN weir_internal.scale_decision.commit_interval IS 'The stream''s own interval between commits, in microseconds; null if it had fewer than two commits.';
COMMENT ON COLUMN weir_internal.scale_decision.loads IS 'Per segment its rates per second over the four windows, the windows and its age, in seconds: of all segments that were replaced; of a decision to do nothing, of the ten with the highest rates.';
COMMENT ON COLUMN weir_internal.scale_decision.changes IS 'What one scale replaced: the segments, their rate per second together, and the keys at which the new segments begin.';

CREATE TABLE weir_internal.scale_evaluation (
    stream_id bigint PRIMARY KEY REFERENCES weir_internal.stream,
    clock bigint NOT NULL,
    policy text NOT NULL,
    next_at timestamptz
);
COMMENT ON TABLE weir_internal.scale_evaluation IS 'What the last decision to do nothing rests on. A run evaluates a stream again once it has moved, its policy is another, or a time has come.';
COMMENT ON COLUMN weir_internal.scale_evaluation.clock IS 'The last clock of the stream at that time.';
COMMENT ON COLUMN weir_internal.scale_evaluation.policy IS 'The policy at that time.';
COMMENT ON COLUMN weir_internal.scale_evaluation.next_at IS 'From when on the passing of time alone may change the decision; null: never.';

CREATE TABLE weir_internal.scale_measurement (
    stream_id bigint PRIMARY KEY REFERENCES weir_internal.stream,
    silent_attempts integer NOT NULL,
    begun_at timestamptz NOT NULL
);
COMMENT ON TABLE weir_internal.scale_measurement IS 'The streams whose hot segments are being measured, or whose last measurement ended without a word. They are measured last, alone, and rest in between.';
COMMENT ON COLUMN weir_internal.scale_measurement.silent_attempts IS 'How many measurements there were since the last one that said how it ended, with the present one.';
COMMENT ON COLUMN weir_internal.scale_measurement.begun_at IS 'When the last one began.';

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
COMMENT ON TABLE weir_internal.hot_key IS 'Routing keys that alone have more than the target rate, so that no split can help.';
COMMENT ON COLUMN weir_internal.hot_key.key_position IS 'Its routing position.';
COMMENT ON COLUMN weir_internal.hot_key.routing_key IS 'The key, as text.';
COMMENT ON COLUMN weir_internal.hot_key.share IS 'Its share of the recent load of its segment when it was last measured; 1 is all of it.';
COMMENT ON COLUMN weir_internal.hot_key.rate IS 'Its events or bytes per second when it was last measured.';
COMMENT ON COLUMN weir_internal.hot_key.since IS 'Since when it has been too hot without a break.';
COMMENT ON COLUMN weir_internal.hot_key.seen_at IS 'When it was last measured.';
