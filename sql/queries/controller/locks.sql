-- Rows of streams, locked or not.
-- fragments: controller/stream.sql

-- name: lock_streams -> many StreamColumns
-- Lock streams, given by ids or by names, and return them in the order of their ids.
-- null: retain_min_age, retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every
-- null: target_rate, scale_factor, max_segments, event_time, owner
-- type: head = dict[str, int | str]
SELECT {stream} FROM lock_streams(CAST(:ids AS bigint[]), CAST(:scopes AS text[]),
    CAST(:names AS text[]))

-- name: read_stream -> maybe StreamColumns
-- Return a stream, for reading only.
-- null: retain_min_age, retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every
-- null: target_rate, scale_factor, max_segments, event_time, owner
-- type: head = dict[str, int | str]
SELECT {stream} FROM stream WHERE state <> 'deleted' AND scope = :scope AND name = :name
