-- What the database knows of compactions. The lease of one holds until the server has started anew,
-- at least.

-- name: small_files -> many SmallFile
-- Return the small files of streams, those of the stream with the most first; last those in which
-- the last compaction found nothing that can be put together, unless `thorough` only if something
-- was committed there since.
-- null: transaction_number, clock, :names, :among, :holder
SELECT s.stream_id, s.stream_name AS stream, f.segment_id, f.start_offset, f.events, f.bytes,
    f.schema_version, f.transaction_number, t.clock, f.path, f.erased,
    count(*) OVER (PARTITION BY f.stream_id) AS small
FROM streams_with_small_files(CAST(:names AS text[]), :bytes, :events, :fewest, :among, :thorough,
                              CAST(:holder AS text)) f
JOIN stream s USING (stream_id)
LEFT JOIN transaction t ON t.stream_id = f.stream_id
    AND t.transaction_number = f.transaction_number
ORDER BY f.apart NULLS FIRST, small DESC, s.stream_id, f.segment_id, f.start_offset LIMIT :most

-- name: files_apart -> many
-- Return the streams of which no small files can be put together.
-- null: :names
SELECT stream, small_files AS files_apart, apart AS why FROM weir.small_files
WHERE apart IS NOT NULL
  AND (CAST(:names AS text[]) IS NULL OR stream = ANY (:names)) ORDER BY stream

-- name: begin -> one
-- Begin a compaction of a stream, and return its number.
-- null: begin_compaction, :holder, :token
SELECT begin_compaction(:stream_id, :lease, :holder, :token)

-- name: renew -> none
-- Renew the lease of a compaction, if it is still open.
UPDATE compaction SET lease_until = clock_timestamp() + :lease * interval '1 second'
WHERE stream_id = :stream_id AND number = :number AND state = 'open'

-- name: swap -> one Swap
-- Put new files in the place of old ones, and end the compaction. What an outcome other than `done`
-- does not have is null.
SELECT * FROM swap_files(:stream_id, :number, CAST(:segments AS bigint[]),
    CAST(:starts AS bigint[]), CAST(:events AS bigint[]), CAST(:bytes AS bigint[]),
    CAST(:paths AS text[]), CAST(:footers AS bigint[]), CAST(:old AS text[]),
    CAST(:news AS integer[]), CAST(:erased AS bigint[]))

-- name: keep_apart -> none
-- Record that none of the small files of a stream can be put together with its neighbours.
UPDATE compaction SET apart = true WHERE stream_id = :stream_id AND number = :number

-- name: abort -> many
-- Abort an open compaction of a locked stream; with no number, if its lease has expired.
-- null: :number
UPDATE compaction SET state = 'aborted', ended_at = clock_timestamp()
WHERE stream_id = :stream_id AND state = 'open' AND CASE WHEN CAST(:number AS bigint) IS NULL
    THEN lease_is_over(lease_until, 0)
    ELSE number = :number END
RETURNING number

-- name: lapsed -> many Lapsed
-- Return the streams whose compaction has an expired lease.
SELECT stream_id, stream_name AS stream FROM compaction WHERE state = 'open' AND lease_is_over(lease_until, 0)

-- name: prune -> count
-- Delete the rows of compactions that ended more than `history` seconds ago.
DELETE FROM compaction WHERE state <> 'open'
AND ended_at < clock_timestamp() - :history * interval '1 second'
