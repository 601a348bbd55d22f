CREATE OR REPLACE VIEW weir.completeness AS
SELECT s.stream_name AS stream, s.event_time, weir_internal.clock_time(s.complete_until) AS complete_until,
       weir_internal.clock_time(s.newest_event_time) AS newest_event_time, s.late_events,
       w.writers, w.held_by, s.stream_id, s.ahead_events, s.behind_events
FROM weir_internal.stream s
CROSS JOIN LATERAL (
    SELECT count(*) AS writers, (array_agg(o.writer_id ORDER BY o.complete_until, o.writer_id))[1] AS held_by
    FROM weir_internal.stream_writer o
    WHERE o.stream_id = s.stream_id AND o.complete_until < 9223372036854775807) w
WHERE s.state <> 'deleted' AND s.event_time IS NOT NULL;
COMMENT ON VIEW weir.completeness IS 'Of each stream with an event time: up to which event time it is complete, as its writers state, and up to which events have arrived.';
COMMENT ON COLUMN weir.completeness.complete_until IS 'Every event before this event time has arrived, but for late ones, as the writers state; null if none has. It decreases only if a person takes back what they stated, not if events are truncated.';
COMMENT ON COLUMN weir.completeness.ahead_events IS 'How many events were later than now when they were committed, by more than event_time_ahead: the clocks of who made them are wrong.';
COMMENT ON COLUMN weir.completeness.behind_events IS 'How many events were earlier than what the stream was complete to, by more than event_time_back.';
COMMENT ON COLUMN weir.completeness.writers IS 'How many writers have stated a time and append more.';
COMMENT ON COLUMN weir.completeness.newest_event_time IS 'The largest event time that has arrived.';
COMMENT ON COLUMN weir.completeness.held_by IS 'The writer that has stated the earliest time: the stream is complete to that.';

CREATE OR REPLACE VIEW weir.group_completeness AS
SELECT g.name AS reader_group, s.stream_name AS stream, weir_internal.clock_time(r.complete_until) AS complete_until,
       weir_internal.clock_time(r.newest_event_time) AS newest_event_time,
       weir_internal.clock_time(s.complete_until) AS stream_complete_until, s.stream_id
FROM weir_internal.reader_group_stream gs
JOIN weir_internal.reader_group g USING (group_id)
JOIN weir_internal.stream s USING (stream_id)
CROSS JOIN LATERAL weir_internal.complete_before(s,
    weir_internal.unread_clock(gs.group_id, gs.stream_id, '[]')) r
WHERE s.state <> 'deleted' AND s.event_time IS NOT NULL;
COMMENT ON VIEW weir.group_completeness IS 'Of each group and each of its streams with an event time: up to which event time the group has read everything.';
COMMENT ON COLUMN weir.group_completeness.complete_until IS 'The group has read every event before this event time, but for late ones, as the writers state; null if they have not. Events that it has passed without reading them hold it back.';
COMMENT ON COLUMN weir.group_completeness.newest_event_time IS 'The largest event time in the commits that the group has read entirely.';
COMMENT ON COLUMN weir.group_completeness.stream_complete_until IS 'The event time that the stream is complete to now.';
