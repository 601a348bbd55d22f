CREATE OR REPLACE VIEW weir.positions AS
SELECT g.name AS reader_group, s.stream_name AS stream,
       weir_internal.segment_name(p.segment_id) AS segment, n.key_low, n.key_high, p.state, p.next_offset,
       CASE WHEN p.state = 'completed' THEN 0
            ELSE greatest(coalesce(t.tail_offset, n.events) - greatest(p.next_offset, CASE
                WHEN jsonb_typeof(s.head -> weir_internal.segment_name(p.segment_id)) = 'number'
                THEN (s.head ->> weir_internal.segment_name(p.segment_id))::bigint
                WHEN n.sealed_epoch IS NOT NULL AND NOT s.head ? weir_internal.segment_name(p.segment_id) AND NOT EXISTS (  -- then all of it lies before the head
                    SELECT FROM weir_internal.cut_entries(s.head) h JOIN weir_internal.segment f USING (segment_id)
                    WHERE f.stream_id = p.stream_id AND f.creation_epoch < n.creation_epoch
                      AND f.key_low < n.key_high AND f.key_high > n.key_low) THEN n.events
                END, 0), 0)
       END AS unread_events,
       p.reader_id
FROM weir_internal.reader_group_segment p
JOIN weir_internal.reader_group g USING (group_id)
JOIN weir_internal.stream s USING (stream_id)
JOIN weir_internal.segment n USING (stream_id, segment_id)
LEFT JOIN weir_internal.segment_tail t USING (stream_id, segment_id);
COMMENT ON VIEW weir.positions IS 'The position of each group in each segment, the reader that owns the segment, and how much there is to read.';
COMMENT ON COLUMN weir.positions.unread_events IS 'From the position (or from the head, if that is later) to the present end of this segment; its successors are not included.';

-- key_space is the weight that the assignment of segments uses.
CREATE OR REPLACE VIEW weir.assignment AS
SELECT a.*, b.batch_id
FROM (
    SELECT reader_group, reader_id, count(*) AS segments, sum(key_high - key_low) AS key_space,
           sum(unread_events)::bigint AS unread_events
    FROM weir.positions WHERE state IN ('assigned', 'unassigned')
    GROUP BY reader_group, reader_id) a
LEFT JOIN (weir_internal.reader_group g JOIN weir_internal.reader_batch b ON b.group_id = g.group_id AND b.state = 'open')
    ON g.name = a.reader_group AND b.reader_id = a.reader_id;
COMMENT ON VIEW weir.assignment IS 'How the segments of each group are assigned: one row per reader that owns segments, and one without a reader for the segments that no reader owns.';
COMMENT ON COLUMN weir.assignment.reader_id IS 'The reader that owns them; null: no reader owns them yet.';
COMMENT ON COLUMN weir.assignment.segments IS 'How many segments they are.';
COMMENT ON COLUMN weir.assignment.key_space IS 'Their part of the key space; the whole key space of each stream counts as 1.';
COMMENT ON COLUMN weir.assignment.unread_events IS 'Events to read in them, including those of an open batch.';
COMMENT ON COLUMN weir.assignment.batch_id IS 'The open batch of this reader.';

CREATE OR REPLACE VIEW weir.readers AS
SELECT g.name AS reader_group, r.reader_id, r.token, r.joined_at, r.lease_until,
       r.lease_until < clock_timestamp() AS lease_expired, coalesce(a.segments, 0) AS segments,
       coalesce(a.unread_events, 0) AS unread_events, a.batch_id,
       (SELECT t.rate FROM weir_internal.read_rates(g.name) t WHERE t.reader_id = r.reader_id) AS read_rate
FROM weir_internal.reader r
JOIN weir_internal.reader_group g USING (group_id)
LEFT JOIN weir.assignment a ON a.reader_group = g.name AND a.reader_id = r.reader_id;
COMMENT ON VIEW weir.readers IS 'The readers that have joined, and how much each owns.';
COMMENT ON COLUMN weir.readers.reader_id IS 'DAG, run, task and map index: equal in all retries of a task.';
COMMENT ON COLUMN weir.readers.lease_expired IS 'Whether its lease has expired, so that others may take over, but not within the first reader_lease after the start of Postgres.';
COMMENT ON COLUMN weir.readers.segments IS 'How many segments it owns.';
COMMENT ON COLUMN weir.readers.batch_id IS 'The open batch that it reads.';
COMMENT ON COLUMN weir.readers.read_rate IS 'Events per second of its recent large batches, by which segments are assigned; null if there are none yet.';

-- Lag is the clock of the newest event minus that of the oldest unread event; zero if nothing is unread. Events
-- below the head cannot be read any more: they are lost, not unread.
CREATE OR REPLACE VIEW weir.lag AS
SELECT g.name AS reader_group, s.stream_name AS stream, p.cut AS position,
       u.events AS unread_events, u.bytes AS unread_bytes,
       gs.lost_events + CASE WHEN u.readable = p.cut THEN 0 ELSE
           (SELECT b.events FROM weir_internal.unread_from(gs.stream_id, p.cut, p.cut, p.last) b) - u.events
       END AS lost_events,
       CASE WHEN u.events = 0 THEN interval '0' ELSE
           (weir_internal.newest_clock(gs.stream_id) - u.oldest)
           * interval '1 microsecond'
       END AS lag,
       CASE WHEN u.events > 0 THEN weir_internal.clock_time(u.oldest) END AS behind_since,
       CASE WHEN u.events > 0
            THEN greatest(interval '0', statement_timestamp() - weir_internal.clock_time(u.oldest))
            ELSE interval '0' END AS waiting,
       p.last AS end_cut, p.last IS NOT NULL AND u.events = 0 AS at_end, gs.stream_id
FROM weir_internal.reader_group_stream gs
JOIN weir_internal.reader_group g USING (group_id)
JOIN weir_internal.stream s USING (stream_id)
CROSS JOIN LATERAL (
    SELECT weir_internal.group_cut(gs.group_id, gs.stream_id) AS cut,
           CASE WHEN s.state = 'active' THEN gs.end_cut
                ELSE coalesce(gs.end_cut, weir_internal.tail_cut(gs.stream_id)) END AS last OFFSET 0) p
CROSS JOIN LATERAL weir_internal.unread_from(gs.stream_id, p.cut, s.head, p.last) u
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.lag IS 'What each group has not read yet of each stream (events, bytes and time), and what it lost.';
COMMENT ON COLUMN weir.lag.position IS 'The cut where it continues to read: everything before it is committed.';
COMMENT ON COLUMN weir.lag.unread_events IS 'Events from its position (or from the head, if that is later) to the tail, or to the end of the group.';
COMMENT ON COLUMN weir.lag.unread_bytes IS 'Their bytes, as first committed.';
COMMENT ON COLUMN weir.lag.lost_events IS 'Events that were truncated before the group read them.';
COMMENT ON COLUMN weir.lag.lag IS 'How much older the oldest unread event is than the newest event of the stream. 0 if nothing is unread, or if everything unread was appended at once. It does not grow while nothing is appended.';
COMMENT ON COLUMN weir.lag.behind_since IS 'When the oldest unread event was committed; null if nothing is unread.';
COMMENT ON COLUMN weir.lag.waiting IS 'How long ago the oldest unread event was committed; 0 if nothing is unread.';
COMMENT ON COLUMN weir.lag.end_cut IS 'Where the group stops for good: its own end, or the tail of a sealed stream; null if it has no end.';
COMMENT ON COLUMN weir.lag.stream_id IS 'The id of this life of the stream.';
COMMENT ON COLUMN weir.lag.at_end IS 'Whether it has read everything of this stream that it will ever have to read.';

-- Semantics 15: unread bytes are counted from the last checkpoint, to which a group can go back, so reading alone
-- does not lower them. They are counted from the position if the group has no checkpoint, or was reset to a
-- position before it.
CREATE OR REPLACE VIEW weir.unread AS
SELECT l.reader_group, l.stream, c.name AS checkpoint,
       greatest(l.unread_events, u.events) AS events_since_checkpoint,
       greatest(l.unread_bytes, u.bytes) AS bytes_since_checkpoint,
       l.unread_events AS events_since_position, l.unread_bytes AS bytes_since_position
FROM weir.lag l
JOIN weir_internal.reader_group g ON g.name = l.reader_group
JOIN weir_internal.stream s USING (stream_id)
LEFT JOIN LATERAL (
    SELECT * FROM weir_internal.last_checkpoint(g.group_id) n WHERE n.cuts ? l.stream_id::text) c ON true
LEFT JOIN LATERAL weir_internal.unread_from(
    l.stream_id, c.cuts -> l.stream_id::text, s.head, l.end_cut) u ON true;
COMMENT ON VIEW weir.unread IS 'How much each group has to read, counted from its last checkpoint and from its position.';
COMMENT ON COLUMN weir.unread.checkpoint IS 'Its newest complete checkpoint; null if it has none: then both are counted from its position.';
COMMENT ON COLUMN weir.unread.events_since_checkpoint IS 'Events from the checkpoint (or from the head, if that is later) to the tail, or to the end of the group.';
COMMENT ON COLUMN weir.unread.bytes_since_checkpoint IS 'Their bytes, as first committed.';
COMMENT ON COLUMN weir.unread.events_since_position IS 'Events from its position: events of committed batches are not included.';
COMMENT ON COLUMN weir.unread.bytes_since_position IS 'Their bytes, as first committed.';

-- The read rate counts only the time in which a batch was open: a group that has caught up waits most of the hour,
-- and that says nothing about how fast it reads.
CREATE OR REPLACE VIEW weir.catch_up AS
SELECT g.name AS reader_group, l.unread_events, l.unread_bytes, l.lag, l.waiting,
       w.append_rate, r.read_rate,
       CASE WHEN l.unread_events = 0 THEN interval '0'
            WHEN r.read_rate > w.append_rate
            THEN l.unread_events / (r.read_rate - w.append_rate) * interval '1 second'
       END AS catch_up, l.behind_since
FROM weir_internal.reader_group g
JOIN (
    SELECT reader_group, sum(unread_events)::bigint AS unread_events,
           sum(unread_bytes)::bigint AS unread_bytes, max(lag) AS lag,
           max(waiting) AS waiting, min(behind_since) AS behind_since
    FROM weir.lag GROUP BY reader_group) l ON l.reader_group = g.name
CROSS JOIN LATERAL (
    SELECT coalesce(sum(t.events / extract(epoch FROM least(
               interval '1 hour', statement_timestamp() - s.created_at))), 0)::double precision
           AS append_rate
    FROM weir_internal.reader_group_stream gs
    JOIN weir_internal.stream s ON s.stream_id = gs.stream_id AND s.state = 'active' AND gs.end_cut IS NULL
    JOIN weir_internal.transaction t ON t.stream_id = s.stream_id
        AND t.stream_name = s.stream_name
        AND weir_internal.clock_time(t.clock) > statement_timestamp() - interval '1 hour'
    WHERE gs.group_id = g.group_id) w
CROSS JOIN LATERAL (
    SELECT max(b.events) / nullif(extract(epoch FROM sum(upper(busy) - lower(busy))), 0)
           ::double precision AS read_rate
    FROM (SELECT sum(b.events)::double precision AS events,
                 range_agg(tstzrange(least(b.opened_at, b.committed_at), b.committed_at)) AS times
          FROM weir_internal.reader_batch b
          WHERE b.group_name = g.name AND b.state = 'committed'
            AND b.committed_at > statement_timestamp() - interval '1 hour') b
    CROSS JOIN LATERAL unnest(b.times) AS busy) r;
COMMENT ON VIEW weir.catch_up IS 'How long each group will take to catch up, if events are appended as in the last hour and its readers read without a pause as fast as in the batches that they committed in it.';
COMMENT ON COLUMN weir.catch_up.unread_events IS 'Events to read in all its streams, as in lag.';
COMMENT ON COLUMN weir.catch_up.unread_bytes IS 'Their bytes, as first committed.';
COMMENT ON COLUMN weir.catch_up.lag IS 'The longest lag of its streams.';
COMMENT ON COLUMN weir.catch_up.waiting IS 'How long ago the oldest unread event of its streams was committed.';
COMMENT ON COLUMN weir.catch_up.behind_since IS 'When it was committed; null if nothing is unread.';
COMMENT ON COLUMN weir.catch_up.append_rate IS 'Events per second appended to its streams in the last hour, without sealed streams and streams that it reads up to an end.';
COMMENT ON COLUMN weir.catch_up.read_rate IS 'Events per second of the batches that were committed in the last hour, over the time in which any of them was open; null without such batches.';
COMMENT ON COLUMN weir.catch_up.catch_up IS '0 if nothing is unread; null if it will not catch up, or has committed nothing in the last hour.';

-- The lag is computed only if all streams of the group have an end; a question for names alone computes nothing.
CREATE OR REPLACE VIEW weir.reader_groups AS
SELECT g.name AS reader_group, g.subscriber, g.release, g.time_out * interval '1 second' AS time_out,
       g.generation, g.on_gap, g.max_outstanding, g.created_at, g.moved_at,
       (SELECT string_agg(s.stream_name || CASE WHEN s.state = 'deleted' THEN ' (deleted)' ELSE '' END,
                          ', ' ORDER BY s.scope, s.name)
        FROM weir_internal.reader_group_stream gs JOIN weir_internal.stream s USING (stream_id)
        WHERE gs.group_id = g.group_id) AS streams,
       (SELECT count(*) FROM weir_internal.reader r WHERE r.group_id = g.group_id) AS readers,
       (SELECT count(*) FROM weir_internal.reader_batch b
        WHERE b.group_id = g.group_id AND b.state = 'open') AS open_batches,
       (SELECT c.name FROM weir_internal.last_checkpoint(g.group_id) c) AS checkpoint,
       (SELECT c.created_at FROM weir_internal.last_checkpoint(g.group_id) c) AS checkpoint_at,
       CASE WHEN EXISTS (
           SELECT FROM weir_internal.reader_group_stream gs JOIN weir_internal.stream s USING (stream_id)
           WHERE gs.group_id = g.group_id AND gs.end_cut IS NULL AND s.state = 'active')
       THEN false
       ELSE coalesce((SELECT bool_and(l.at_end) FROM weir.lag l WHERE l.reader_group = g.name), false)
       END AS at_end, g.aligned, g.max_ahead * interval '1 second' AS max_ahead, g.owner, g.subject
FROM weir_internal.reader_group g;
COMMENT ON VIEW weir.reader_groups IS 'The reader groups, with their configuration.';
COMMENT ON COLUMN weir.reader_groups.time_out IS 'How long a subscriber with unread events may be inactive before retention stops waiting for it; null: retention always waits.';
COMMENT ON COLUMN weir.reader_groups.max_ahead IS 'No batch goes further than this beyond the oldest event that other readers have not read; null: no limit.';
COMMENT ON COLUMN weir.reader_groups.subject IS 'The column of what its consumers write that has the routing keys of what they read; empty: the one of the same name.';
COMMENT ON COLUMN weir.reader_groups.streams IS 'The streams that it reads.';
COMMENT ON COLUMN weir.reader_groups.readers IS 'How many readers have joined it.';
COMMENT ON COLUMN weir.reader_groups.open_batches IS 'How many of its batches are open.';
COMMENT ON COLUMN weir.reader_groups.checkpoint IS 'Its newest complete checkpoint.';
COMMENT ON COLUMN weir.reader_groups.checkpoint_at IS 'When that checkpoint was asked for.';
COMMENT ON COLUMN weir.reader_groups.at_end IS 'Whether it has read everything that it will ever have to read: each stream up to the end of the group, or sealed and read completely.';

CREATE OR REPLACE VIEW weir.batches AS
SELECT b.group_name AS reader_group, b.batch_id, b.state, b.reader_id, b.token, b.attempt, b.events,
       b.bytes, b.opened_at, b.committed_at, b.ended_at, b.outputs, b.bounds, b.rest,
       b.rejected, b.error, b.read_order, b.readers, weir_internal.clock_time(b.up_to) AS up_to,
       b.max_lateness * interval '1 microsecond' AS max_lateness,
       b.p99_lateness * interval '1 microsecond' AS p99_lateness,
       b.hole * interval '1 microsecond' AS hole,
       weir_internal.clock_time(b.complete_until) AS complete_until,
       b.function, b.function_version
FROM weir_internal.reader_batch b;
COMMENT ON VIEW weir.batches IS 'What readers read at once, and its outcome. Old batches are pruned after job_history.';
COMMENT ON COLUMN weir.batches.ended_at IS 'When it was committed, abandoned or split; null while it is open.';
COMMENT ON COLUMN weir.batches.up_to IS 'Of an aligned group: the moment up to which everything is in this batch or was read before; nothing in it is later. Null otherwise.';
COMMENT ON COLUMN weir.batches.max_lateness IS 'By how much its oldest event is older than the newest event of its stream that was read before it; null until it is committed.';
COMMENT ON COLUMN weir.batches.p99_lateness IS 'The same for its events: 99 % of them are at most so late.';
COMMENT ON COLUMN weir.batches.hole IS 'By how much, after its commit, the oldest unread event of a stream was older than the newest one that the group has read of that stream: the most of its streams. 0 if no unread event was older; null until it is committed.';

-- What zero means depends on what was promised. With several readers, one reads older events while another has read
-- newer ones; the settings max_ahead and aligned limit that.
CREATE OR REPLACE VIEW weir.disorder AS
SELECT g.name AS reader_group,
       CASE WHEN b.batches = 0 THEN NULL
            WHEN b.in_write_order AND b.readers = 1 THEN 'write order'
            WHEN b.in_write_order THEN 'write order in the segments of each reader'
            WHEN b.ordered THEN 'write order of each key'
            ELSE 'none' END AS promise,
       g.aligned, g.max_ahead * interval '1 second' AS max_ahead,
       b.batches, b.readers,
       coalesce(b.max_lateness, 0) * interval '1 microsecond' AS max_lateness,
       coalesce(b.p99_lateness, 0) * interval '1 microsecond' AS p99_lateness,
       coalesce(b.hole, 0) * interval '1 microsecond' AS hole
FROM weir_internal.reader_group g
CROSS JOIN LATERAL (
    SELECT count(*) AS batches, max(b.readers) AS readers, bool_and(b.read_order = 'stream') AS in_write_order,
           bool_and(b.read_order <> 'none') AS ordered, max(b.max_lateness) AS max_lateness,
           max(b.p99_lateness) AS p99_lateness, max(b.hole) AS hole
    FROM weir_internal.reader_batch b
    WHERE b.group_name = g.name AND b.state = 'committed'
      AND b.committed_at > statement_timestamp() - interval '1 hour') b;
COMMENT ON VIEW weir.disorder IS 'How far from write order the batches were that each group committed in the last hour. Lateness and hole are counted between batches, by the clocks of commits.';
COMMENT ON COLUMN weir.disorder.promise IS 'The order that was promised to all of them; null without batches. With write order, lateness and hole are 0.';
COMMENT ON COLUMN weir.disorder.max_ahead IS 'The limit that the group sets.';
COMMENT ON COLUMN weir.disorder.batches IS 'How many batches it committed.';
COMMENT ON COLUMN weir.disorder.readers IS 'Among how many readers they were shared at most.';
COMMENT ON COLUMN weir.disorder.max_lateness IS 'The largest lateness of a batch: by how much an event was older than one of its stream that was read before it.';
COMMENT ON COLUMN weir.disorder.p99_lateness IS 'In no batch were more than 1 % of the events later than this.';
COMMENT ON COLUMN weir.disorder.hole IS 'The largest hole that a batch left: by how much an unread event was older than one of its stream that was read.';

CREATE OR REPLACE VIEW weir.waiting_readers AS
SELECT g.name AS reader_group, r.reader_id, 'max_ahead' AS reason, o.reader_id AS waits_for, o.batch_id,
       s.stream_name AS stream, weir_internal.segment_name(o.segment_id) AS segment,
       weir_internal.clock_time(o.clock) AS oldest_unread,
       weir_internal.clock_time(o.clock + g.max_ahead * 1000000) AS may_read_until,
       coalesce(h.lease_until < clock_timestamp(), true) AS lease_expired
FROM weir_internal.reader_group g
JOIN weir_internal.reader r USING (group_id)
CROSS JOIN LATERAL (
    SELECT min(u.clock) AS clock FROM weir_internal.oldest_unread(g.group_id) u
    WHERE u.reader_id = r.reader_id) mine
CROSS JOIN LATERAL (
    SELECT u.*, (SELECT b.batch_id FROM weir_internal.reader_batch b
                 WHERE b.group_id = g.group_id AND b.state = 'open' AND b.reader_id = u.reader_id) AS batch_id
    FROM weir_internal.oldest_unread(g.group_id) u
    WHERE u.reader_id IS DISTINCT FROM r.reader_id ORDER BY u.clock LIMIT 1) o
JOIN weir_internal.stream s ON s.stream_id = o.stream_id
LEFT JOIN weir_internal.reader h ON h.group_id = g.group_id AND h.reader_id = o.reader_id
WHERE g.max_ahead IS NOT NULL AND NOT g.aligned AND mine.clock > o.clock + g.max_ahead * 1000000
  AND NOT EXISTS (SELECT FROM weir_internal.reader_batch b WHERE b.group_id = g.group_id
                  AND b.state = 'open' AND b.reader_id = r.reader_id)
UNION ALL
SELECT g.name, r.reader_id, 'aligned', b.reader_id, b.batch_id, NULL, NULL, NULL, NULL,
       coalesce(h.lease_until < clock_timestamp(), true)
FROM weir_internal.reader_group g
JOIN weir_internal.reader r USING (group_id)
JOIN weir_internal.reader_batch b ON b.group_id = g.group_id AND b.state = 'open' AND b.reader_id <> r.reader_id
LEFT JOIN weir_internal.reader h ON h.group_id = b.group_id AND h.reader_id = b.reader_id
WHERE g.aligned;
COMMENT ON VIEW weir.waiting_readers IS 'The readers that wait because of a setting of their group, and for whom.';
COMMENT ON COLUMN weir.waiting_readers.reader_id IS 'The reader that waits.';
COMMENT ON COLUMN weir.waiting_readers.reason IS 'The setting: max_ahead, or aligned (an aligned group has one batch at a time).';
COMMENT ON COLUMN weir.waiting_readers.waits_for IS 'The reader that owns the oldest unread event, or that has the open batch; null: no reader owns its segment yet.';
COMMENT ON COLUMN weir.waiting_readers.batch_id IS 'The open batch of that reader; null if it has none.';
COMMENT ON COLUMN weir.waiting_readers.stream IS 'The stream of the oldest unread event.';
COMMENT ON COLUMN weir.waiting_readers.segment IS 'Its segment.';
COMMENT ON COLUMN weir.waiting_readers.oldest_unread IS 'When it was committed.';
COMMENT ON COLUMN weir.waiting_readers.may_read_until IS 'The reader may read events that were committed until then.';
COMMENT ON COLUMN weir.waiting_readers.lease_expired IS 'Whether the lease of the other reader has expired, so that its batch and segments can be taken over, but not within the first reader_lease after the start of Postgres.';

CREATE OR REPLACE VIEW weir.open_batches AS
SELECT g.name AS reader_group, b.batch_id, b.reader_id, b.attempt, b.opened_at,
       clock_timestamp() - b.opened_at AS open_for, jsonb_array_length(b.bounds) AS segments,
       b.events, b.bytes, coalesce(r.lease_until < clock_timestamp(), true) AS lease_expired
FROM weir_internal.reader_batch b
JOIN weir_internal.reader_group g USING (group_id)
LEFT JOIN weir_internal.reader r USING (group_id, reader_id)
WHERE b.state = 'open';
COMMENT ON VIEW weir.open_batches IS 'What is being read now: by which reader, since when, how much.';
COMMENT ON COLUMN weir.open_batches.reader_id IS 'The reader that holds it.';
COMMENT ON COLUMN weir.open_batches.opened_at IS 'When the first reader that held it fixed its bounds.';
COMMENT ON COLUMN weir.open_batches.open_for IS 'How long ago its bounds were fixed.';
COMMENT ON COLUMN weir.open_batches.segments IS 'How many segments it reads.';
COMMENT ON COLUMN weir.open_batches.lease_expired IS 'Whether the lease of its reader has expired, so that another reader may take it over, but not within the first reader_lease after the start of Postgres.';

CREATE OR REPLACE VIEW weir.parquet_outputs AS
SELECT o.group_name AS reader_group, o.batch_id, o.committed_at, o.output,
       o.root || '/' || o.path AS path
FROM weir_internal.parquet_output o;
COMMENT ON VIEW weir.parquet_outputs IS 'The Parquet folders that count: exactly one attempt of each batch and output.';
COMMENT ON COLUMN weir.parquet_outputs.output IS 'The name that the job gives to the output.';
COMMENT ON COLUMN weir.parquet_outputs.path IS 'The folder, as Spark opens it.';

CREATE OR REPLACE VIEW weir.checkpoints AS
SELECT g.name AS reader_group, c.name AS checkpoint, c.kind, c.state, c.created_at, c.expires_at,
       c.ended_at, c.released, c.waits_for, s.stream_name AS stream, entry.value AS cut
FROM weir_internal.checkpoint c
JOIN weir_internal.reader_group g USING (group_id)
CROSS JOIN LATERAL jsonb_each(c.cuts) entry
LEFT JOIN weir_internal.stream s ON s.stream_id = entry.key::bigint;
COMMENT ON VIEW weir.checkpoints IS 'The checkpoints of each group, one row per stream.';
COMMENT ON COLUMN weir.checkpoints.checkpoint IS 'Given by a person, or automatic-<clock>.';
COMMENT ON COLUMN weir.checkpoints.cut IS 'The position of the group in the stream at the checkpoint; of a waiting one, the position that it will have.';

CREATE OR REPLACE VIEW weir.checkpoint_blockers AS
SELECT g.name AS reader_group, c.name AS checkpoint, c.created_at, c.expires_at, b.batch_id,
       b.reader_id, b.opened_at, b.events, coalesce(r.lease_until < clock_timestamp(), true) AS lease_expired
FROM weir_internal.checkpoint c
JOIN weir_internal.reader_group g USING (group_id)
JOIN weir_internal.reader_batch b ON b.group_id = c.group_id AND b.state = 'open'
    AND b.batch_id = ANY (c.waits_for)
LEFT JOIN weir_internal.reader r ON r.group_id = b.group_id AND r.reader_id = b.reader_id
WHERE c.state = 'waiting';
COMMENT ON VIEW weir.checkpoint_blockers IS 'The batches that waiting checkpoints wait for: one row per batch that is not committed yet.';
COMMENT ON COLUMN weir.checkpoint_blockers.checkpoint IS 'The checkpoint that waits.';
COMMENT ON COLUMN weir.checkpoint_blockers.created_at IS 'When the checkpoint was asked for.';
COMMENT ON COLUMN weir.checkpoint_blockers.expires_at IS 'When the checkpoint times out.';
COMMENT ON COLUMN weir.checkpoint_blockers.reader_id IS 'The reader that reads the batch.';
COMMENT ON COLUMN weir.checkpoint_blockers.opened_at IS 'When the bounds of the batch were fixed.';
COMMENT ON COLUMN weir.checkpoint_blockers.lease_expired IS 'Whether the lease of its reader has expired, so that another reader may take it over, but not within the first reader_lease after the start of Postgres.';

CREATE OR REPLACE VIEW weir.subscribers AS
SELECT s.stream_name AS stream, g.name AS reader_group, g.release,
       gs.released_cut AS released, gs.released_at, CASE s.retention WHEN 'consumed' THEN held.events ELSE 0 END AS held_events,
       CASE s.retention WHEN 'consumed' THEN held.bytes ELSE 0 END AS held_bytes, g.moved_at AS active_at, t.at AS times_out_at,
       coalesce(t.at <= clock_timestamp(), false) AS timed_out,
       weir_internal.loses_after(gs.group_id, gs.stream_id) AS loses_after
FROM weir_internal.reader_group_stream gs
JOIN weir_internal.reader_group g USING (group_id)
JOIN weir_internal.stream s USING (stream_id)
CROSS JOIN LATERAL weir_internal.unread_from(gs.stream_id, gs.released_cut, s.head, gs.end_cut) held
CROSS JOIN LATERAL (SELECT weir_internal.times_out_at(gs.group_id, gs.stream_id) AS at) t
WHERE g.subscriber AND s.state <> 'deleted';
COMMENT ON VIEW weir.subscribers IS 'The subscribers of each stream: what each has not released, and until when retention waits for it.';
COMMENT ON COLUMN weir.subscribers.released IS 'The events before this cut are released: retention may truncate them.';
COMMENT ON COLUMN weir.subscribers.released_at IS 'When it last released events.';
COMMENT ON COLUMN weir.subscribers.held_events IS 'Events from there (or from the head, if that is later) to the tail, or to the end of the group; 0 where retention is not consumed, and so waits for nobody.';
COMMENT ON COLUMN weir.subscribers.held_bytes IS 'Their bytes, as first committed.';
COMMENT ON COLUMN weir.subscribers.active_at IS 'When its readers last committed a batch, or it was placed or became a subscriber.';
COMMENT ON COLUMN weir.subscribers.times_out_at IS 'When retention will stop waiting for it if its readers do nothing (if it releases manually: if nothing is released); null: never, or not while everything is read (or released).';
COMMENT ON COLUMN weir.subscribers.timed_out IS 'Whether it has timed out, so that retention does not wait for it.';
COMMENT ON COLUMN weir.subscribers.loses_after IS 'When, at the present rates, retention will truncate events that it has not released: those that exceed a maximum and that no minimum keeps; with consumption off, those that no minimum keeps. Null: never.';

-- Of the subscribers that a maximum or their time-out concerns, it looks closely at those that have not released all.
CREATE OR REPLACE VIEW weir.retention_alerts AS
SELECT s.stream_name AS stream, g.name AS reader_group, c.alert, a.at,
       CASE c.alert WHEN 'timed out' THEN format('subscriber %s of stream %s has timed out and holds nothing back; let its '
           'readers run, or delete it', g.name, s.stream_name)
       ELSE format('at the present rates retention will truncate events of stream %s that subscriber %s has not released, from '
           '%s UTC on', s.stream_name, g.name, to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')) END AS message
FROM (
    SELECT 'timed out' AS alert, o.group_id, gs.stream_id, gs.released_cut, interval '0' AS span
    FROM weir_internal.reader_group o JOIN weir_internal.reader_group_stream gs USING (group_id) WHERE o.time_out IS NOT NULL
    UNION ALL
    SELECT 'soon lost', gs.group_id, gs.stream_id, gs.released_cut, weir_internal.warning_time(o.stream_id)
    FROM weir_internal.stream o JOIN weir_internal.reader_group_stream gs USING (stream_id)
    WHERE num_nonnulls(o.retain_max_age, o.retain_max_bytes) > 0) c
JOIN weir_internal.stream s USING (stream_id)
JOIN weir_internal.reader_group g USING (group_id)
CROSS JOIN LATERAL (
    SELECT CASE c.alert WHEN 'timed out' THEN weir_internal.times_out_at(c.group_id, c.stream_id)
           ELSE weir_internal.loses_after(c.group_id, c.stream_id, c.span) END AS at OFFSET 0) a
WHERE s.state <> 'deleted' AND g.subscriber AND (c.alert = 'soon lost' OR s.retention = 'consumed')
  AND EXISTS (SELECT FROM weir_internal.segment_tail t WHERE t.stream_id = c.stream_id
              AND c.released_cut -> weir_internal.segment_name(t.segment_id) IS DISTINCT FROM to_jsonb(t.tail_offset) OFFSET 0)
  AND a.at - c.span < clock_timestamp()
UNION ALL
SELECT s.stream_name, l.key, 'lost', d.decided_at,
       format('subscriber %s lost %s of stream %s (%s)', l.key, weir_internal.counted(l.value::bigint, 'unread event'), s.stream_name, d.reason)
FROM weir_internal.stream s
JOIN weir_internal.retention_decision d USING (stream_id)
CROSS JOIN LATERAL jsonb_each_text(d.lost) l
JOIN weir_internal.reader_group g ON g.name = l.key AND g.created_at < d.decided_at
JOIN weir_internal.reader_group_stream gs USING (group_id, stream_id)
WHERE s.state <> 'deleted' AND d.lost <> '{}' AND d.decided_at > clock_timestamp() - interval '7 days';
COMMENT ON VIEW weir.retention_alerts IS 'What somebody should look at: subscribers that have timed out, that lost events in the last week, or whose unreleased events retention will truncate within a day (or within a fifth of the age limit).';
COMMENT ON COLUMN weir.retention_alerts.alert IS 'timed out; soon lost: it will lose events at the present rates; or lost: it has lost events.';
COMMENT ON COLUMN weir.retention_alerts.at IS 'When it happened, or will happen.';
COMMENT ON COLUMN weir.retention_alerts.message IS 'The alert as a sentence.';

CREATE OR REPLACE VIEW weir.next_retention AS
SELECT * FROM weir.retention_by(statement_timestamp());
COMMENT ON VIEW weir.next_retention IS 'What a run of weir_retention would decide if it began now: the streams of which it may truncate something, how much of each would go, by which rule, and who would lose what. It is the decision of the run itself, without its locks. A page of many streams gives their names: each decision takes milliseconds.';
COMMENT ON COLUMN weir.next_retention.due_at IS 'Since when there is something to decide.';
COMMENT ON COLUMN weir.next_retention.retention IS 'The policy: age, size or consumed. A stream that keeps everything is not here.';
COMMENT ON COLUMN weir.next_retention.rule IS 'The rule that would choose, see docs/retention.md; or why nothing would be truncated.';
COMMENT ON COLUMN weir.next_retention.reason IS 'The same as a sentence.';
COMMENT ON COLUMN weir.next_retention.held_by IS 'The subscribers that hold retention back.';
COMMENT ON COLUMN weir.next_retention.timed_out IS 'The subscribers that it would not wait for, because they have timed out.';
COMMENT ON COLUMN weir.next_retention.events IS 'How many events would be truncated.';
COMMENT ON COLUMN weir.next_retention.bytes IS 'Their bytes, as first committed.';
COMMENT ON COLUMN weir.next_retention.head IS 'The cut at which the stream would begin; null: nothing would be truncated.';
COMMENT ON COLUMN weir.next_retention.bound IS 'Up to which cut all subscribers have released; null: there is none to ask.';
COMMENT ON COLUMN weir.next_retention.lost IS 'Per subscriber that has not read all of it: how many unread events it would lose.';
COMMENT ON COLUMN weir.next_retention.lost_to_others IS 'The same, of groups that are no subscribers.';
