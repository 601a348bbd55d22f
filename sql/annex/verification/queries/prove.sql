-- Cuts that are to be proven, and the files before them.
-- fragments: stored.sql

-- name: commits -> many Taken
-- Return up to which clock each stream can be looked at in this run, and the appends with files.
-- row: Up to which clock a stream can be looked at, None if not at all.
-- null: until
-- clock_time: of that there is an index. No join of what was found: Postgres can't know how many.
WITH behind AS MATERIALIZED (
    SELECT * FROM unproven_cuts() u WHERE u.since < u.until
), commits AS (
    SELECT b.*, t.transaction_number, t.clock, t.files,
           sum(t.files) OVER (PARTITION BY b.stream_id ORDER BY t.clock) AS up_to
    FROM behind b LEFT JOIN LATERAL (
        SELECT t.transaction_number, t.clock, t.files FROM transaction t
        WHERE t.stream_name = b.stream_name AND clock_time(t.clock) > clock_time(b.since)
          AND clock_time(t.clock) <= clock_time(b.until)
        ORDER BY clock_time(t.clock) LIMIT CAST(:most AS bigint) + 1) t ON true
), judged AS (
    SELECT c.*, c.clock IS NULL OR sum(c.files) OVER (
        ORDER BY c.up_to, c.stream_id, c.clock) - c.files < :most AS taken
    FROM commits c
)
SELECT stream_id, coalesce(
           array_agg(transaction_number) FILTER (WHERE taken AND files > 0), '{}')
           AS numbers, stream_name,
       CASE WHEN bool_and(taken) AND count(clock) <= :most THEN until
            ELSE max(clock) FILTER (WHERE taken) END AS until
FROM judged GROUP BY stream_id, stream_name, judged.until ORDER BY stream_id

-- name: files -> many NewFile
-- Return the files of some appends, by the names of their streams.
-- null: end_hash, file_hash
SELECT f.stream_id, f.stream_name, {file}
FROM unnest(CAST(:names AS text[]), CAST(:numbers AS bigint[])) AS n (name, number)
JOIN data_file f ON f.stream_name = n.name AND f.transaction_number = n.number {its_segment}
ORDER BY f.stream_id, f.path

-- name: damaged -> many
-- Return the streams of which damage is recorded; null: what is of none.
-- null: stream_id
SELECT DISTINCT stream_id FROM found_damage

-- name: move -> none
-- Record up to which clocks the files of streams were looked at.
INSERT INTO verification (stream_id, begun_at, segment_id, start_offset, proven_clock)
SELECT stream_id, clock_timestamp(), -1, -1, clock
FROM unnest(CAST(:ids AS bigint[]), CAST(:clocks AS bigint[])) AS m (stream_id, clock)
ORDER BY stream_id
ON CONFLICT (stream_id) DO UPDATE SET begun_at = excluded.begun_at,
    proven_clock = greatest(verification.proven_clock, excluded.proven_clock)

-- name: prove -> none
-- Call the cuts proven before which all was looked at, and no damage is.
UPDATE stream_cut c SET proven_at = clock_timestamp() FROM cuts_proven_by_now() n
WHERE n.stream_id = c.stream_id AND n.recorded_at = c.recorded_at

-- name: left_over -> many
-- Return the streams with cuts that are not proven, and whether there is more to look at.
SELECT u.stream_name, u.since < u.until AS more FROM unproven_cuts() u ORDER BY u.stream_name
