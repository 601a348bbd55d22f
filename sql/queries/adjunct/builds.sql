-- Who builds which version of a store, and from what.
-- import: from weir.controller.queries import Cut

-- name: begin -> one
-- Record a version that is being built, and return its number.
-- null: :base, :since, :code
WITH given AS (
    UPDATE adjunct_store SET next_version = next_version + 1 WHERE store_id = :store_id
    RETURNING next_version - 1 AS version
)
INSERT INTO adjunct_version (store_id, version, definition, state, kind, base, from_cut, cut,
    clock, complete_since, lost_events, builder, lease_until, started_at, code)
SELECT :store_id, g.version, :definition, 'building', :kind, :base, CAST(:from_cut AS jsonb),
    CAST(:cut AS jsonb), :clock,
    CASE WHEN CAST(:base AS bigint) IS NULL THEN :since ELSE (
        SELECT b.complete_since FROM adjunct_version b
        WHERE b.store_id = :store_id AND b.version = :base) END,
    :lost, :builder, clock_timestamp() + :lease * interval '1 second', clock_timestamp(), :code
FROM given g RETURNING version

-- name: target -> one Target
-- Return the cut to be complete to, at least the head, and its clock.
-- null: :cut, :clock
-- type: cut = Cut
SELECT CASE WHEN CAST(:cut AS jsonb) IS NULL THEN tail_cut(:stream_id)
        ELSE readable_cut(:stream_id, CAST(:cut AS jsonb), head) END AS cut,
    coalesce(:clock, CASE WHEN CAST(:cut AS jsonb) IS NOT NULL
        THEN clock_after(:stream_id, readable_cut(:stream_id, CAST(:cut AS jsonb), head)) - 1 END,
        :last) AS clock
FROM stream WHERE stream_id = :stream_id

-- name: keys -> one Keys
-- Return how a definition makes keys.
SELECT key, key_type FROM adjunct_definition
WHERE store_id = :store_id AND definition = :definition

-- name: building -> maybe Building
-- Return the version that is being built.
-- null: base, code
-- type: from_cut = Cut
-- type: cut = Cut
SELECT version, attempt, kind, base, from_cut, cut, clock, code, definition, builder,
    CAST(extract(epoch FROM lease_until - clock_timestamp()) AS float8) AS leased
FROM adjunct_version WHERE store_id = :store_id AND state = 'building'

-- name: entered -> one
-- Return where a group entered a stream.
-- type: start_cut = Cut
SELECT start_cut FROM reader_group_stream WHERE group_id = :group_id AND stream_id = :stream_id

-- name: events_between -> one
-- Return how many events lie between two cuts.
SELECT b.events - a.events FROM size_till(CAST(:stream_id AS bigint), CAST(:start AS jsonb)) a
CROSS JOIN size_till(CAST(:stream_id AS bigint), CAST(:end AS jsonb)) b

-- name: advance -> none
-- Move the cut of a version forward.
UPDATE adjunct_version SET cut = CAST(:cut AS jsonb), clock = greatest(clock, :clock)
WHERE store_id = :store_id AND version = :version

-- name: again -> none
-- Begin another attempt at a version.
WITH dead AS (
    UPDATE adjunct_store s SET failed_at = clock_timestamp(),
        error = format('%s ended without a word while it built version %s (%s times '
            || 'in a row by now); was it killed, or its memory used up?',
            v.builder, v.version, v.silent_attempts)
    FROM adjunct_version v WHERE s.store_id = :store_id AND v.store_id = :store_id AND v.version = :version
        AND v.silent_attempts > 0
)
UPDATE adjunct_version SET attempt = attempt + 1, builder = :builder,
    silent_attempts = silent_attempts + 1,
    lease_until = clock_timestamp() + :lease * interval '1 second'
WHERE store_id = :store_id AND version = :version

-- name: abandon -> none
-- Abandon a version that is being built.
UPDATE adjunct_version SET state = 'abandoned', lease_until = NULL,
    ended_at = clock_timestamp()
WHERE store_id = :store_id AND version = :version

-- name: attempt_of -> one
-- Return the present attempt at a version.
SELECT attempt FROM adjunct_version WHERE store_id = :store_id AND version = :version

-- name: discard -> none
-- Make garbage of a folder.
INSERT INTO garbage (root, path, stream_id, reason)
VALUES ('', :folder, NULL, 'fenced') ON CONFLICT (root, path) DO NOTHING

-- name: to_build -> many ToBuild
-- Return the stores that may have to be built, and those with functions, those that died last.
-- null: code, :names
SELECT name, code, moved FROM stores_to_build(CAST(:names AS text[]))
ORDER BY silent_attempts, store_id
