-- Streams and their schema.
-- fragments: controller/stream.sql
-- import: from weir.model.schema import Field

-- name: create -> maybe
-- Create a stream with its first epoch, segments and columns (with version 1), unless one of its
-- name exists. Return its id.
WITH made AS (
    INSERT INTO stream (scope, name, {settings}, next_segment_number, schema_version, last_clock,
                        head, event_time_since)
    SELECT :scope, :name, {settings}, l.first + :segments, :version, now_clock(),
           (SELECT jsonb_object_agg(segment_name(l.first + i), 0)
            FROM generate_series(0, :segments - 1) i),
           CASE WHEN event_time IS NOT NULL THEN 0 END
    FROM (SELECT coalesce((SELECT p.next_segment_number FROM stream p
                           WHERE p.scope = :scope AND p.name = :name
                           ORDER BY p.stream_id DESC LIMIT 1), 0) AS first) l
    CROSS JOIN (SELECT {settings} FROM
        jsonb_populate_record(CAST(NULL AS stream), CAST(:settings AS jsonb))) c
    ON CONFLICT (scope, name) WHERE state <> 'deleted' DO NOTHING
    RETURNING stream_id, last_clock, next_segment_number - :segments AS first
), first_epoch AS (
    INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at, cause, reason,
                       request_id)
    SELECT stream_id, :scope || '/' || :name, 0, 0, last_clock, 'create',
           'the stream was created', :request_id
    FROM made
), first_schema AS (
    INSERT INTO stream_schema (stream_id, version, fields, dropped)
    SELECT stream_id, 1, CAST(:fields AS jsonb), CAST(:dropped AS text[])
    FROM made WHERE :version = 1
), first_segments AS (
    INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high)
    SELECT made.stream_id, :scope || '/' || :name, made.first + s.number - 1, s.low, s.high
    FROM made, unnest(CAST(:lows AS double precision[]),
        CAST(:highs AS double precision[])) WITH ORDINALITY AS s (low, high, number)
    RETURNING stream_id, segment_id
), tails AS (
    INSERT INTO segment_tail (stream_id, segment_id)
    SELECT stream_id, segment_id FROM first_segments
), moved AS (
    INSERT INTO capture_queue (stream_id) SELECT stream_id FROM made
), due AS (
    INSERT INTO retention_queue (stream_id, due_at)
    SELECT stream_id, clock_timestamp() FROM made
)
SELECT stream_id FROM made

-- name: next_version -> none
-- Make `fields` a version of the schema, and the newest one.
WITH made AS (
    INSERT INTO stream_schema (stream_id, version, fields, dropped)
    VALUES (:stream_id, :version, CAST(:fields AS jsonb), CAST(:dropped AS text[]))
)
UPDATE stream SET schema_version = :version WHERE stream_id = :stream_id

-- name: dropped -> maybe
-- Return the names in files of the columns that a version of the schema has no more.
SELECT dropped FROM stream_schema WHERE stream_id = :stream_id AND version = :version

-- name: newest_fields -> maybe
-- Return the columns of the newest version.
-- type: fields = list[Field]
SELECT fields FROM stream_schema WHERE stream_id = :stream_id ORDER BY version DESC LIMIT 1

-- name: versions -> many
-- Return all versions, oldest first, each with the clock from which on it was the newest.
-- type: fields = list[Field]
SELECT time_clock(created_at) AS since, fields FROM stream_schema
WHERE stream_id = :stream_id ORDER BY version
