-- Which files hold which events. A slice is a file, and what of it to read: `FileSlice` has the
-- meaning of the columns.

-- fragment: slice
f.path, f.segment_id, s.key_low, s.key_high, f.start_offset, f.events, f.first_seq, f.last_seq,
    p.first_clock, p.last_clock, p.compacted, p.first_row, p.end_row,
    CASE WHEN f.erased = 0 THEN 0 ELSE holes_in(f.stream_id, f.segment_id,
        f.start_offset + p.first_row, f.start_offset + p.end_row) END AS holes,
    f.erased > 0 AS sparse

-- fragment: keys
CROSS JOIN LATERAL (  -- per file: by estimates, a plan that reads all transactions is as cheap
        SELECT o.key_low, o.key_high FROM segment o
        WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id OFFSET 0) s

-- fragment: files_of_bounds
(  -- a file that straddles the head stays whole: what lies below it is not read
        SELECT n.segment, greatest(n.first, h.event_offset) AS first, n.past
        FROM jsonb_to_recordset(CAST(:bounds AS jsonb))
            AS n (segment bigint, first bigint, past bigint)
        LEFT JOIN (SELECT e.* FROM stream, cut_entries(head) e WHERE stream_id = :stream_id) h
            ON h.segment_id = n.segment
        WHERE n.past > coalesce(h.event_offset, 0) OFFSET 0) b
    CROSS JOIN LATERAL (
        SELECT * FROM data_file d WHERE d.stream_id = :stream_id AND d.segment_id = b.segment
          AND d.start_offset < b.past AND d.start_offset >= coalesce((
              SELECT max(n.start_offset) FROM data_file n WHERE n.stream_id = :stream_id
              AND n.segment_id = b.segment AND n.start_offset <= b.first), 0) OFFSET 0) f
    CROSS JOIN LATERAL (
        SELECT greatest(b.first - f.start_offset, 0) AS first,
               least(b.past - f.start_offset, f.events) AS past OFFSET 0) r
    {keys}

-- name: slices_of_bounds -> many Slice
-- Return the slices within bounds. The clocks of a part of a file of several commits are those of
-- the commits that the part begins and ends with.
SELECT {slice}
FROM {files_of_bounds} CROSS JOIN LATERAL (
    SELECT o.clock AS first_clock, o.clock AS last_clock, false AS compacted,
           r.first AS first_row, r.past AS end_row
    FROM transaction o
    WHERE o.stream_id = f.stream_id AND o.transaction_number = f.transaction_number
    UNION ALL
    SELECT CASE WHEN r.first = 0 THEN f.first_clock ELSE
               (SELECT i.clock
                FROM commit_at(f.stream_id, f.segment_id, f.start_offset + r.first) i) END,
           CASE WHEN r.past = f.events THEN f.last_clock ELSE
               (SELECT i.clock
                FROM commit_at(f.stream_id, f.segment_id, f.start_offset + r.past - 1) i) END,
           true, r.first, r.past
    WHERE f.transaction_number IS NULL OFFSET 0) p
ORDER BY f.segment_id, f.start_offset

-- name: slices_by_commit -> many Slice
-- Return the slices within bounds, each of one commit.
SELECT {slice}
FROM {files_of_bounds} CROSS JOIN LATERAL (
    SELECT o.clock AS first_clock, o.clock AS last_clock, false AS compacted,
           r.first AS first_row, r.past AS end_row
    FROM transaction o
    WHERE o.stream_id = f.stream_id AND o.transaction_number = f.transaction_number
    UNION ALL
    SELECT i.clock, i.clock, true, greatest(r.first, i.start_offset - f.start_offset),
           least(r.past, i.start_offset + i.events - f.start_offset)
    FROM commits_in(f.stream_id, f.segment_id, f.start_offset + r.first,
                    f.start_offset + r.past) i
    WHERE f.transaction_number IS NULL OFFSET 0) p
ORDER BY f.segment_id, f.start_offset, p.first_row

-- name: slices_of_stream -> many Slice
-- Return the slices of a whole stream, from the head to the tail.
SELECT {slice}
FROM data_file f
JOIN segment s USING (stream_id, segment_id)
LEFT JOIN transaction t USING (stream_id, transaction_number)
LEFT JOIN (SELECT e.* FROM stream, cut_entries(head) e WHERE stream_id = :stream_id) h
    ON h.segment_id = f.segment_id
CROSS JOIN LATERAL (SELECT
    greatest(coalesce(h.event_offset, 0) - f.start_offset, 0) AS first) r
CROSS JOIN LATERAL (SELECT
    coalesce(t.clock, CASE WHEN r.first = 0 THEN f.first_clock
        ELSE (SELECT i.clock
              FROM commit_at(f.stream_id, f.segment_id, f.start_offset + r.first) i) END)
        AS first_clock,
    coalesce(t.clock, f.last_clock) AS last_clock, t.clock IS NULL AS compacted,
    r.first AS first_row, f.events AS end_row) p
WHERE f.stream_id = :stream_id ORDER BY f.segment_id, f.start_offset

-- name: newest -> many NewestSlice
-- Return the slices of the newest commits before a clock, each of one commit, so many commits that
-- the last one written comes first; and the clock of the oldest of them. Each slice has an event
-- that can be read, so `most` slices, with all of the last one's commit, hold so many of the last
-- events. A row without a file says that commits were looked at.
-- null: path, segment_id, key_low, key_high, start_offset, events, first_seq, last_seq, first_clock
-- null: last_clock, compacted, first_row, end_row, holes, sparse, :before
WITH seen AS (
    SELECT min(n.clock) AS oldest FROM newest_commits(
        :stream_id, coalesce(CAST(:before AS bigint), 9223372036854775807), :commits) n
), newest AS MATERIALIZED (
    SELECT d.*, i.clock, p.begins, p.ends FROM seen
    CROSS JOIN LATERAL commits_between(:stream_id, seen.oldest,
        coalesce(CAST(:before AS bigint) - 1, 9223372036854775807)) i
    LEFT JOIN (SELECT e.* FROM stream, cut_entries(head) e WHERE stream_id = :stream_id) h
        ON h.segment_id = i.segment_id
    CROSS JOIN LATERAL (  -- from the file on that holds the first event
        SELECT * FROM data_file o
        WHERE o.stream_id = :stream_id AND o.segment_id = i.segment_id
          AND o.start_offset < i.start_offset + i.events AND o.start_offset >= coalesce((
              SELECT max(n.start_offset) FROM data_file n
              WHERE n.stream_id = :stream_id AND n.segment_id = i.segment_id
                AND n.start_offset <= i.start_offset), 0) OFFSET 0) d
    CROSS JOIN LATERAL (
        SELECT greatest(i.start_offset, h.event_offset, d.start_offset) - d.start_offset
                   AS begins,
               least(i.start_offset + i.events - d.start_offset, d.events) AS ends) p
    WHERE p.begins < p.ends AND (d.erased = 0 OR p.ends - p.begins > holes_in(
        d.stream_id, d.segment_id, d.start_offset + p.begins, d.start_offset + p.ends))
    ORDER BY i.clock DESC FETCH FIRST :most ROWS WITH TIES
)
SELECT n.*, seen.oldest FROM seen LEFT JOIN LATERAL (
    SELECT {slice}
    FROM newest f {keys} CROSS JOIN LATERAL (SELECT
        f.clock AS first_clock, f.clock AS last_clock, f.transaction_number IS NULL AS compacted,
        f.begins AS first_row, f.ends AS end_row) p
) n ON true
WHERE seen.oldest IS NOT NULL
ORDER BY n.first_clock DESC, n.last_seq DESC

-- name: readable -> one
-- Return what is left to read between two cuts: each cut, or the head where that is later.
-- null: end_cut, :end
-- type: cut = dict[str, int | str]
-- type: end_cut = dict[str, int | str]
SELECT r.cut, join_cuts(:stream_id, CAST(:end AS jsonb), r.cut) AS end_cut
FROM stream CROSS JOIN LATERAL
    (SELECT readable_cut(:stream_id, CAST(:start AS jsonb), head) AS cut OFFSET 0) r
WHERE stream_id = :stream_id
