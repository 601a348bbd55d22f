-- The records of PDP-32 and PDP-47 under the names they have there. Each is a view over rows: there
-- are no chunks, shards or index nodes to keep.

CREATE VIEW weir.scopes AS
SELECT s.scope, count(*) AS streams FROM weir.stream s WHERE s.state <> 'deleted' GROUP BY s.scope;
COMMENT ON VIEW weir.scopes IS 'The scopes: a scope is there as long as it has streams.';
COMMENT ON COLUMN weir.scopes.scope IS 'The first half of its streams'' names.';
COMMENT ON COLUMN weir.scopes.streams IS 'How many it has.';

CREATE VIEW weir.stream_configuration AS
SELECT s.scope || '/' || s.name AS stream, s.routing_key, s.scaling, s.min_segments, s.target_rate,
       s.scale_factor, s.retain_by_consumption, s.retain_min_age * interval '1 second' AS retain_min_age,
       s.retain_max_age * interval '1 second' AS retain_max_age, s.retain_min_bytes, s.retain_max_bytes,
       s.cuts_every * interval '1 second' AS cuts_every,
       s.retention_every * interval '1 second' AS retention_every, s.on_missing_key, s.on_bad_rows,
       s.tags,
       s.schema_version, c.fields AS schema
FROM weir.stream s
LEFT JOIN weir.stream_schema c ON c.stream_id = s.stream_id AND c.version = s.schema_version
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.stream_configuration IS 'What was asked for when a stream was created or last updated.';
COMMENT ON COLUMN weir.stream_configuration.retain_min_age IS 'What is younger is kept, whoever has consumed it; null: no such limit.';
COMMENT ON COLUMN weir.stream_configuration.retain_max_age IS 'What is older is deleted, whoever has not consumed it; null: no such limit.';
COMMENT ON COLUMN weir.stream_configuration.cuts_every IS 'The least time between two cuts of the retention set; null: every run of weir_stream_cuts.';
COMMENT ON COLUMN weir.stream_configuration.retention_every IS 'The least time between two decisions of retention; null: every run of weir_retention.';
COMMENT ON COLUMN weir.stream_configuration.schema IS 'Its columns: Spark''s JSON form of the struct type; null before the first append.';

CREATE VIEW weir.stream_state AS
SELECT s.scope || '/' || s.name AS stream, s.state, s.current_epoch, s.created_at,
       weir.clock_time(s.sealed_clock) AS sealed_at,
       weir.clock_time(greatest(s.last_clock + 1, weir.time_clock(clock_timestamp()))) AS next_clock
FROM weir.stream s
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.stream_state IS 'active or sealed, and the clock that a commit would get now.';
COMMENT ON COLUMN weir.stream_state.sealed_at IS 'When it was sealed; null while it is active.';
COMMENT ON COLUMN weir.stream_state.next_clock IS 'What a commit would get now.';

CREATE VIEW weir.epoch_record AS
SELECT e.stream_name AS stream, e.epoch, e.reference_epoch,
       weir.clock_time(e.created_at) AS created_at, e.splits, e.merges,
       (SELECT array_agg(weir.segment_name(a.segment_id) ORDER BY a.segment_id)
        FROM weir.active_segments_at(e.stream_id, e.epoch) a) AS segments,
       e.epoch = s.current_epoch AS current
FROM weir.epoch e JOIN weir.stream s USING (stream_id);
COMMENT ON VIEW weir.epoch_record IS 'Each epoch with all of its segments, and the splits and merges up to it.';
COMMENT ON COLUMN weir.epoch_record.segments IS 'All that tiled [0, 1) in it, by age.';
COMMENT ON COLUMN weir.epoch_record.current IS 'Whether it is the active one, or was when the stream was sealed.';

CREATE VIEW weir.current_epoch_record AS
SELECT s.scope || '/' || s.name AS stream, r.epoch, r.reference_epoch, r.created_at, r.splits, r.merges,
       r.segments
FROM weir.stream s
JOIN weir.epoch_record r ON r.stream = s.scope || '/' || s.name AND r.epoch = s.current_epoch
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.current_epoch_record IS 'The active epoch of each stream.';

CREATE VIEW weir.epoch_transition AS
SELECT e.stream_name AS stream, e.epoch, e.reference_epoch, e.cause, e.reason,
       e.request_id, weir.clock_time(e.created_at) AS created_at,
       array(SELECT weir.segment_name(g.segment_id) FROM weir.segment g
             WHERE g.stream_id = e.stream_id AND g.sealed_epoch = e.epoch
             ORDER BY g.segment_id) AS sealed_segments,
       array(SELECT weir.segment_name(g.segment_id) FROM weir.segment g
             WHERE g.stream_id = e.stream_id AND g.segment_id >= e.epoch::bigint << 32
               AND g.segment_id < (e.epoch + 1)::bigint << 32
             ORDER BY g.segment_id) AS created_segments
FROM weir.epoch e;
COMMENT ON VIEW weir.epoch_transition IS 'What made each epoch: what was sealed and created, who asked for it, and why.';
COMMENT ON COLUMN weir.epoch_transition.request_id IS 'Who asked for it; empty for a roll.';
COMMENT ON COLUMN weir.epoch_transition.sealed_segments IS 'Those of the epoch before that it has no longer.';
COMMENT ON COLUMN weir.epoch_transition.created_segments IS 'Those that the epoch before did not have.';

CREATE VIEW weir.history_time_series AS
SELECT stream, epoch / 1000 AS chunk, epoch, reference_epoch, created_at, sealed_segments,
       created_segments
FROM weir.epoch_transition;
COMMENT ON VIEW weir.history_time_series IS 'What each epoch sealed and created; chunk is its number divided by 1000.';
COMMENT ON COLUMN weir.history_time_series.chunk IS 'epoch / 1000.';

CREATE VIEW weir.history_time_index AS
SELECT e.stream_name AS stream, e.epoch / 1000 AS chunk,
       weir.clock_time(e.created_at) AS begins_at, e.epoch AS first_epoch
FROM weir.epoch e
WHERE e.epoch % 1000 = 0;
COMMENT ON VIEW weir.history_time_index IS 'When each chunk of 1000 epochs began.';
COMMENT ON COLUMN weir.history_time_index.chunk IS '0, 1, 2 ...';
COMMENT ON COLUMN weir.history_time_index.begins_at IS 'When its first epoch was created.';
COMMENT ON COLUMN weir.history_time_index.first_epoch IS '1000 times the chunk.';

CREATE VIEW weir.segment_sealed_record AS
SELECT e.stream_name AS stream, weir.segment_name(g.segment_id) AS segment, e.epoch AS sealed_epoch,
       weir.clock_time(e.created_at) AS sealed_at
FROM weir.epoch e
JOIN weir.segment g ON g.stream_id = e.stream_id AND g.sealed_epoch = e.epoch;
COMMENT ON VIEW weir.segment_sealed_record IS 'The epoch in which each sealed segment disappeared.';
COMMENT ON COLUMN weir.segment_sealed_record.sealed_epoch IS 'The epoch in which it is no longer.';
COMMENT ON COLUMN weir.segment_sealed_record.sealed_at IS 'When that epoch was created.';

CREATE VIEW weir.sealed_segment_shard AS
SELECT s.scope || '/' || s.name AS stream, g.creation_epoch / 1000 AS shard,
       weir.segment_name(g.segment_id) AS segment, g.events, g.bytes
FROM weir.segment g JOIN weir.stream s USING (stream_id)
WHERE s.state <> 'deleted' AND g.sealed_epoch IS NOT NULL;
COMMENT ON VIEW weir.sealed_segment_shard IS 'The final sizes of sealed segments; shard is their creation epoch divided by 1000.';
COMMENT ON COLUMN weir.sealed_segment_shard.shard IS 'The segment''s creation epoch / 1000.';

CREATE VIEW weir.stream_cut_record AS
SELECT s.scope || '/' || s.name AS stream, c.recorded_at, c.cut, c.events, c.bytes
FROM weir.stream_cut c JOIN weir.stream s USING (stream_id)
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.stream_cut_record IS 'The cuts that the retention set refers to.';

CREATE VIEW weir.truncation_record AS
SELECT s.scope || '/' || s.name AS stream, s.head AS cut,
       (SELECT jsonb_object_agg(p.segment, p.epoch)
        FROM weir.span(s.scope || '/' || s.name, s.head) p) AS span,
       z.events AS events_till, z.bytes AS size_till
FROM weir.stream s CROSS JOIN LATERAL weir.size_till(s.stream_id, s.head) z
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.truncation_record IS 'Where each stream begins now, and what was truncated before it since it was created.';
COMMENT ON COLUMN weir.truncation_record.cut IS 'The head.';
COMMENT ON COLUMN weir.truncation_record.span IS 'Per segment of the cut the last epoch it lived in, up to that of the newest.';
COMMENT ON COLUMN weir.truncation_record.events_till IS 'Events before the cut, since the stream was created.';
COMMENT ON COLUMN weir.truncation_record.size_till IS 'Their bytes, as first committed.';

CREATE VIEW weir.active_transaction AS
SELECT t.* FROM weir.transactions t WHERE t.state = 'open';
COMMENT ON VIEW weir.active_transaction IS 'The appends that are being written.';

CREATE VIEW weir.committing_transactions AS
SELECT s.scope || '/' || s.name AS stream, t.transaction_number, t.epoch, t.source, t.opened_at
FROM weir.transaction t JOIN weir.stream s USING (stream_id)
WHERE t.staged IS NOT NULL AND s.state <> 'deleted';
COMMENT ON VIEW weir.committing_transactions IS 'The appends that are written and wait for a roll.';

CREATE VIEW weir.completed_transaction AS
SELECT t.* FROM weir.transactions t WHERE t.state <> 'open';
COMMENT ON VIEW weir.completed_transaction IS 'The appends that were committed or aborted.';

CREATE VIEW weir.stream_subscriber AS
SELECT s.scope || '/' || s.name AS stream, g.name AS reader_group, g.generation,
       gs.published_cut AS truncation_cut, gs.published_at
FROM weir.reader_group_stream gs
JOIN weir.reader_group g USING (group_id)
JOIN weir.stream s USING (stream_id)
WHERE g.subscriber AND s.state <> 'deleted';
COMMENT ON VIEW weir.stream_subscriber IS 'The reader groups that hold retention back, and up to where they released each stream.';
COMMENT ON COLUMN weir.stream_subscriber.truncation_cut IS 'What lies before it may be truncated; at first where the group began.';
COMMENT ON COLUMN weir.stream_subscriber.published_at IS 'When it released that.';
