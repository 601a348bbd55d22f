CREATE VIEW weir.reader_groups AS
SELECT g.name AS reader_group, g.subscriber, g.release, g.time_out * interval '1 second' AS time_out,
       g.generation, g.on_gap, g.created_at, g.moved_at,
       (SELECT string_agg(s.scope || '/' || s.name || CASE WHEN s.state = 'deleted' THEN ' (deleted)' ELSE '' END,
                          ', ' ORDER BY s.scope, s.name)
        FROM weir.reader_group_stream gs JOIN weir.stream s USING (stream_id)
        WHERE gs.group_id = g.group_id) AS streams,
       (SELECT count(*) FROM weir.reader r WHERE r.group_id = g.group_id) AS readers
FROM weir.reader_group g;
COMMENT ON VIEW weir.reader_groups IS 'The reader groups.';
COMMENT ON COLUMN weir.reader_groups.time_out IS 'So long without activity of its readers, and with something unread, and a subscriber holds nothing back any more; null: never.';
COMMENT ON COLUMN weir.reader_groups.streams IS 'What it reads.';
COMMENT ON COLUMN weir.reader_groups.readers IS 'How many readers have joined it.';

CREATE VIEW weir.positions AS
SELECT g.name AS reader_group, s.scope || '/' || s.name AS stream,
       weir.segment_name(p.segment_id) AS segment, p.state, p.next_offset, p.reader_id, p.batch_id
FROM weir.reader_group_segment p
JOIN weir.reader_group g USING (group_id)
JOIN weir.stream s USING (stream_id);
COMMENT ON VIEW weir.positions IS 'Where each group stands in each segment.';

-- Lag is the clock of the tail less that of the first unread event: its age at the tail; zero when
-- there is nothing to read. What lies below the head can't be read any more: it is lost, not unread.
CREATE VIEW weir.lag AS
SELECT g.name AS reader_group, s.scope || '/' || s.name AS stream, p.cut AS position,
       tail_size.events - readable_size.events AS unread_events,
       tail_size.bytes - readable_size.bytes AS unread_bytes,
       gs.lost_events + readable_size.events - position_size.events AS lost_events,
       coalesce((s.last_clock - weir.clock_after(gs.stream_id, p.readable))
                * interval '1 microsecond', interval '0') AS lag
FROM weir.reader_group_stream gs
JOIN weir.reader_group g USING (group_id)
JOIN weir.stream s USING (stream_id)
CROSS JOIN LATERAL (
    SELECT c.cut, weir.join_cuts(gs.stream_id, c.cut, s.head) AS readable
    FROM (SELECT weir.group_cut(gs.group_id, gs.stream_id) AS cut) c) p
CROSS JOIN LATERAL weir.size_till(gs.stream_id, p.cut) position_size
CROSS JOIN LATERAL weir.size_till(gs.stream_id, p.readable) readable_size
CROSS JOIN LATERAL weir.size_till(gs.stream_id, weir.tail_cut(gs.stream_id)) tail_size;
COMMENT ON VIEW weir.lag IS 'What each group has not read yet: events, bytes and time; and what it lost.';
COMMENT ON COLUMN weir.lag.position IS 'The cut where it reads on.';
COMMENT ON COLUMN weir.lag.unread_events IS 'From its position (or the head, where that is later) to the tail.';
COMMENT ON COLUMN weir.lag.unread_bytes IS 'Their bytes, as first committed.';
COMMENT ON COLUMN weir.lag.lost_events IS 'Truncated before it had read them.';
COMMENT ON COLUMN weir.lag.lag IS 'How much older the oldest unread event is than the newest in the stream; 0 without any.';

CREATE VIEW weir.readers AS
SELECT g.name AS reader_group, r.reader_id, r.token, r.joined_at, r.lease_until,
       r.lease_until < clock_timestamp() AS lapsed,
       (SELECT count(*) FROM weir.reader_group_segment p
        WHERE p.group_id = r.group_id AND p.reader_id = r.reader_id) AS segments
FROM weir.reader r JOIN weir.reader_group g USING (group_id);
COMMENT ON VIEW weir.readers IS 'The readers that have joined, and how much each owns.';
COMMENT ON COLUMN weir.readers.reader_id IS 'DAG, run, task and map index: the same over retries.';
COMMENT ON COLUMN weir.readers.lapsed IS 'Whether others may take over now.';
COMMENT ON COLUMN weir.readers.segments IS 'How many it owns.';

CREATE VIEW weir.batches AS
SELECT g.name AS reader_group, b.batch_id, b.state, b.reader_id, b.token, b.attempt, b.events,
       b.bytes, b.opened_at, b.committed_at, b.outputs, b.bounds
FROM weir.reader_batch b JOIN weir.reader_group g USING (group_id);
COMMENT ON VIEW weir.batches IS 'What was read at once, and what became of it.';

CREATE VIEW weir.parquet_outputs AS
SELECT g.name AS reader_group, b.batch_id, b.committed_at, o.value ->> 'output' AS output,
       o.value ->> 'path' AS path
FROM weir.reader_batch b
JOIN weir.reader_group g USING (group_id)
CROSS JOIN LATERAL jsonb_array_elements(b.outputs) o
WHERE b.state = 'committed' AND o.value ->> 'kind' = 'parquet';
COMMENT ON VIEW weir.parquet_outputs IS 'The Parquet folders that count: exactly one attempt per batch and output.';
COMMENT ON COLUMN weir.parquet_outputs.output IS 'What the job calls it.';
COMMENT ON COLUMN weir.parquet_outputs.path IS 'The folder, below its output root.';

CREATE VIEW weir.checkpoints AS
SELECT g.name AS reader_group, c.name AS checkpoint, c.kind, c.created_at, c.published,
       s.scope || '/' || s.name AS stream, entry.value AS cut
FROM weir.checkpoint c
JOIN weir.reader_group g USING (group_id)
CROSS JOIN LATERAL jsonb_each(c.cuts) entry
LEFT JOIN weir.stream s ON s.stream_id = entry.key::bigint;
COMMENT ON VIEW weir.checkpoints IS 'The checkpoints of each group, one row per stream.';
COMMENT ON COLUMN weir.checkpoints.checkpoint IS 'Given by a person, or automatic-<clock>.';
COMMENT ON COLUMN weir.checkpoints.cut IS 'Where the group stood in the stream.';

CREATE VIEW weir.subscribers AS
SELECT s.scope || '/' || s.name AS stream, g.name AS reader_group, g.release,
       gs.published_cut AS released, gs.published_at AS released_at, tail_size.events - held.events AS held_events,
       tail_size.bytes - held.bytes AS held_bytes, g.moved_at AS active_at, t.at AS times_out_at,
       coalesce(t.at <= clock_timestamp(), false) AS timed_out,
       weir.stale_after(gs.group_id, gs.stream_id) AS stale_after
FROM weir.reader_group_stream gs
JOIN weir.reader_group g USING (group_id)
JOIN weir.stream s USING (stream_id)
CROSS JOIN LATERAL weir.size_till(gs.stream_id, weir.readable_cut(gs.stream_id, gs.published_cut, s.head)) held
CROSS JOIN LATERAL weir.size_till(gs.stream_id, weir.tail_cut(gs.stream_id)) tail_size
CROSS JOIN LATERAL (SELECT weir.times_out_at(gs.group_id, gs.stream_id) AS at) t
WHERE g.subscriber AND s.state <> 'deleted';
COMMENT ON VIEW weir.subscribers IS 'Who holds what back, and how long still.';
COMMENT ON COLUMN weir.subscribers.released IS 'What lies before it may be deleted as far as this group is concerned.';
COMMENT ON COLUMN weir.subscribers.released_at IS 'When it released that.';
COMMENT ON COLUMN weir.subscribers.held_events IS 'From there (or the head, where that is later) to the tail.';
COMMENT ON COLUMN weir.subscribers.held_bytes IS 'Their bytes, as first committed.';
COMMENT ON COLUMN weir.subscribers.active_at IS 'When its readers last committed a batch, or it was placed or became a subscriber.';
COMMENT ON COLUMN weir.subscribers.times_out_at IS 'When it holds nothing back any more if its readers do nothing; null: never, or not while all is read or they are at work.';
COMMENT ON COLUMN weir.subscribers.timed_out IS 'Whether it holds nothing back now.';
COMMENT ON COLUMN weir.subscribers.stale_after IS 'When, at the present rates, a maximum will delete what it has not released; null: never.';

CREATE VIEW weir.retention_alerts AS
SELECT u.stream, u.reader_group, 'timed out' AS alert, u.times_out_at AS at,
       'subscriber ' || u.reader_group || ' of stream ' || u.stream || ' has timed out and holds nothing back; '
       || 'let its readers run, or delete it' AS message
FROM weir.subscribers u WHERE u.timed_out
UNION ALL
SELECT u.stream, u.reader_group, 'soon stale', u.stale_after,
       'at the present rates a maximum will delete events of stream ' || u.stream || ' that subscriber '
       || u.reader_group || ' has not released, from '
       || to_char(u.stale_after AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') || ' UTC on'
FROM weir.subscribers u JOIN weir.stream s ON s.scope || '/' || s.name = u.stream AND s.state <> 'deleted'
WHERE u.stale_after < clock_timestamp()
      + greatest(interval '1 day', coalesce(s.retain_max_age, 0) * interval '1 second' / 5)
UNION ALL
SELECT d.stream, l.key, 'lost', d.decided_at,
       'subscriber ' || l.key || ' lost ' || l.value || ' unread events of stream ' || d.stream || ' ('
       || d.reason || ')'
FROM weir.retention_decisions d CROSS JOIN LATERAL jsonb_each_text(d.lost) l
WHERE d.decided_at > clock_timestamp() - interval '7 days';
COMMENT ON VIEW weir.retention_alerts IS 'What somebody should look at: subscribers that have timed out, will be overtaken by a maximum within a day (or a fifth of the maximum age), or lost events in the last week.';
COMMENT ON COLUMN weir.retention_alerts.alert IS 'timed out, soon stale or lost.';
COMMENT ON COLUMN weir.retention_alerts.at IS 'When it was or will be.';
COMMENT ON COLUMN weir.retention_alerts.message IS 'The same in words.';
