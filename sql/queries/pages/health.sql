-- How far reader groups are, and what somebody should look at.

-- name: lag_of_streams -> many Lag
-- Return how far groups are in streams, those with most to read first.
-- row: How far a reader group is in a stream.
-- null: behind_since
SELECT stream, reader_group, unread_events, unread_bytes, lost_events, behind_since
FROM weir.lag WHERE stream = ANY(:names) ORDER BY unread_events DESC, reader_group

-- name: lag_of_groups -> many Lag
-- Return how far groups are in their streams, those with most to read first.
-- null: behind_since
SELECT stream, reader_group, unread_events, unread_bytes, lost_events, behind_since
FROM weir.lag WHERE reader_group = ANY(:names) ORDER BY unread_events DESC, stream

-- name: troubles -> many Trouble
-- Return what is wrong now, in the order in which it is found; of runs, only of these DAGs (null: of all).
-- row: What is wrong and somebody should do something about.
-- null: stream, reader_group, since, action, page, :dags
-- type: severity = Literal["red", "amber"]
-- type: given = dict[str, object]
-- type: query = dict[str, object]
SELECT kind, severity, subject, stream, reader_group, since, words, sentence, advice, action, given, page, query
FROM weir.troubles
WHERE query -> 'dag_id' IS NULL OR CAST(:dags AS text[]) IS NULL OR query ->> 'dag_id' = ANY(CAST(:dags AS text[]))
LIMIT :most

-- name: troubles_of_streams -> many Trouble
-- Return what is wrong with streams, and with groups wherever they read.
-- null: stream, reader_group, since, action, page
-- type: severity = Literal["red", "amber"]
-- type: given = dict[str, object]
-- type: query = dict[str, object]
SELECT kind, severity, subject, stream, reader_group, since, words, sentence, advice, action, given, page, query
FROM weir.troubles WHERE stream = ANY(:streams)
UNION ALL
SELECT kind, severity, subject, stream, reader_group, since, words, sentence, advice, action, given, page, query
FROM weir.troubles WHERE stream IS NULL AND reader_group = ANY(:groups)

-- name: troubles_of_groups -> many Trouble
-- Return what is wrong with groups, which read these streams.
-- null: stream, reader_group, since, action, page
-- type: severity = Literal["red", "amber"]
-- type: given = dict[str, object]
-- type: query = dict[str, object]
SELECT kind, severity, subject, stream, reader_group, since, words, sentence, advice, action, given, page, query
FROM weir.troubles WHERE stream = ANY(:streams) AND reader_group = ANY(:groups)
UNION ALL
SELECT kind, severity, subject, stream, reader_group, since, words, sentence, advice, action, given, page, query
FROM weir.troubles WHERE stream IS NULL AND reader_group = ANY(:groups)
