-- Pack old entries of the time index.

-- name: to_pack -> many ToPack
-- Return in which segments commits are older than `age` seconds, and how many.
SELECT b.before, f.*
FROM (SELECT now_clock() - CAST(CAST(:age AS float8) * 1000000 AS bigint) AS before) b
CROSS JOIN LATERAL commits_to_pack(b.before, :most) f

-- name: pack -> one
-- Pack commits to segments, so many into a row; return how many.
SELECT pack_commits(:stream_id, CAST(:segments AS bigint[]), :before, :most)
