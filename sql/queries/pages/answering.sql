-- What all addresses ask.

-- name: is_stream -> one
-- Return whether there is a stream.
SELECT EXISTS (SELECT FROM weir.stream_configuration WHERE stream = :stream) AS there
