-- Times as addresses in streams.

-- name: close -> one
-- Close a time in streams that exist, or this moment; return it.
-- null: :at
SELECT clock_time(close_streams(array(SELECT stream_id FROM stream
       WHERE stream_name = ANY(CAST(:names AS text[])) AND state <> 'deleted'),
       time_clock(CAST(:at AS timestamptz))))
