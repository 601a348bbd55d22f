-- ## Who is behind

-- ### Who is behind, and by how much?
--
-- `waiting` says how long the oldest unread event has been waiting.

SELECT reader_group, stream, unread_events, unread_bytes, lost_events, waiting > interval '1 day' AS over_a_day
FROM weir.lag WHERE unread_events > 0 ORDER BY unread_events DESC, reader_group DESC;

-- ### When will a group have caught up?
--
-- `catch_up` is how long it takes at the rates of the last hour; null if the group does not read
-- faster than others append.

SELECT reader_group, unread_events, catch_up FROM weir.catch_up WHERE reader_group = 'audit';

-- ### Which columns does a stream have, and since when?
--
-- `stored_name` is the name of a column in files, which a rename leaves.

SELECT name, type, stored_name, change, version FROM weir.stream_columns
WHERE stream = 'nyc/flights' AND newest ORDER BY position LIMIT 3;

-- ### Who reads this stream?

SELECT reader_group, subscriber, readers, checkpoint FROM weir.reader_groups
WHERE 'nyc/flights' = ANY (string_to_array(streams, ', ')) ORDER BY 1;

-- ### Where does a group stand in its stream?

SELECT segment, key_low, key_high, state, next_offset, unread_events FROM weir.positions
WHERE reader_group = 'delays' ORDER BY segment;

-- ### Which readers are at work, and on what?

SELECT reader_group, batch_id, reader_id, attempt, segments, events FROM weir.open_batches ORDER BY 1, 2;

-- ### Which reader has died in the middle of a batch?
--
-- Its lease has expired, so the next reader of the group takes the batch over (within the first
-- `reader_lease` after a start of Postgres: not yet).

SELECT reader_group, batch_id, reader_id FROM weir.open_batches WHERE lease_expired;

-- ### How is the work shared among the readers of a group?

SELECT reader_id, segments, unread_events, batch_id FROM weir.readers WHERE reader_group = 'delays' ORDER BY 1;

-- ### Which groups lost events that they had not read?

SELECT reader_group, stream, lost_events FROM weir.lag WHERE lost_events > 0;

-- ### Which batches failed, and why?
--
-- A batch that failed and was neither split nor abandoned is still open, and its run says why.

SELECT reader_group, batch_id, state, error FROM weir.batches WHERE error IS NOT NULL ORDER BY 1, 2;

-- ### How many events did consumers reject?

SELECT reader_group, sum(rejected) AS rejected, count(*) AS batches FROM weir.batches
WHERE state = 'committed' GROUP BY reader_group;

-- ### Which checkpoint may I go back to?

SELECT reader_group, checkpoint, kind, state FROM weir.checkpoints WHERE state = 'complete' ORDER BY created_at;

-- ## What is truncated, and what stays

-- ### What would retention truncate now?
--
-- Of every stream that is not sealed.

SELECT s.stream, d.rule, d.events, d.bytes, d.held_by
FROM weir.streams s CROSS JOIN LATERAL weir.retention_dry_run(s.stream) d
WHERE s.state = 'active' ORDER BY d.events DESC, s.stream;

-- ### Why does a stream not get shorter?

SELECT stream, rule, held_by, reason FROM weir.retention_status WHERE stream = 'nyc/flights';

-- ### Why is a file still there?

SELECT why, count(*) AS files, sum(events) AS events, sum(bytes) AS bytes
FROM weir.why_kept('nyc/flights') GROUP BY why ORDER BY bytes DESC NULLS LAST;

-- ### Who holds back the most?

SELECT reader_group, stream, held_events, held_bytes, timed_out FROM weir.subscribers ORDER BY held_bytes DESC;

-- ### What should somebody look at today?

SELECT stream, reader_group, alert, message FROM weir.retention_alerts ORDER BY at;

-- ### What did retention truncate, and why?

SELECT stream, rule, events, bytes, held_by, lost FROM weir.retention_decisions ORDER BY decided_at;

-- ### Why is the disk full?
--
-- `weir disk` shows the same in a terminal.

SELECT kind, stream, name, bytes > 0 AS some, freed_by FROM weir.disk
WHERE kind <> 'database' ORDER BY kind, stream, name;

-- ### Which streams keep everything for ever?
--
-- Those whose retention is keep, which is the default, and those of consumed that have neither a maximum nor a
-- subscriber. A sealed stream keeps everything until it is deleted.

SELECT c.stream FROM weir.stream_configuration c JOIN weir.stream_state s USING (stream)
WHERE s.state = 'sealed' OR c.retention = 'keep'
   OR num_nulls(c.retain_max_age, c.retain_max_bytes) = 2
  AND NOT EXISTS (SELECT FROM weir.subscribers u WHERE u.stream = c.stream) ORDER BY 1;

-- ## How much, and how fast

-- ### How fast does a stream grow?
--
-- Events and bytes of each append; group them by day (`date_trunc('day', clock)`) or month.

SELECT batch_id, events, bytes, files, sum(events) OVER (ORDER BY clock) AS so_far
FROM weir.transactions WHERE stream = 'nyc/flights' AND state = 'committed' ORDER BY clock;

-- ### How many events came in the last hour?

SELECT weir.count_between('nyc/flights', now() - interval '1 hour') AS events;

-- ### Which streams get nothing any more?

SELECT s.stream FROM weir.streams s
WHERE s.state = 'active' AND s.created_at < now() - interval '1 day' AND NOT EXISTS (
    SELECT FROM weir.transactions t
    WHERE t.stream = s.stream AND t.clock > now() - interval '1 day');

-- ### Are the files too small?
--
-- Spark pays for each file. Append less often, or keep fewer segments.

SELECT stream, count(*) AS files, avg(bytes)::bigint AS bytes_a_file, avg(events)::bigint AS events_a_file
FROM weir.data_files GROUP BY stream;

-- ### Where does a stream begin and end?

SELECT stream, head, tail FROM weir.streams WHERE stream = 'nyc/flights';

-- ## Hot segments and keys

-- ### Which segments are hot?
--
-- By the rule of `weir_scale`, for streams that scale by load; with what they get, over the third
-- of the four windows.

SELECT s.stream, segment, w.verdict, r.target_rate, round(r.rate_10_min::numeric, 1) AS rate
FROM weir.streams s CROSS JOIN LATERAL weir.why_scale(s.stream) w
JOIN weir.segment_rates r USING (stream, segment)
WHERE r.target_rate IS NOT NULL ORDER BY r.rate_10_min DESC NULLS LAST;

-- ### Which keys can no split help?

SELECT stream, routing_key, segment, share FROM weir.hot_keys ORDER BY share DESC;

-- ### Which segment holds the most?

SELECT segment, events, bytes, active FROM weir.segments
WHERE stream = 'nyc/flights' ORDER BY events DESC, segment_id LIMIT 3;

-- ### What would weir_scale do now?

SELECT s.stream, d.action, d.rule, d.segments, d.pieces
FROM weir.streams s CROSS JOIN LATERAL weir.scale_dry_run(s.stream) d ORDER BY 1;

-- ### Why was a segment split or merged?

SELECT epoch, cause, reason, sealed_segments, created_segments FROM weir.epoch_transition
WHERE stream = 'nyc/flights' AND cause <> 'create' ORDER BY epoch;

-- ## Which run did that

-- ### Which run wrote this event?
--
-- The event at offset 100 of segment 4.4; and which files it read.

SELECT run, committed_at IS NOT NULL AS committed, kind, name FROM weir.lineage(
    'nyc/flights', depth => 1, segment => '4.4', from_offset => 100, to_offset => 101)
WHERE side = 'read';

-- ### What was made of these events?
--
-- Every consumer, and every consumer of its results, with the version of its function.

SELECT step, run, reader_group, function_version, kind, name
FROM weir.lineage('nyc/flights', 'down', segment => '2.1') WHERE side = 'wrote';

-- ### What did a run read and write?

SELECT side, kind, name, name_segment, name_from, name_to
FROM weir.lineage('delays_by_carrier/winter/read/0', depth => 0);

-- ### Was this file appended, and by which run?

SELECT i.stream, i.state, t.source, t.events FROM weir.input_files i
JOIN weir.transactions t USING (stream, transaction_number) WHERE i.path = 'flights/2013-02.csv';

-- ### Which Parquet folders may I read?
--
-- Others in the output folder belong to attempts that were never committed.

SELECT reader_group, output, path FROM weir.parquet_outputs ORDER BY committed_at;

-- ### Which appends are under way?

SELECT stream, transaction_number, attempt, source FROM weir.active_transaction ORDER BY 1, 2;

-- ### What did it cost?
--
-- The time that the jobs of the last month took, in seconds of one driver each.

SELECT job, count(*) AS runs, count(*) FILTER (WHERE state = 'failed') AS failed,
       sum(extract(epoch FROM ended_at - started_at))::integer AS seconds
FROM weir.job_runs WHERE started_at > now() - interval '30 days' GROUP BY job ORDER BY seconds DESC;

-- ### Which jobs failed or were killed, and why?

SELECT dag_id, run_id, try_number, state, error FROM weir.job_runs WHERE state IN ('failed', 'killed')
ORDER BY started_at DESC;

-- ### What runs now, and how far is it?

SELECT dag_id, run_id, job, state, progress FROM weir.job_runs WHERE ended_at IS NULL ORDER BY started_at;

-- ### Who changed a stream or a group by hand?

SELECT request_id, operation, object FROM weir.requests ORDER BY ended_at, request_id LIMIT 5;
