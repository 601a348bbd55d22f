-- Streaming queries that read groups.

-- name: keep -> maybe Kept
-- Make the lease of a query infinite; return its token, and the newest batch that it does not know.
-- null: newest, :group_id, :old
WITH counted AS (
    UPDATE reader_group SET next_token = next_token + 1
    WHERE group_id = :group_id AND CAST(:old AS bigint) IS NULL
)
UPDATE reader SET token = :new, lease_until = 'infinity'
WHERE group_id = :group_id AND reader_id = :reader_id AND lease_until > '-infinity'
  AND token = coalesce(:old, token)
RETURNING token, (
    SELECT max(b.batch_id) FROM reader_batch b
    WHERE b.group_id = :group_id AND b.batch_id > :after AND b.state = 'committed') AS newest
