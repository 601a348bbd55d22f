-- What the pages show of publications.

-- name: publications -> many PublicationShown
-- Return the streams that are published as tables, by name.
-- row: A stream that is published.
-- null: metadata_location, published_until, published_at, behind_for, problem
SELECT stream, format, problem, behind_events, behind_for, published_until, published_at, publishing, metadata_location
FROM publications
WHERE stream = ANY(ARRAY(
    SELECT s.stream_name FROM stream s WHERE s.publish <> 'none' AND s.state <> 'deleted'
    AND CASE :stream WHEN '' THEN s.stream_name > :after ELSE s.stream_name = :stream END
    ORDER BY s.stream_name LIMIT :most))
ORDER BY stream
