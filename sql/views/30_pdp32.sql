-- The records of PDP-32 and PDP-47 under their names there. Each is a view over rows: Weir stores no chunks, shards or
-- index nodes.

CREATE OR REPLACE VIEW weir.scopes AS
SELECT s.scope, count(*) AS streams FROM weir_internal.stream s WHERE s.state <> 'deleted' GROUP BY s.scope;
COMMENT ON VIEW weir.scopes IS 'The scopes. A scope exists as long as it has streams.';
COMMENT ON COLUMN weir.scopes.scope IS 'The first half of the names of its streams.';
COMMENT ON COLUMN weir.scopes.streams IS 'How many streams it has.';

CREATE OR REPLACE VIEW weir.stream_configuration AS
SELECT s.stream_name AS stream, s.routing_key, s.scaling, s.min_segments, s.target_rate,
       s.scale_factor, s.retention, s.retain_min_age * interval '1 second' AS retain_min_age,
       s.retain_max_age * interval '1 second' AS retain_max_age, s.retain_min_bytes, s.retain_max_bytes,
       s.cuts_every * interval '1 second' AS cuts_every, s.on_missing_key, s.on_bad_rows,
       s.tags, s.schema_version, c.fields AS schema, s.event_time, s.max_segments,
       s.scale_cooldown * interval '1 second' AS scale_cooldown, s.on_new_column, s.owner, s.publish,
       s.refuse_erased, s.event_time_ahead * interval '1 second' AS event_time_ahead,
       s.event_time_back * interval '1 second' AS event_time_back
FROM weir_internal.stream s
LEFT JOIN weir_internal.stream_schema c ON c.stream_id = s.stream_id AND c.version = s.schema_version
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.stream_configuration IS 'The configuration of each stream, as last updated.';
COMMENT ON COLUMN weir.stream_configuration.scale_cooldown IS 'How long scaling by load leaves a new segment as it is.';
COMMENT ON COLUMN weir.stream_configuration.on_new_column IS 'What happens to rows with a column that the stream does not have: refuse the append, or add the column.';
COMMENT ON COLUMN weir.stream_configuration.publish IS 'As what it is published: iceberg, or none.';
COMMENT ON COLUMN weir.stream_configuration.refuse_erased IS 'Whether an append with a routing key that was erased from it is refused.';
COMMENT ON COLUMN weir.stream_configuration.event_time_ahead IS 'How much later than now a writer may state that everything is there, and an event may be.';
COMMENT ON COLUMN weir.stream_configuration.event_time_back IS 'How far before what the stream is complete to its events, hours and days count as its own.';
COMMENT ON COLUMN weir.stream_configuration.retain_min_age IS 'Retention keeps younger events, even if all subscribers have released them; null: no such limit.';
COMMENT ON COLUMN weir.stream_configuration.retain_max_age IS 'Retention truncates older events, even if a subscriber has not released them; null: no such limit.';
COMMENT ON COLUMN weir.stream_configuration.cuts_every IS 'The least time between two cuts of the retention set; null: every run of weir_stream_cuts records one.';
COMMENT ON COLUMN weir.stream_configuration.schema IS 'Its columns, in Spark''s JSON form of the struct type; null before the first append.';

CREATE OR REPLACE VIEW weir.stream_state AS
SELECT s.stream_name AS stream, s.state, s.current_epoch, s.created_at,
       weir_internal.clock_time(s.sealed_clock) AS sealed_at,
       weir_internal.clock_time(greatest(s.last_clock + 1, weir_internal.now_clock())) AS next_clock,
       weir_internal.clock_time(s.last_clock) AS last_clock
FROM weir_internal.stream s
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.stream_state IS 'Whether each stream is active or sealed, the clock that a commit would get now, and when it last changed.';
COMMENT ON COLUMN weir.stream_state.sealed_at IS 'When it was sealed; null while it is active.';
COMMENT ON COLUMN weir.stream_state.next_clock IS 'The clock that a commit would get now, as a time.';
COMMENT ON COLUMN weir.stream_state.last_clock IS 'When it last changed, as in streams; asked of here, it costs nothing.';

CREATE OR REPLACE VIEW weir.epoch_record AS
SELECT e.stream_name AS stream, e.epoch, e.reference_epoch,
       weir_internal.clock_time(e.created_at) AS created_at, e.splits, e.merges,
       (SELECT array_agg(weir_internal.segment_name(a.segment_id) ORDER BY a.segment_id)
        FROM weir_internal.active_segments_at(e.stream_id, e.epoch) a) AS segments,
       e.epoch = s.current_epoch AS current
FROM weir_internal.epoch e JOIN weir_internal.stream s USING (stream_id);
COMMENT ON VIEW weir.epoch_record IS 'Each epoch with all of its segments, and the splits and merges up to it.';
COMMENT ON COLUMN weir.epoch_record.segments IS 'The segments that tile [0, 1) in it, oldest first.';
COMMENT ON COLUMN weir.epoch_record.current IS 'Whether it is the active epoch, or was when the stream was sealed.';

CREATE OR REPLACE VIEW weir.current_epoch_record AS
SELECT s.stream_name AS stream, r.epoch, r.reference_epoch, r.created_at, r.splits, r.merges,
       r.segments
FROM weir_internal.stream s
JOIN weir.epoch_record r ON r.stream = s.stream_name AND r.epoch = s.current_epoch
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.current_epoch_record IS 'The active epoch of each stream.';

CREATE OR REPLACE VIEW weir.epoch_transition AS
SELECT e.stream_name AS stream, e.epoch, e.reference_epoch, e.cause, e.reason,
       e.request_id, weir_internal.clock_time(e.created_at) AS created_at,
       array(SELECT weir_internal.segment_name(g.segment_id) FROM weir_internal.segment g
             WHERE g.stream_name = e.stream_name AND g.sealed_epoch = e.epoch
             ORDER BY g.segment_id) AS sealed_segments,
       array(SELECT weir_internal.segment_name(g.segment_id) FROM weir_internal.segment g
             WHERE g.stream_id = e.stream_id AND g.segment_id >= weir_internal.first_segment_id(e.epoch)
               AND g.segment_id < weir_internal.first_segment_id(e.epoch + 1)
             ORDER BY g.segment_id) AS created_segments
FROM weir_internal.epoch e;
COMMENT ON VIEW weir.epoch_transition IS 'How each epoch began: what was sealed and created, which request asked for it, and why.';
COMMENT ON COLUMN weir.epoch_transition.request_id IS 'The request that asked for it; empty for a roll.';
COMMENT ON COLUMN weir.epoch_transition.sealed_segments IS 'The segments of the epoch before that are not part of it.';
COMMENT ON COLUMN weir.epoch_transition.created_segments IS 'The segments that were not part of the epoch before.';

CREATE OR REPLACE VIEW weir.history_time_series AS
SELECT stream, epoch / 1000 AS chunk, epoch, reference_epoch, created_at, sealed_segments,
       created_segments
FROM weir.epoch_transition;
COMMENT ON VIEW weir.history_time_series IS 'What each epoch sealed and created; chunk is its number divided by 1000.';
COMMENT ON COLUMN weir.history_time_series.chunk IS 'The epoch divided by 1000.';

CREATE OR REPLACE VIEW weir.history_time_index AS
SELECT e.stream_name AS stream, e.epoch / 1000 AS chunk,
       weir_internal.clock_time(e.created_at) AS begins_at, e.epoch AS first_epoch
FROM weir_internal.epoch e
WHERE e.epoch % 1000 = 0;
COMMENT ON VIEW weir.history_time_index IS 'When each chunk of 1000 epochs began.';
COMMENT ON COLUMN weir.history_time_index.chunk IS '0, 1, 2 ...';
COMMENT ON COLUMN weir.history_time_index.begins_at IS 'When its first epoch was created.';
COMMENT ON COLUMN weir.history_time_index.first_epoch IS '1000 times the chunk.';

CREATE OR REPLACE VIEW weir.segment_sealed_record AS
SELECT g.stream_name AS stream, weir_internal.segment_name(g.segment_id) AS segment, g.sealed_epoch,
       weir_internal.clock_time(g.sealed_clock) AS sealed_at
FROM weir_internal.segment g
WHERE g.sealed_epoch IS NOT NULL;
COMMENT ON VIEW weir.segment_sealed_record IS 'The epoch in which each segment was sealed.';
COMMENT ON COLUMN weir.segment_sealed_record.sealed_epoch IS 'The first epoch without the segment.';
COMMENT ON COLUMN weir.segment_sealed_record.sealed_at IS 'When that epoch was created.';

CREATE OR REPLACE VIEW weir.sealed_segment_shard AS
SELECT g.stream_name AS stream, g.creation_epoch / 1000 AS shard,
       weir_internal.segment_name(g.segment_id) AS segment, g.events, g.bytes
FROM weir_internal.segment g
WHERE g.sealed_epoch IS NOT NULL;
COMMENT ON VIEW weir.sealed_segment_shard IS 'The final sizes of sealed segments; shard is their creation epoch divided by 1000.';
COMMENT ON COLUMN weir.sealed_segment_shard.shard IS 'The creation epoch of the segment divided by 1000.';

CREATE OR REPLACE VIEW weir.stream_cut_record AS
SELECT c.stream_name AS stream, c.recorded_at, c.cut, c.events, c.bytes
FROM weir_internal.stream_cut c;
COMMENT ON VIEW weir.stream_cut_record IS 'The cuts of the retention set.';

CREATE OR REPLACE VIEW weir.truncation_record AS
SELECT s.stream_name AS stream, s.head AS cut,
       (SELECT jsonb_object_agg(p.segment, p.epoch)
        FROM weir.span(s.stream_name, s.head) p) AS span,
       z.events AS events_till, z.bytes AS size_till
FROM weir_internal.stream s CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, s.head) z
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.truncation_record IS 'Where each stream begins now, and how much was truncated since it was created.';
COMMENT ON COLUMN weir.truncation_record.cut IS 'The head.';
COMMENT ON COLUMN weir.truncation_record.span IS 'Per segment of the cut the last epoch that it was part of, up to the epoch of the newest segment.';
COMMENT ON COLUMN weir.truncation_record.events_till IS 'How many events are before the cut, counted from the beginning of the stream.';
COMMENT ON COLUMN weir.truncation_record.size_till IS 'Their bytes, as first committed.';

CREATE OR REPLACE VIEW weir.active_transaction AS
SELECT t.* FROM weir.transactions t WHERE t.state = 'open';
COMMENT ON VIEW weir.active_transaction IS 'The appends that are being written.';

CREATE OR REPLACE VIEW weir.committing_transactions AS
SELECT s.stream_name AS stream, t.transaction_number, t.epoch, t.source, t.opened_at
FROM weir_internal.transaction t JOIN weir_internal.stream s USING (stream_id)
WHERE t.staged IS NOT NULL AND s.state <> 'deleted';
COMMENT ON VIEW weir.committing_transactions IS 'The appends that are written and wait for a roll.';

CREATE OR REPLACE VIEW weir.completed_transaction AS
SELECT t.* FROM weir.transactions t WHERE t.state <> 'open';
COMMENT ON VIEW weir.completed_transaction IS 'The appends that were committed or aborted.';

CREATE OR REPLACE VIEW weir.stream_subscriber AS
SELECT s.stream_name AS stream, g.name AS reader_group, g.generation,
       gs.released_cut AS truncation_cut, gs.released_at
FROM weir_internal.reader_group_stream gs
JOIN weir_internal.reader_group g USING (group_id)
JOIN weir_internal.stream s USING (stream_id)
WHERE g.subscriber AND s.state <> 'deleted';
COMMENT ON VIEW weir.stream_subscriber IS 'The subscribers, and what each has released of each stream.';
COMMENT ON COLUMN weir.stream_subscriber.truncation_cut IS 'The events before it are released; at first where the group began.';
COMMENT ON COLUMN weir.stream_subscriber.released_at IS 'When it last released events.';
