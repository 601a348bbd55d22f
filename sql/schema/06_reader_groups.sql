CREATE TABLE weir_internal.reader_group (
    group_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '\A[a-z0-9][a-z0-9_-]{0,62}(/[a-z0-9][a-z0-9_-]{0,62})?\Z'),
    generation bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Configuration.
    subscriber boolean NOT NULL,
    on_gap text NOT NULL CHECK (on_gap IN ('fail', 'skip')),
    max_outstanding integer NOT NULL DEFAULT 3 CHECK (max_outstanding > 0),
    release text NOT NULL DEFAULT 'automatic' CHECK (release IN ('automatic', 'manual')),
    time_out bigint CHECK (time_out > 0),
    aligned boolean NOT NULL DEFAULT false,
    max_ahead bigint CHECK (max_ahead > 0),
    subject text NOT NULL DEFAULT '',
    consumer jsonb,
    owner text CHECK (owner <> ''),
    -- What changes as its readers work.
    next_token bigint NOT NULL DEFAULT 1,
    next_batch bigint NOT NULL DEFAULT 1,
    moved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    checkpointed_at timestamptz NOT NULL DEFAULT '-infinity'
);
-- The groups that have moved since their last automatic checkpoint, found without looking at all groups.
CREATE INDEX reader_group_moved ON weir_internal.reader_group (group_id) WHERE moved_at > checkpointed_at;
CREATE INDEX reader_group_owned ON weir_internal.reader_group (owner, group_id) WHERE owner IS NOT NULL;
COMMENT ON TABLE weir_internal.reader_group IS 'A named set of readers. The lock on its row serialises every change of the group.';
COMMENT ON COLUMN weir_internal.reader_group.group_id IS 'One life of the group: a group that is created again under its name gets another id.';
COMMENT ON COLUMN weir_internal.reader_group.name IS 'Unique among the groups that exist. That of an adjunct store''s group is scope/name, the name of the store.';
COMMENT ON COLUMN weir_internal.reader_group.generation IS 'Grows with each change of its configuration.';
COMMENT ON COLUMN weir_internal.reader_group.created_at IS 'When this life of the group began.';
COMMENT ON COLUMN weir_internal.reader_group.subscriber IS 'Whether the events that it has not released hold retention back.';
COMMENT ON COLUMN weir_internal.reader_group.on_gap IS 'What a reader does if its position was truncated: fail, or skip to the head.';
COMMENT ON COLUMN weir_internal.reader_group.max_outstanding IS 'How many checkpoints may wait for batches at a time.';
COMMENT ON COLUMN weir_internal.reader_group.release IS 'automatic: each checkpoint releases the events before it; manual: only weir_release_reader_group releases events.';
COMMENT ON COLUMN weir_internal.reader_group.time_out IS 'Seconds that a subscriber with unread events may be inactive before retention stops waiting for it; null: retention always waits.';
COMMENT ON COLUMN weir_internal.reader_group.aligned IS 'Whether each of its batches holds, of all its streams, everything up to one clock and nothing after it.';
COMMENT ON COLUMN weir_internal.reader_group.max_ahead IS 'Seconds by which no batch goes beyond the oldest event that other readers have not read; null: without such a limit.';
COMMENT ON COLUMN weir_internal.reader_group.subject IS 'The column of what its consumers write that has the routing keys of what they read; empty: the one of the same name.';
COMMENT ON COLUMN weir_internal.reader_group.consumer IS 'What weir_apply declared for its runs: the arguments of weir_process that they take where they give none; null without a consumer.';
COMMENT ON COLUMN weir_internal.reader_group.owner IS 'The role of the database whose members read with it and change it; null: everybody.';
COMMENT ON COLUMN weir_internal.reader_group.next_token IS 'The fencing token that the next reader to join gets.';
COMMENT ON COLUMN weir_internal.reader_group.next_batch IS 'The id that the next batch gets.';
COMMENT ON COLUMN weir_internal.reader_group.moved_at IS 'When its readers last committed a batch, or it was placed or became a subscriber, or the database was recovered.';
COMMENT ON COLUMN weir_internal.reader_group.checkpointed_at IS 'When the periodic checkpoint last looked at it.';

CREATE TABLE weir_internal.reader_group_stream (
    group_id bigint NOT NULL REFERENCES weir_internal.reader_group ON DELETE CASCADE,
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    start_cut jsonb NOT NULL,
    end_cut jsonb,
    released_cut jsonb,
    released_at timestamptz,
    subscriber_since timestamptz,
    lost_events bigint NOT NULL DEFAULT 0,
    head_seen jsonb,
    newest_read bigint,
    hole bigint,
    passed_clock bigint,
    PRIMARY KEY (group_id, stream_id)
);
CREATE INDEX reader_group_stream_by_stream ON weir_internal.reader_group_stream (stream_id);
COMMENT ON TABLE weir_internal.reader_group_stream IS 'A stream that a group reads.';
COMMENT ON COLUMN weir_internal.reader_group_stream.start_cut IS 'Where the group began.';
COMMENT ON COLUMN weir_internal.reader_group_stream.end_cut IS 'Where the group stops for good; null for a group without an end.';
COMMENT ON COLUMN weir_internal.reader_group_stream.released_cut IS 'The events before it are released; at first the start cut. Null for a group that is not a subscriber.';
COMMENT ON COLUMN weir_internal.reader_group_stream.released_at IS 'When the group last released events.';
COMMENT ON COLUMN weir_internal.reader_group_stream.subscriber_since IS 'Since when it is a subscriber of the stream: each later receipt names it. Null for a group that is not a subscriber.';
COMMENT ON COLUMN weir_internal.reader_group_stream.lost_events IS 'Events that were truncated before this group read them, and that its readers skipped.';
COMMENT ON COLUMN weir_internal.reader_group_stream.head_seen IS 'The head of the stream that its positions were last compared with, and none of them lies before; null if they were not compared since the group was placed.';
COMMENT ON COLUMN weir_internal.reader_group_stream.newest_read IS 'The newest clock of an event that it has read of this stream since it was placed, or of the stream''s last commit if it had read everything; null before it has read any.';
COMMENT ON COLUMN weir_internal.reader_group_stream.passed_clock IS 'The clock of the oldest event that it has passed without reading it, because it began or was reset after it, or because it was truncated; null if there is none.';
COMMENT ON COLUMN weir_internal.reader_group_stream.hole IS 'By how many microseconds the oldest unread event was older than newest_read when the group last committed a batch; 0 if no unread event was older. Null before the first batch.';

CREATE TABLE weir_internal.reader (
    group_id bigint NOT NULL REFERENCES weir_internal.reader_group ON DELETE CASCADE,
    reader_id text NOT NULL,
    label text NOT NULL DEFAULT '',
    token bigint NOT NULL,
    lease_until timestamptz NOT NULL,
    joined_at timestamptz NOT NULL,
    PRIMARY KEY (group_id, reader_id)
) WITH (fillfactor = 70);
COMMENT ON TABLE weir_internal.reader IS 'A reader that has joined a group and not left it.';
COMMENT ON COLUMN weir_internal.reader.reader_id IS 'DAG, run, task and map index: equal in all retries of a task.';
COMMENT ON COLUMN weir_internal.reader.label IS 'The name that pins use, equal in every run: the label that the task was given, else its map index; empty without either.';
COMMENT ON COLUMN weir_internal.reader.token IS 'Its fencing token; a session with an older token may do nothing.';
COMMENT ON COLUMN weir_internal.reader.lease_until IS 'From then on others may take over its batch and its segments, but not within the first reader_lease after the start of Postgres. -infinity: at once, because its lease was ended. infinity: it is a streaming query, of which nobody takes anything over unless it is taken offline.';
COMMENT ON COLUMN weir_internal.reader.joined_at IS 'When it joined with this token.';

-- An open batch does not mark the segments that it reads: its bounds name them (held_segments).
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
COMMENT ON TABLE weir_internal.reader_group_segment IS 'The positions of a group. A completed segment is kept only if it has no successor (the end of a sealed stream).';
COMMENT ON COLUMN weir_internal.reader_group_segment.state IS 'unassigned, assigned to one reader, future (waits for its predecessors) or completed.';
COMMENT ON COLUMN weir_internal.reader_group_segment.next_offset IS 'The next offset to read, as committed; null for a future segment.';
COMMENT ON COLUMN weir_internal.reader_group_segment.reader_id IS 'The reader that owns it; null unless it is assigned.';

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
COMMENT ON TABLE weir_internal.reader_group_pin IS 'Keys of a stream that the readers with a label read, as long as one of them has joined. The ranges of a stream are disjoint.';
COMMENT ON COLUMN weir_internal.reader_group_pin.key_low IS 'Where the pinned range begins (inclusive).';
COMMENT ON COLUMN weir_internal.reader_group_pin.key_high IS 'Where the pinned range ends (exclusive).';
COMMENT ON COLUMN weir_internal.reader_group_pin.label IS 'The label of the readers.';
