CREATE VIEW weir.reader_groups AS
SELECT g.name AS reader_group, g.subscriber, g.generation, g.on_gap, g.created_at, g.moved_at,
       (SELECT string_agg(s.scope || '/' || s.name || CASE WHEN s.state = 'deleted' THEN ' (deleted)' ELSE '' END,
                          ', ' ORDER BY s.scope, s.name)
        FROM weir.reader_group_stream gs JOIN weir.stream s USING (stream_id)
        WHERE gs.group_id = g.group_id) AS streams,
       (SELECT count(*) FROM weir.reader r WHERE r.group_id = g.group_id) AS readers
FROM weir.reader_group g;
COMMENT ON VIEW weir.reader_groups IS 'The reader groups.';
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
