-- What proves, for as long as a stream lives, that its events were read before they went: where each group was put,
-- which offsets it was given since, and which offsets each truncation took. Ranges, not a row per batch or file.

CREATE TABLE weir_internal.placement (
    group_id bigint NOT NULL,
    stream_id bigint NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    group_name text NOT NULL,
    cause text NOT NULL CHECK (cause IN ('entered', 'reset', 'skipped', 'moved')),
    left_at jsonb,
    cut jsonb NOT NULL,
    placed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (group_id, stream_id, number)
);
CREATE INDEX placement_by_stream ON weir_internal.placement (stream_id);
COMMENT ON TABLE weir_internal.placement IS 'Where a reader group was put other than by its batches. Kept as long as the stream, also if the group is deleted.';
COMMENT ON COLUMN weir_internal.placement.group_id IS 'The group, which may have been deleted.';
COMMENT ON COLUMN weir_internal.placement.stream_id IS 'The stream.';
COMMENT ON COLUMN weir_internal.placement.number IS '1, 2, 3 ... per group and stream.';
COMMENT ON COLUMN weir_internal.placement.group_name IS 'Its name, which never changes.';
COMMENT ON COLUMN weir_internal.placement.cause IS 'entered: the group began to read the stream; reset: a person moved it; skipped: events were truncated before it read them; moved: a version of its adjunct store has read everything up to the cut, or its consumer is not given the stream''s events.';
COMMENT ON COLUMN weir_internal.placement.left_at IS 'The position that it left; null where it began.';
COMMENT ON COLUMN weir_internal.placement.cut IS 'The position that it got.';
COMMENT ON COLUMN weir_internal.placement.placed_at IS 'When; of moves that follow one another, of the last one.';

CREATE TABLE weir_internal.delivered_range (
    group_id bigint NOT NULL,
    stream_id bigint NOT NULL,
    segment_id bigint NOT NULL,
    placement integer NOT NULL,
    from_offset bigint NOT NULL,
    to_offset bigint NOT NULL CHECK (to_offset > from_offset),
    events bigint NOT NULL,
    lost bigint NOT NULL DEFAULT 0,
    first_batch bigint NOT NULL,
    last_batch bigint NOT NULL,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    PRIMARY KEY (group_id, stream_id, segment_id, placement, from_offset)
) WITH (fillfactor = 70);
CREATE INDEX delivered_range_by_stream ON weir_internal.delivered_range (stream_id, segment_id);
COMMENT ON TABLE weir_internal.delivered_range IS 'Which offsets the committed batches of a reader group have read: neighbours in one row. Kept as long as the stream, also if the group is deleted.';
COMMENT ON COLUMN weir_internal.delivered_range.group_id IS 'The group, which may have been deleted.';
COMMENT ON COLUMN weir_internal.delivered_range.stream_id IS 'The stream.';
COMMENT ON COLUMN weir_internal.delivered_range.segment_id IS 'The segment, whose row may be pruned.';
COMMENT ON COLUMN weir_internal.delivered_range.placement IS 'After which placement of the group it read them: after a reset it may read them again.';
COMMENT ON COLUMN weir_internal.delivered_range.from_offset IS 'The first offset.';
COMMENT ON COLUMN weir_internal.delivered_range.to_offset IS 'The offset after the last one.';
COMMENT ON COLUMN weir_internal.delivered_range.events IS 'How many offsets its batches have read: as many as it has, or one of them was read twice.';
COMMENT ON COLUMN weir_internal.delivered_range.lost IS 'How many of these events were truncated while a batch was open on them, so that it did not read them.';
COMMENT ON COLUMN weir_internal.delivered_range.first_batch IS 'The batch that began it.';
COMMENT ON COLUMN weir_internal.delivered_range.last_batch IS 'The batch that ended it.';
COMMENT ON COLUMN weir_internal.delivered_range.first_at IS 'When the first batch was committed.';
COMMENT ON COLUMN weir_internal.delivered_range.last_at IS 'When the last batch was committed.';

CREATE TABLE weir_internal.truncation (
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    stream_name text NOT NULL,
    number bigint NOT NULL CHECK (number > 0),
    truncated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    clock bigint NOT NULL,
    rule text NOT NULL,
    reason text NOT NULL,
    head jsonb NOT NULL,
    events bigint NOT NULL,
    bytes bigint NOT NULL,
    files bigint NOT NULL,
    events_until bigint NOT NULL,
    request_id text,
    lost jsonb NOT NULL,
    subscribers jsonb NOT NULL,
    PRIMARY KEY (stream_id, number)
);
CREATE INDEX truncation_by_events ON weir_internal.truncation (stream_id, events_until);
-- For questions by name, as the views ask them: see epoch_by_name.
CREATE UNIQUE INDEX truncation_by_name ON weir_internal.truncation (stream_name, number);
CREATE INDEX truncation_by_name_and_time ON weir_internal.truncation (stream_name, truncated_at);
COMMENT ON TABLE weir_internal.truncation IS 'The receipt of each move of a head by which events went. Kept as long as the stream.';
COMMENT ON COLUMN weir_internal.truncation.stream_name IS 'scope/stream, which never changes.';
COMMENT ON COLUMN weir_internal.truncation.number IS '1, 2, 3 ... per stream.';
COMMENT ON COLUMN weir_internal.truncation.truncated_at IS 'When the head was moved.';
COMMENT ON COLUMN weir_internal.truncation.clock IS 'The last clock of the stream at that time.';
COMMENT ON COLUMN weir_internal.truncation.rule IS 'The rule of retention that truncated, or by_hand.';
COMMENT ON COLUMN weir_internal.truncation.reason IS 'Why, in words; of one by hand, who.';
COMMENT ON COLUMN weir_internal.truncation.head IS 'The cut at which the stream began afterwards.';
COMMENT ON COLUMN weir_internal.truncation.events IS 'How many events went.';
COMMENT ON COLUMN weir_internal.truncation.bytes IS 'How many bytes, as first committed.';
COMMENT ON COLUMN weir_internal.truncation.files IS 'How many files became garbage: all that lay wholly below the new head.';
COMMENT ON COLUMN weir_internal.truncation.events_until IS 'How many events had gone by then, from the beginning of the stream.';
COMMENT ON COLUMN weir_internal.truncation.request_id IS 'Who truncated by hand: the DAG run and task, or the run in a terminal. Null for retention.';
COMMENT ON COLUMN weir_internal.truncation.lost IS 'Per reader group that had not read all of it: how many events it lost. Retention counts subscribers only.';
COMMENT ON COLUMN weir_internal.truncation.subscribers IS 'By name, every subscriber at that time: group_id, released_at (when it last released events), released (whether it had released all that went), batches and runs (the first and the last that read what went), lost (how many of these events it had not read) and lost_so_far (the same of all truncations since it subscribes).';

CREATE TABLE weir_internal.truncated_range (
    stream_id bigint NOT NULL,
    segment_id bigint NOT NULL,
    from_offset bigint NOT NULL CHECK (from_offset >= 0),
    to_offset bigint NOT NULL CHECK (to_offset > from_offset),
    number bigint NOT NULL,
    PRIMARY KEY (stream_id, segment_id, from_offset) INCLUDE (to_offset, number),
    FOREIGN KEY (stream_id, number) REFERENCES weir_internal.truncation
);
CREATE INDEX truncated_range_by_number ON weir_internal.truncated_range (stream_id, number);
COMMENT ON TABLE weir_internal.truncated_range IS 'Which offsets each truncation took: one row for a segment of it.';
COMMENT ON COLUMN weir_internal.truncated_range.stream_id IS 'The stream.';
COMMENT ON COLUMN weir_internal.truncated_range.segment_id IS 'The segment, whose row may be pruned.';
COMMENT ON COLUMN weir_internal.truncated_range.from_offset IS 'The first offset.';
COMMENT ON COLUMN weir_internal.truncated_range.to_offset IS 'The offset after the last one.';
COMMENT ON COLUMN weir_internal.truncated_range.number IS 'The truncation.';
-- See 12_planning.sql.
ALTER TABLE weir_internal.placement ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.delivered_range ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.truncation ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.truncation ALTER COLUMN stream_name SET STATISTICS 0;
ALTER TABLE weir_internal.truncated_range ALTER COLUMN stream_id SET STATISTICS 0;
