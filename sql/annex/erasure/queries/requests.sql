-- Requests for erasures, what they end, and what they leave.
-- import: from weir.annex.erasure.asked import AskedOf

-- fragment: request
SELECT r.request_id, r.stream_id, r.reason, r.asked, r.stores, r.outputs, r.searched, r.remains,
    array(SELECT (o ->> 'stream_id')::bigint FROM jsonb_array_elements(r.searched) o) AS streams,
    r.certificate IS NOT NULL AS signed, r.done_at
FROM erasure_request r

-- name: find -> maybe Request
-- Return a request; None if it has not begun.
-- row: A request as it is recorded.
-- null: searched, remains, done_at
-- type: asked = AskedOf
-- type: stores = dict[str, int]
-- type: outputs = dict[str, dict[str, int]]
-- type: searched = list[dict[str, Any]]
-- type: remains = list[dict[str, str]]
{request} WHERE r.request_id = :request_id

-- name: alike -> many Request
-- Return the requests for a stream with a reason that have come to their end, or have not, the
-- newest first; at most ten.
-- null: searched, remains, done_at
-- type: asked = AskedOf
-- type: stores = dict[str, int]
-- type: outputs = dict[str, dict[str, int]]
-- type: searched = list[dict[str, Any]]
-- type: remains = list[dict[str, str]]
{request} WHERE r.stream_id = :stream_id AND r.reason = :reason
    AND (r.done_at IS NOT NULL) = CAST(:done AS boolean)
ORDER BY r.asked_at DESC LIMIT 10

-- name: begin -> none
-- Record a request. One that is recorded stays what it is.
SELECT begin_erasure(:request_id, :stream_id, :by, :reason, CAST(:asked AS jsonb))

-- fragment: of_them
-- Attempts at outputs are named by their group; what is left of streams and stores that are deleted
-- says no more who made it. What expired of a store that is there may be read, as long as its grace.
(g.stream_id = ANY(:streams) OR g.root <> '' AND EXISTS (
        SELECT FROM placement p WHERE p.stream_id = ANY(:streams) AND p.number = 1
            AND strpos('/' || g.path, '/group=' || p.group_name || '/') > 0))

-- name: garbage_waits -> one
-- Return whether garbage may have events of the streams that is newer than `since`. What was
-- compacted has no event that another file has not.
-- null: :since
SELECT EXISTS (SELECT FROM garbage g WHERE {of_them}
    AND g.reason NOT IN ('swept', 'compacted', 'expired')
    AND g.garbage_since > coalesce(CAST(:since AS timestamptz), '-infinity'))

-- name: let_garbage_go -> none
-- Let all garbage go without a grace period that may have events of the streams.
UPDATE garbage g SET reason = 'erased', stream_id = CASE WHEN EXISTS (
        SELECT FROM stream s WHERE s.stream_id = g.stream_id AND s.state <> 'deleted')
        THEN g.stream_id END
WHERE g.reason NOT IN ('swept', 'erased') AND ({of_them}
    OR g.root = '' AND (g.stream_id IS NULL AND NOT (g.reason = 'expired' AND EXISTS (
        SELECT FROM adjunct_store a
        WHERE starts_with(g.path, CAST(:adjunct AS text) || a.store_id || '/'))) OR EXISTS (
        SELECT FROM stream s WHERE s.stream_id = g.stream_id AND s.state = 'deleted')))

-- name: forget_hot_keys -> none
-- Forget the keys among the hot ones.
DELETE FROM hot_key WHERE stream_id = ANY(:streams) AND routing_key = ANY(CAST(:keys AS text[]))

-- name: has_erased -> one
-- Return whether a request has erased events of a stream.
SELECT EXISTS (SELECT FROM erasure WHERE asked ->> 'request' = :request_id)

-- name: end -> none
-- Record that a request is done, with what it searched and what it left.
SELECT end_erasure(:request_id, CAST(:searched AS jsonb), CAST(:remains AS jsonb))

-- name: reading -> many
-- Return the groups whose batches may have read the events before, and written since.
SELECT g.name, string_agg(b.batch_id::text, ', ' ORDER BY b.batch_id) AS batches
FROM placement r JOIN reader_group g USING (group_id)
JOIN reader_batch b USING (group_id)
WHERE r.stream_id = ANY(:streams) AND r.number = 1 AND (b.state = 'open'
    OR b.committed_at >= (
        SELECT e.asked_at FROM erasure_request e WHERE e.request_id = :request_id))
GROUP BY g.name ORDER BY g.name

-- name: forget -> one
-- Delete a request by which nothing was erased, and return whether that is so.
SELECT forget_erasure(:request_id)
