CREATE TABLE weir_internal.stream_cut (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    stream_name text NOT NULL,
    recorded_at timestamptz NOT NULL,
    clock bigint NOT NULL,
    cut jsonb NOT NULL,
    events bigint NOT NULL,
    bytes bigint NOT NULL,
    proven_at timestamptz,
    PRIMARY KEY (stream_id, recorded_at)
);
-- A run of weir_stream_cuts reads nothing of streams all of whose cuts are proven.
CREATE INDEX stream_cut_unproven ON weir_internal.stream_cut (stream_id) WHERE proven_at IS NULL;
-- For whether any is later than now: it knows the latest of each 128 pages, and costs next to nothing.
CREATE INDEX stream_cut_by_time ON weir_internal.stream_cut USING brin (recorded_at) WITH (autosummarize = on);
-- For questions by name and time, as the views ask them: see epoch_by_name.
CREATE UNIQUE INDEX stream_cut_by_name ON weir_internal.stream_cut (stream_name, recorded_at);
CREATE INDEX stream_cut_by_size ON weir_internal.stream_cut (stream_id, bytes, recorded_at);
COMMENT ON TABLE weir_internal.stream_cut IS 'The retention set: recorded tails of the stream, each strictly later than the one before.';
COMMENT ON COLUMN weir_internal.stream_cut.stream_name IS 'scope/stream, which never changes.';
COMMENT ON COLUMN weir_internal.stream_cut.recorded_at IS 'When the tail was captured.';
COMMENT ON COLUMN weir_internal.stream_cut.clock IS 'The last clock of the stream at that time.';
COMMENT ON COLUMN weir_internal.stream_cut.cut IS 'The tail at that time.';
COMMENT ON COLUMN weir_internal.stream_cut.events IS 'Events before the cut, from the beginning of the stream.';
COMMENT ON COLUMN weir_internal.stream_cut.bytes IS 'Bytes before the cut, from the beginning of the stream, as first committed.';
COMMENT ON COLUMN weir_internal.stream_cut.proven_at IS 'When the footers of all files of commits before the cut had been compared with what was recorded, and no damage of the stream was known; null: that is not so yet.';

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
-- For questions by name and time, as the views ask them: see epoch_by_name.
CREATE UNIQUE INDEX retention_decision_by_name ON weir_internal.retention_decision (stream_name, decided_at);
CREATE INDEX retention_decision_lost ON weir_internal.retention_decision (decided_at) WHERE lost <> '{}';
COMMENT ON TABLE weir_internal.retention_decision IS 'What retention decided and why. A decision that repeats the one before is not recorded.';
COMMENT ON COLUMN weir_internal.retention_decision.stream_name IS 'scope/stream, which never changes.';
COMMENT ON COLUMN weir_internal.retention_decision.decided_at IS 'When retention decided.';
COMMENT ON COLUMN weir_internal.retention_decision.rule IS 'The rule that chose, see docs/retention.md: consumed, min_age, min_bytes, max_age, max_bytes; or why nothing is truncated: keep, no_rule, nothing_consumed, too_little, behind_head.';
COMMENT ON COLUMN weir_internal.retention_decision.reason IS 'The decision in words.';
COMMENT ON COLUMN weir_internal.retention_decision.head IS 'The head before the decision.';
COMMENT ON COLUMN weir_internal.retention_decision.bound IS 'The lower bound of what the subscribers released; null without subscribers.';
COMMENT ON COLUMN weir_internal.retention_decision.cut IS 'The new head; null if nothing was truncated.';
COMMENT ON COLUMN weir_internal.retention_decision.held_by IS 'The subscribers that prevent a further truncation; empty if a minimum would prevent it anyway.';
COMMENT ON COLUMN weir_internal.retention_decision.truncated_past IS 'The subscribers that had not released all that a maximum truncated.';
COMMENT ON COLUMN weir_internal.retention_decision.timed_out IS 'The subscribers that had timed out, so that retention did not wait for them.';
COMMENT ON COLUMN weir_internal.retention_decision.lost IS 'Per subscriber that had not read all that was truncated: how many events it lost.';
COMMENT ON COLUMN weir_internal.retention_decision.events IS 'How many events were truncated.';
COMMENT ON COLUMN weir_internal.retention_decision.bytes IS 'How many bytes were truncated, as first committed.';

-- How large streams were, at the end of parts of time: five minutes, hours and days (history_grains). A part in which
-- nothing moved has no row. Rows are written beside the records of the same run, and pruned by their age.
CREATE TABLE weir_internal.stream_history (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    grain integer NOT NULL,
    slot timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    events bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (stream_id, grain, slot)
) WITH (fillfactor = 80);
COMMENT ON TABLE weir_internal.stream_history IS 'How large each stream was over time: a row for each part of time in which it grew.';
COMMENT ON COLUMN weir_internal.stream_history.grain IS 'How long the part of time is, in seconds.';
COMMENT ON COLUMN weir_internal.stream_history.slot IS 'When the part began.';
COMMENT ON COLUMN weir_internal.stream_history.recorded_at IS 'When the last cut of the part was recorded, which says so.';
COMMENT ON COLUMN weir_internal.stream_history.events IS 'Events before the tail then, from the beginning of the stream.';
COMMENT ON COLUMN weir_internal.stream_history.bytes IS 'Their bytes, as first committed.';

CREATE TABLE weir_internal.owner_history (
    owner text NOT NULL,
    grain integer NOT NULL,
    slot timestamptz NOT NULL,
    streams bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (owner, grain, slot)
) WITH (fillfactor = 80);
COMMENT ON TABLE weir_internal.owner_history IS 'What the streams of each owner kept over time, as weir_upkeep found it.';
COMMENT ON COLUMN weir_internal.owner_history.owner IS 'The owner; empty for the streams of nobody.';
COMMENT ON COLUMN weir_internal.owner_history.grain IS 'How long the part of time is, in seconds.';
COMMENT ON COLUMN weir_internal.owner_history.slot IS 'When the part began.';
COMMENT ON COLUMN weir_internal.owner_history.streams IS 'How many streams they were.';
COMMENT ON COLUMN weir_internal.owner_history.bytes IS 'The bytes between their heads and tails, as first committed.';

-- Two queues of streams to look at, so that a run reads nothing of the streams that need nothing. Sessions
-- only insert and delete rows, and so no session waits for another.
CREATE TABLE weir_internal.capture_queue (stream_id bigint NOT NULL);
COMMENT ON TABLE weir_internal.capture_queue IS 'Streams for weir_stream_cuts to capture: a row for each time that a tail moved since the last record in the retention set.';
COMMENT ON COLUMN weir_internal.capture_queue.stream_id IS 'The stream whose tail moved.';

CREATE TABLE weir_internal.retention_queue (
    stream_id bigint NOT NULL,
    due_at timestamptz NOT NULL
);
CREATE INDEX retention_queue_by_time ON weir_internal.retention_queue (due_at);
CREATE INDEX retention_queue_by_stream ON weir_internal.retention_queue (stream_id);
COMMENT ON TABLE weir_internal.retention_queue IS 'Streams for weir_retention to decide about: what the last decision rests on has changed, or will have changed by a time.';
COMMENT ON COLUMN weir_internal.retention_queue.stream_id IS 'The stream to decide about.';
COMMENT ON COLUMN weir_internal.retention_queue.due_at IS 'From when on the decision may be another.';
