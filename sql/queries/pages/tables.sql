-- Tables that are made of views.

-- name: names -> many
-- Return the names of streams, a few of them.
SELECT s.stream_name FROM weir_internal.stream s
WHERE s.state <> 'deleted' AND CASE :stream WHEN '' THEN s.stream_name > :after ELSE s.stream_name = :stream END
ORDER BY s.stream_name LIMIT :most

-- name: alerts -> many AlertShown
-- Return what somebody should look at of streams.
-- row: What somebody should look at.
SELECT at, stream, reader_group, alert, message FROM weir.retention_alerts
WHERE stream = ANY(:names) ORDER BY at DESC, stream, reader_group

-- name: disk -> many DiskShown
-- Return what takes space: what streams have, and with `rest` what is of none.
-- row: What takes space.
-- null: stream, since
SELECT bytes, kind, stream, name, since, freed_by FROM weir.disk WHERE stream = ANY(:names)
UNION ALL
SELECT bytes, kind, stream, name, since, freed_by FROM weir.disk
WHERE :rest AND stream IS NULL AND kind NOT IN ('events', 'database')
UNION ALL
SELECT sum(bytes)::bigint, kind, NULL, 'its tables, most of all ' || (array_agg(name ORDER BY bytes DESC))[1], NULL,
    min(freed_by)
FROM weir.disk WHERE :rest AND kind = 'database' GROUP BY kind
ORDER BY bytes DESC, kind, name

-- name: deleted -> many DeletedShown
-- Return the streams that were deleted, the last ones first.
-- row: What is left of a stream.
-- null: deleted_at, request, files
SELECT deleted_at, stream AS name, deleted_by AS request, created_at, sealed_at, files, files_left, stream_id AS folder
FROM weir.deleted_streams
WHERE (:stream = '' OR stream = :stream) AND stream_id < CAST(:before AS bigint)
ORDER BY stream_id DESC LIMIT :most

-- name: columns -> many ColumnShown
-- Return the columns that a stream has or had, with what became of each, and who names it.
-- row: A column of a stream.
-- null: dropped_at
SELECT name, stored_name AS name_in_files, type, added_at, changes, dropped_at, named_by
FROM weir.column_history WHERE stream = :stream ORDER BY dropped_at IS NOT NULL, position, stored_name
LIMIT :most

-- name: calendar -> many DayShown
-- Return the last days of a stream by hours.
-- row: A day of a stream: per hour whether it is complete, and has events.
-- type: hours = list[str]
SELECT day, hours, files, appends, failed FROM weir_internal.calendar(:stream, CAST(:before AS date), :days)
ORDER BY day DESC
