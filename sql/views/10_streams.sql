-- A condition on a column of a view uses an index if the column is a column of the table, or the expression of an
-- index (tests/sql/test_view_cost.py has the usual questions). Of a deleted stream only its row in stream is left,
-- so that tables with a column stream_name need no join to check the state.
CREATE OR REPLACE VIEW weir.streams AS
SELECT s.stream_name AS stream, s.state, s.created_at, s.routing_key, s.on_missing_key,
       s.on_bad_rows, s.retention, s.current_epoch, s.head, weir_internal.tail_cut(s.stream_id) AS tail,
       weir_internal.clock_time(s.last_clock) AS last_clock,
       tail_size.events + (SELECT coalesce(sum(h.events), 0) FROM weir_internal.hole h
           WHERE h.stream_id = s.stream_id)::bigint AS events_appended,
       tail_size.events - head_size.events AS events_retained,
       tail_size.bytes - head_size.bytes AS bytes_retained, s.stream_id, s.owner
FROM weir_internal.stream s
CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, weir_internal.tail_cut(s.stream_id)) tail_size
CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, s.head) head_size
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.streams IS 'Each stream with its configuration, head, tail and sizes.';
COMMENT ON COLUMN weir.streams.state IS 'active or sealed.';
COMMENT ON COLUMN weir.streams.tail IS 'The cut after the last event: where the next events are appended.';
COMMENT ON COLUMN weir.streams.last_clock IS 'The time of its last commit, scale, roll or seal, or the last one that was closed, if that is later. Every later commit gets a later one.';
COMMENT ON COLUMN weir.streams.events_appended IS 'How many events were appended since it was created.';
COMMENT ON COLUMN weir.streams.events_retained IS 'How many events are between head and tail, without those that were erased.';
COMMENT ON COLUMN weir.streams.bytes_retained IS 'Their bytes, as first committed.';

CREATE OR REPLACE VIEW weir.stream_columns AS
SELECT s.stream_name AS stream, v.version, f.position, f.field ->> 'name' AS name,
       coalesce(f.field ->> 'stored', f.field ->> 'name') AS stored_name, f.field -> 'type' AS type,
       f.field ->> 'default' AS default_value,
       CASE WHEN v.version = 1 THEN NULL WHEN b.field IS NULL THEN 'added'
            ELSE nullif(concat_ws(', ',
                CASE WHEN b.field ->> 'name' <> f.field ->> 'name' THEN 'renamed from ' || (b.field ->> 'name') END,
                CASE WHEN b.field -> 'type' <> f.field -> 'type' THEN 'widened' END), '') END AS change,
       v.version = s.schema_version AS newest, v.created_at
FROM weir_internal.stream s
JOIN weir_internal.stream_schema v USING (stream_id)
CROSS JOIN LATERAL jsonb_array_elements(v.fields) WITH ORDINALITY AS f (field, position)
LEFT JOIN LATERAL (
    SELECT o.field FROM weir_internal.stream_schema w
    CROSS JOIN LATERAL jsonb_array_elements(w.fields) AS o (field)
    WHERE w.stream_id = v.stream_id AND w.version = v.version - 1
      AND coalesce(o.field ->> 'stored', o.field ->> 'name') = coalesce(f.field ->> 'stored', f.field ->> 'name')) b
    ON true
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.stream_columns IS 'The columns of each stream in each version of its schema. A column that is in one version and not in the next was dropped.';
COMMENT ON COLUMN weir.stream_columns.version IS 'The version of the schema: 1, 2, 3 ...';
COMMENT ON COLUMN weir.stream_columns.position IS 'Its place among the columns of the version: 1, 2 ...';
COMMENT ON COLUMN weir.stream_columns.name IS 'What the version calls it.';
COMMENT ON COLUMN weir.stream_columns.stored_name IS 'Its name in files, the same in all versions.';
COMMENT ON COLUMN weir.stream_columns.type IS 'Its type, as Spark writes types in JSON.';
COMMENT ON COLUMN weir.stream_columns.default_value IS 'What it is in events whose append did not have it; null if that is null.';
COMMENT ON COLUMN weir.stream_columns.change IS 'What is new of it in this version: added, renamed from ..., widened; null if nothing is.';
COMMENT ON COLUMN weir.stream_columns.newest IS 'Whether this is the newest version.';
COMMENT ON COLUMN weir.stream_columns.created_at IS 'When the version was made.';

CREATE OR REPLACE VIEW weir.epochs AS
SELECT e.stream_name AS stream, e.epoch, e.reference_epoch, e.cause,
       weir_internal.clock_time(e.created_at) AS created_at, e.splits, e.merges, e.sealed_events,
       e.sealed_bytes, e.request_id
FROM weir_internal.epoch e;
COMMENT ON VIEW weir.epochs IS 'The epochs of each stream, and the operation that created each.';

CREATE OR REPLACE VIEW weir.segments AS
SELECT g.stream_name AS stream, weir_internal.segment_name(g.segment_id) AS segment, g.key_low,
       g.key_high, g.creation_epoch, g.sealed_epoch, coalesce(t.tail_offset, g.events) AS events,
       coalesce(t.tail_bytes, g.bytes) AS bytes,
       g.sealed_epoch IS NULL AND (
           SELECT s.state = 'active' FROM weir_internal.stream s WHERE s.stream_id = g.stream_id) AS active,
       g.segment_id
FROM weir_internal.segment g
LEFT JOIN weir_internal.segment_tail t USING (stream_id, segment_id);
COMMENT ON VIEW weir.segments IS 'All segments, with their key ranges, epochs and sizes.';
COMMENT ON COLUMN weir.segments.events IS 'How many events were ever appended to it; also the next offset, as long as it is active.';
COMMENT ON COLUMN weir.segments.bytes IS 'Their bytes, as first committed.';
COMMENT ON COLUMN weir.segments.active IS 'Whether events can be appended to it. A sealed stream has no active segment.';
COMMENT ON COLUMN weir.segments.segment_id IS 'creation epoch << 32 | number.';

CREATE OR REPLACE VIEW weir.transactions AS
SELECT t.stream_name AS stream, t.transaction_number, t.state, t.attempt, t.epoch,
       t.writer_id, t.batch_id, t.source, t.opened_at, t.lease_until, t.ended_at,
       weir_internal.clock_time(t.clock) AS clock, t.events, t.bytes, t.files, t.rejected,
       weir_internal.clock_time(t.min_event_time) AS min_event_time,
       weir_internal.clock_time(t.max_event_time) AS max_event_time, t.untimed, t.late, t.ahead, t.behind,
       weir_internal.stated_time(t.stated_until) AS stated_until,
       weir_internal.clock_time(t.complete_until) AS complete_until
FROM weir_internal.transaction t;
COMMENT ON VIEW weir.transactions IS 'Every append and its outcome.';
COMMENT ON COLUMN weir.transactions.transaction_number IS '1, 2, 3 ... per stream.';
COMMENT ON COLUMN weir.transactions.state IS 'open, committed or aborted.';
COMMENT ON COLUMN weir.transactions.clock IS 'The time of the commit, and so of all its events.';
COMMENT ON COLUMN weir.transactions.min_event_time IS 'The smallest event time of its events; null if none has one.';
COMMENT ON COLUMN weir.transactions.stated_until IS 'The event time that its writer stated with it: everything before has been appended. infinity: the writer appends nothing more.';

CREATE OR REPLACE VIEW weir.input_files AS
SELECT t.stream_name AS stream, i.path, i.bytes, t.transaction_number, t.state
FROM weir_internal.transaction t
JOIN weir_internal.transaction_input i USING (stream_id, transaction_number);
COMMENT ON VIEW weir.input_files IS 'The input files of each append.';
COMMENT ON COLUMN weir.input_files.transaction_number IS 'The transaction that appends the file.';
COMMENT ON COLUMN weir.input_files.state IS 'The state of the transaction: open, committed or aborted.';

CREATE OR REPLACE VIEW weir.data_files AS
SELECT f.stream_name AS stream, weir_internal.segment_name(f.segment_id) AS segment,
       f.start_offset, f.events - f.erased AS events, f.bytes, f.transaction_number, f.path, f.erased
FROM weir_internal.data_file f;
COMMENT ON VIEW weir.data_files IS 'The Parquet files that have the events now.';
COMMENT ON COLUMN weir.data_files.segment IS 'The segment of its events, as number.epoch.';
COMMENT ON COLUMN weir.data_files.events IS 'How many events it has. Its offsets are these and the erased ones.';
COMMENT ON COLUMN weir.data_files.erased IS 'How many of its offsets have no event any more, because it was erased.';
COMMENT ON COLUMN weir.data_files.transaction_number IS 'The append that its events are of; null for a compacted file of several.';

CREATE OR REPLACE VIEW weir.time_indexes AS
SELECT i.stream_name AS stream, weir_internal.segment_name(i.segment_id) AS segment,
       i.start_offset, i.events, i.bytes, weir_internal.clock_time(i.clock) AS clock, i.transaction_number,
       weir_internal.clock_time(i.min_event_time) AS min_event_time,
       weir_internal.clock_time(i.max_event_time) AS max_event_time, i.digest
FROM weir_internal.time_index i
UNION ALL
SELECT p.stream_name, weir_internal.segment_name(p.segment_id), u.start_offset, u.events, u.bytes,
       weir_internal.clock_time(u.clock), u.transaction_number, weir_internal.clock_time(u.min_event_time),
       weir_internal.clock_time(u.max_event_time), u.digest
FROM weir_internal.packed_commits p CROSS JOIN LATERAL weir_internal.unpacked(p, 1, p.commits) u;
COMMENT ON VIEW weir.time_indexes IS 'When which offsets of which segment were committed. It unpacks old commits, which takes time where there are very many; the functions weir.commits and weir.commit_of look into few of them.';
COMMENT ON COLUMN weir.time_indexes.clock IS 'The time of the commit.';
COMMENT ON COLUMN weir.time_indexes.min_event_time IS 'The smallest event time of these events; null if none has one.';

CREATE OR REPLACE VIEW weir.retention_set AS
SELECT c.stream_name AS stream, c.recorded_at, weir_internal.clock_time(c.clock) AS clock, c.cut,
       c.events, c.bytes, c.proven_at
FROM weir_internal.stream_cut c;
COMMENT ON VIEW weir.retention_set IS 'The recorded stream cuts from which retention chooses.';

CREATE OR REPLACE VIEW weir.retention_decisions AS
SELECT d.stream_name AS stream, d.decided_at, d.rule, d.reason, d.head, d.bound, d.cut,
       d.held_by, d.truncated_past, d.timed_out, d.lost, d.events, d.bytes
FROM weir_internal.retention_decision d;
COMMENT ON VIEW weir.retention_decisions IS 'What retention decided, and why.';

CREATE OR REPLACE VIEW weir.retention_status AS
SELECT s.stream_name AS stream, d.rule, d.reason, d.decided_at, d.held_by, d.timed_out,
       s.retained_at AS checked_at,
       (SELECT min(u.due_at) FROM weir_internal.retention_queue u WHERE u.stream_id = s.stream_id) AS due_at
FROM weir_internal.stream s
LEFT JOIN LATERAL (
    SELECT r.rule, r.reason, r.decided_at, r.held_by, r.timed_out
    FROM weir_internal.retention_decision r WHERE r.stream_id = s.stream_id
    ORDER BY r.decided_at DESC LIMIT 1) d ON true
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.retention_status IS 'Why each stream has its present length: the last decision, and when the next one is due.';
COMMENT ON COLUMN weir.retention_status.checked_at IS 'When retention last decided about it; a decision that repeats the one before is not recorded.';
COMMENT ON COLUMN weir.retention_status.due_at IS 'When retention will decide about it again at the latest; null: only once something changes.';

CREATE OR REPLACE VIEW weir.truncations AS
SELECT t.stream_name AS stream, t.truncated_at, t.rule, t.reason, t.events, t.bytes, t.head, t.lost, t.request_id,
       t.number, t.files, t.subscribers
FROM weir_internal.truncation t;
COMMENT ON VIEW weir.truncations IS 'What was truncated, when and why, by retention or by hand, and who had read it: a receipt per truncation, kept as long as the stream.';

CREATE OR REPLACE VIEW weir.receipts AS
SELECT t.stream_name AS stream, weir_internal.segment_name(r.segment_id) AS segment, r.from_offset, r.to_offset, t.number,
       t.truncated_at, t.rule, t.reason, t.subscribers
FROM weir_internal.truncation t JOIN weir_internal.truncated_range r USING (stream_id, number);
COMMENT ON COLUMN weir.receipts.number IS 'The truncation, as in weir.truncations.';
COMMENT ON VIEW weir.receipts IS 'Which offsets each truncation took. A file lay below the head, and was deleted, if all its offsets are in receipts.';

CREATE OR REPLACE VIEW weir.garbage_files AS
SELECT g.root, g.path, s.stream_name AS stream, g.reason, g.bytes, g.garbage_since
FROM weir_internal.garbage g LEFT JOIN weir_internal.stream s USING (stream_id);
COMMENT ON VIEW weir.garbage_files IS 'Files that nothing refers to any more and that a sweep will delete: for the first time, or once more (swept).';

CREATE OR REPLACE VIEW weir.job_runs AS
SELECT j.dag_id, j.run_id, j.task_id, j.map_index, j.try_number, j.job, j.arguments, s.state, j.started_at,
       j.updated_at, CASE WHEN s.state IN ('succeeded', 'failed', 'killed') THEN j.updated_at END AS ended_at,
       j.progress, j.report, j.error, j.started_by
FROM weir_internal.job_run j
CROSS JOIN LATERAL (SELECT CASE
    WHEN weir_internal.run_is_stuck(j.state, j.updated_at) THEN 'killed'
    ELSE j.state END AS state) s;
COMMENT ON VIEW weir.job_runs IS 'What each job did.';
COMMENT ON COLUMN weir.job_runs.state IS 'submitted, running, succeeded, failed or killed; killed is also a job that has shown no sign of life for two minutes.';
COMMENT ON COLUMN weir.job_runs.ended_at IS 'When it succeeded or failed, or, if it was killed, its last sign of life; null while it runs.';

CREATE OR REPLACE VIEW weir.requests AS
SELECT r.request_id, r.operation, r.object, r.result, r.ended_at
FROM weir_internal.request r;
COMMENT ON VIEW weir.requests IS 'Every request that changed something (scale, update, truncate, seal ...), with its result.';
