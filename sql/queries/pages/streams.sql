-- The list of streams.

-- name: found -> one
-- Return a page of the names of streams, one more than `limit`, and how many there are in all.
-- Now is a minute's, so that what has not changed has the same ETag. Streams are in the order of a
-- time, the newest first, and of their names; `at` may be infinity.
-- type: :at = str
WITH found AS MATERIALIZED (
    SELECT c.stream, CASE :sort WHEN 'changed' THEN s.last_clock WHEN 'created' THEN s.created_at
        ELSE '-infinity' END AS at
    FROM weir.stream_configuration c JOIN weir.stream_state s USING (stream)
    WHERE (:search = '' OR strpos(c.stream, lower(:search)) > 0)
      AND (:scope = '' OR starts_with(c.stream, :scope || '/'))
      AND (:tag = '' OR c.tags @> ARRAY[CAST(:tag AS text)])
      AND (:owner = '' OR c.owner = :owner)
      AND (:state = '' OR s.state = :state))
SELECT (SELECT count(*) FROM found) AS total, date_trunc('minute', statement_timestamp()) AS now,
    array(SELECT f.stream FROM found f
          WHERE (f.at, CAST(:name AS text)) < (CAST(:at AS timestamptz), f.stream)
          ORDER BY f.at DESC, f.stream LIMIT CAST(:limit AS bigint) + 1) AS names

-- name: numbers -> many
-- Return streams in numbers. `limits`: of retention, age in seconds and bytes, each at least and at most.
-- row: A stream in numbers.
-- null: owner
-- type: state = Literal["active", "sealed"]
-- type: limits = list[int | None]
SELECT s.stream, s.state, s.created_at, s.last_clock AS changed_at, s.routing_key,
    s.events_retained AS events, s.bytes_retained AS bytes, s.events_appended AS appended,
    CASE WHEN s.state = 'active' THEN (SELECT count(*) FROM jsonb_object_keys(s.tail)) ELSE 0 END
        AS segments,
    c.tags, c.owner, c.retention, ARRAY[extract(epoch FROM c.retain_min_age)::bigint,
        extract(epoch FROM c.retain_max_age)::bigint, c.retain_min_bytes, c.retain_max_bytes] AS limits
FROM weir.streams s JOIN weir.stream_configuration c USING (stream)
WHERE s.stream = ANY(:names)

-- name: scopes -> one
-- Return the scopes, tags and owners that there are.
-- row: What streams can be filtered by.
SELECT array(SELECT DISTINCT split_part(stream, '/', 1) FROM weir.stream_state ORDER BY 1) AS scopes,
    array(SELECT DISTINCT unnest(tags) FROM weir.stream_configuration ORDER BY 1) AS tags,
    array(SELECT DISTINCT owner FROM weir.stream_configuration
          WHERE owner IS NOT NULL ORDER BY 1) AS owners
