-- What the pages show of damage.

-- name: damage -> many DamageShown
-- Return what was found that is not as recorded, the newest first.
-- row: What is not as recorded.
-- null: stream
SELECT since, stream, kind, what, advice, path, seen_at FROM damage
WHERE (:stream = '' OR stream = :stream) ORDER BY since DESC, path LIMIT :most OFFSET CAST(:passed AS bigint)

-- name: verified -> many VerifiedShown
-- Return when streams were looked at.
-- row: When a stream was compared with what was recorded.
-- null: looked_at, completed_at, proven_until
SELECT stream, looked_at, completed_at, damage, proven_until FROM verified
WHERE CASE :stream WHEN '' THEN stream > :after ELSE stream = :stream END
ORDER BY stream LIMIT :most
