-- What exists of what is declared.
-- import: from weir.model.schema import Field
-- fragments: controller/stream.sql

-- name: streams -> many StreamState
-- Return streams of these names, and those that these groups read.
-- row: A stream: its settings, and its columns as Spark's JSON fields.
-- null: retain_min_age, retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every
-- null: target_rate, scale_factor, max_segments, event_time, owner, fields, dropped
-- type: fields = list[Field]
SELECT stream_name, state, {settings}, fields, dropped
FROM stream LEFT JOIN (SELECT stream_id, version AS schema_version, fields, dropped
    FROM stream_schema) c USING (stream_id, schema_version)
WHERE state <> 'deleted' AND (stream_name = ANY(:names) OR stream_id IN (
    SELECT r.stream_id FROM reader_group_stream r JOIN reader_group g USING (group_id)
    WHERE g.name = ANY(:groups)))

-- name: groups -> many GroupState
-- Return groups, each with its streams and the stream, keys and label of each pin.
-- row: A reader group.
-- null: time_out, max_ahead, owner, consumer
-- type: consumer = dict[str, object]
-- type: pins = list[tuple[str, float, float, str]]
SELECT g.name, g.subscriber, g.on_gap, g.release, g.time_out, g.max_outstanding, g.aligned,
    g.max_ahead, g.owner, g.subject, g.consumer,
    ARRAY(SELECT s.stream_name FROM reader_group_stream r JOIN stream s USING (stream_id)
        WHERE r.group_id = g.group_id) AS streams,
    ARRAY(SELECT jsonb_build_array(s.stream_name, p.key_low, p.key_high, p.label)
        FROM reader_group_pin p JOIN stream s USING (stream_id)
        WHERE p.group_id = g.group_id) AS pins
FROM reader_group g WHERE g.name = ANY(:names)
