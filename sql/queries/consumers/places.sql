-- The keys of streams.

-- name: keys_of -> many KeysOf
-- Return how streams make their keys.
SELECT s.stream_name, s.routing_key, s.on_missing_key FROM stream s
WHERE s.stream_name = ANY(:names) AND s.state <> 'deleted' ORDER BY s.stream_id
