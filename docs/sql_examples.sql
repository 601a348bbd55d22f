-- # What is active now?
--
-- `first_offset` is where the events begin that can still be read.

SELECT segment, key_low, key_high, first_offset FROM weir.active_segments('nyc/flights');

-- # What was active at a time?
--
-- Here: when the first append was committed. All of it has been truncated since, so what is shown
-- is what follows those segments from the head on.

SELECT segment, key_low, key_high, first_offset
FROM weir.active_segments('nyc/flights', (
    SELECT clock FROM weir.transactions WHERE stream = 'nyc/flights' AND batch_id = '2013-01'));

-- The segments as they were, whatever can still be read:

SELECT epoch, segments FROM weir.epoch_record
WHERE stream = 'nyc/flights' AND epoch = weir.epoch_at('nyc/flights', (
    SELECT clock FROM weir.transactions WHERE stream = 'nyc/flights' AND batch_id = '2013-01'));

-- # Who made the epochs, and why?
--
-- A roll is an append that began before a scale and was committed after it: two epochs, copies of
-- earlier ones.

SELECT epoch, cause, request_id, reason, sealed_segments, created_segments
FROM weir.epoch_transition WHERE stream = 'nyc/flights' ORDER BY epoch;

-- # Who else changed the stream by hand?

SELECT request_id, operation, result FROM weir.requests
WHERE object = 'nyc/flights' ORDER BY ended_at;

-- # What was split and merged between two times?
--
-- The first epoch shown is the one that was current at the first time, so nothing is counted for
-- it.

SELECT epoch, cause, splits, merges, segments
FROM weir.scale_metadata('nyc/flights', (
    SELECT created_at FROM weir.epochs WHERE stream = 'nyc/flights' AND epoch = 0), now());

-- # Where does each segment go on?
--
-- A successor may be read when all its predecessors have been.

SELECT g.segment, g.events, s.successor, s.predecessors
FROM weir.segments g CROSS JOIN LATERAL weir.successors(g.stream, g.segment) s
WHERE g.stream = 'nyc/flights' ORDER BY g.segment_id, s.key_low;

-- And where did one come from?

SELECT predecessor, key_low, key_high, successors FROM weir.predecessors('nyc/flights', '4.4');

-- # How much is in the stream?

SELECT stream, state, current_epoch, head, tail, events_appended, events_retained, bytes_retained
FROM weir.streams WHERE stream = 'nyc/flights';

-- Which segments hold it, and is one of them hot?

SELECT segment, key_low, key_high, events, active FROM weir.segments
WHERE stream = 'nyc/flights' AND events > 0 ORDER BY events DESC, segment_id;

-- # What was the tail at a time?
--
-- A time becomes a cut: what was committed after it begins there. Where the head is later, it is
-- the head.

SELECT batch_id, weir.stream_cut_at('nyc/flights', clock) AS cut
FROM weir.transactions WHERE stream = 'nyc/flights' AND state = 'committed' ORDER BY clock;

-- How much of that time was truncated, when, and why? Nothing of this stream was.

SELECT events, rule, reason FROM weir.truncated_between('nyc/flights', '2000-01-01');

-- Was the beginning of the stream read before it went, and by whom?
SELECT reader_group, read, events, lost_events, rule FROM weir.was_read_before_it_went('nyc/flights',
    (SELECT head FROM weir.streams WHERE stream = 'nyc/flights'));

-- A commit that is in flight may still get an earlier clock than a time that has just gone by. To use a time as an
-- address, close it: the answer stays the same, until truncation. A time is in the session's zone unless you write one,
-- such as 2013-06-01 09:00 UTC.

SELECT weir.closed_cut_at('nyc/flights', (
    SELECT clock FROM weir.transactions WHERE stream = 'nyc/flights' AND batch_id = '2013-03')) AS cut;

-- # How many events came before noon, or between two times?
--
-- Those that can still be read: after the first time, and up to the second. One of them may be left out.

SELECT weir.count_between('nyc/flights', until => t.clock) AS till_march,
       weir.count_between('nyc/flights', since => t.clock) AS after_march
FROM weir.transactions t WHERE t.stream = 'nyc/flights' AND t.batch_id = '2013-03';

-- # Which cuts does Weir record?
--
-- The cuts that the platform records by itself (the retention set), and the newest of them at a
-- time:

SELECT cut, events, bytes FROM weir.retention_set WHERE stream = 'nyc/flights' ORDER BY recorded_at;

SELECT cut, events FROM weir.recorded_cut('nyc/flights', (
    SELECT created_at FROM weir.epochs WHERE stream = 'nyc/flights' AND epoch = 4));

-- # What lies between two cuts, and how much?
--
-- From a checkpoint of a group to the tail. `from_offset` is the first to read, `to_offset` the
-- one to stop at.

SELECT b.segment, b.key_low, b.key_high, b.from_offset, b.to_offset
FROM weir.checkpoints c CROSS JOIN LATERAL weir.segments_between(c.stream, c.cut) b
WHERE c.checkpoint = 'after winter';

SELECT z.events, z.bytes
FROM weir.checkpoints c JOIN weir.streams s USING (stream)
CROSS JOIN LATERAL weir.size_between(c.stream, c.cut, s.tail) z
WHERE c.checkpoint = 'after winter';

-- How much lies before a cut, since the stream was created, and in which epochs its segments lived
-- last:

SELECT z.events, z.bytes FROM weir.streams s CROSS JOIN LATERAL weir.size_till(s.stream, s.head) z
WHERE s.stream = 'nyc/flights';

SELECT p.segment, p.epoch FROM weir.streams s CROSS JOIN LATERAL weir.span(s.stream, s.head) p
WHERE s.stream = 'nyc/flights';

-- Two cuts in the wrong order are an error that names the segment:

SELECT * FROM weir.segments_between('nyc/flights', '{"4.4": 500, "1.3": 20}',
                                    '{"4.4": 100, "1.3": 20}');

-- # Where would the next 10,000 events end?
--
-- To read a long history piece by piece: from cut to cut.

SELECT weir.next_cut(stream, head, 10000) AS next FROM weir.streams WHERE stream = 'nyc/flights';

-- # When was an event committed, and by whom?
--
-- The event at offset 100 of segment 1.3.

SELECT t.transaction_number, t.source, t.batch_id, c.start_offset, c.events,
       c.clock = t.clock AS at_its_commit
FROM weir.commit_of('nyc/flights', '1.3', 100) c JOIN weir.transactions t USING (transaction_number)
WHERE t.stream = 'nyc/flights';

-- What else was committed in the minute before?

SELECT i.segment, i.start_offset, i.events, i.transaction_number
FROM weir.commit_of('nyc/flights', '1.3', 100) c
CROSS JOIN LATERAL weir.commits('nyc/flights', c.clock - interval '1 minute', c.clock) i;

-- In which file does it lie?

SELECT path, 100 - start_offset AS row_in_file FROM weir.data_files
WHERE stream = 'nyc/flights' AND segment = '1.3' AND start_offset <= 100
  AND start_offset + events > 100;

-- # What was appended, and what is being written now?

SELECT transaction_number, source, batch_id, state, epoch, events, files, rejected
FROM weir.transactions WHERE stream = 'nyc/flights' ORDER BY transaction_number;

SELECT stream, source, attempt, lease_until < now() AS lease_expired FROM weir.active_transaction;

SELECT path, state FROM weir.input_files WHERE stream = 'nyc/flights' ORDER BY path;

-- # How far behind is each reader group?
--
-- `waiting` is how long its oldest unread event has been waiting, `lag` how much older that is than the
-- newest in the stream, and `behind_since` when it was committed. `at_end`: nothing will ever follow, because the stream is
-- sealed or the group stops there.

SELECT reader_group, position, unread_events, unread_bytes, lost_events,
       waiting > interval '0' AS behind, at_end
FROM weir.lag WHERE stream = 'nyc/flights' ORDER BY reader_group;

-- When will it have caught up? If events go on to be appended as in the last hour, and are read as
-- fast as in the batches of the last hour. Null: never, or nobody has read.

SELECT reader_group, unread_events, read_rate > append_rate AS faster,
       catch_up < interval '1 minute' AS soon
FROM weir.catch_up ORDER BY reader_group;

-- How much would be read again after going back to the last checkpoint?

SELECT reader_group, checkpoint, events_since_checkpoint, events_since_position
FROM weir.unread ORDER BY reader_group;

-- # Who reads what now?

SELECT reader_group, readers, open_batches, checkpoint, at_end FROM weir.reader_groups
ORDER BY reader_group;

SELECT reader_group, reader_id, segments, key_space, unread_events, batch_id
FROM weir.assignment ORDER BY reader_group, reader_id;

SELECT reader_group, segment, key_low, key_high, state, next_offset, unread_events, reader_id
FROM weir.positions ORDER BY reader_group, key_low;

-- What is being read, since when, and by which attempt?

SELECT reader_group, batch_id, reader_id, attempt, segments, events, bytes, lease_expired,
       open_for < interval '1 hour' AS new
FROM weir.open_batches;

-- # Which checkpoints are there, and who do they wait for?

SELECT reader_group, checkpoint, kind, state, released, waits_for, cut
FROM weir.checkpoints ORDER BY created_at;

SELECT checkpoint, batch_id, reader_id, events, lease_expired FROM weir.checkpoint_blockers;

-- # Which Parquet folders of a group count?

SELECT reader_group, batch_id, output, path FROM weir.parquet_outputs ORDER BY batch_id;

-- # How is the load spread over the segments of a stream, and what would weir_scale do?

SELECT segment, rate_2_min, rate_5_min, rate_10_min, rate_20_min, commit_interval
FROM weir.segment_rates WHERE stream = 'nyc/positions' ORDER BY key_low;

SELECT * FROM weir.scale_dry_run('nyc/positions');

SELECT * FROM weir.why_scale('nyc/positions');

-- What was decided, and which keys alone have too much?

SELECT decided_at, action, rule, reason FROM weir.scale_decisions
WHERE stream = 'nyc/positions' ORDER BY decided_at DESC LIMIT 5;

SELECT routing_key, segment, share, rate, since FROM weir.hot_keys WHERE stream = 'nyc/positions';

-- # Which adjunct stores are there, and how far behind are they?

SELECT adjunct_store, stream, version, row_count, layout, events_behind, time_behind, error
FROM weir.adjunct_stores ORDER BY adjunct_store;

-- How were the versions built?

SELECT version, state, kind, cut, events, upserts, deletes, null_keys, row_count, bytes
FROM weir.adjunct_versions WHERE adjunct_store = 'nyc/carriers' ORDER BY version;

-- Which files are the newest version? DuckDB, pandas and Polars read them as they are.

SELECT path, row_count, bytes, key_low, key_high FROM weir.adjunct('nyc/carriers');

-- With which version is a batch read?

SELECT adjunct_store, version, reader_group, batch_id, batch_state FROM weir.adjunct_pins;

-- # Who holds retention back?

SELECT reader_group, truncation_cut,
       (SELECT events FROM weir.size_between(stream, truncation_cut, tail)) AS events_held
FROM weir.stream_subscriber JOIN weir.streams USING (stream) ORDER BY reader_group;

SELECT reader_group, release, held_events, timed_out, loses_after FROM weir.subscribers
ORDER BY reader_group;

SELECT rule, held_by, cut, events, bytes FROM weir.retention_decisions ORDER BY decided_at;

-- What would retention do now?

SELECT rule, reason, held_by, cut, events, lost FROM weir.retention_dry_run('nyc/flights');

SELECT stream, rule, held_by, events FROM weir.retention_by(now() + interval '7 days')
ORDER BY stream;

-- Why is a file still there?

SELECT segment, start_offset, events, why FROM weir.why_kept('nyc/flights')
ORDER BY segment, start_offset;

SELECT cut, span, events_till, size_till FROM weir.truncation_record WHERE stream = 'nyc/flights';

-- # Which run made these events, of what, with which version of which function?
--
-- Of a stream, of some of its events, or of a run (`DAG/run/task`): what it was made of, as many
-- commits back as there are; with direction `down` what was made of it.

SELECT step, run, function, side, kind, name, name_segment, name_from, name_to
FROM weir.lineage('nyc/flights', segment => '4.4', from_offset => 100, to_offset => 101);

SELECT step, run, reader_group, side, kind, name, name_segment, name_from, name_to
FROM weir.lineage('nyc/flights', 'down', segment => '2.1');
