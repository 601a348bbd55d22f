-- What is recorded of files that could not be read.
-- import: from weir.model.segment import Segment

-- name: size -> maybe
-- Return the bytes of a file of a stream.
SELECT bytes FROM data_file WHERE stream_id = :stream_id AND path = :path

-- name: stream -> maybe
-- Return a stream's name, head and state.
-- type: head = dict[str, int | str]
SELECT stream_name AS name, head, state FROM stream WHERE stream_id = :stream_id

-- name: files -> many
-- Return which events files have.
SELECT segment_id, start_offset, start_offset + events AS end_offset FROM data_file
WHERE stream_id = :stream_id AND path = ANY(:paths)

-- name: segments -> many Segment
-- Return all segments of a stream.
SELECT segment_id, key_low, key_high FROM segment WHERE stream_id = :stream_id
