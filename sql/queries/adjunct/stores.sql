-- Adjunct stores: defined, updated and deleted.

-- name: stores -> many StoreRow
-- Return those of some stores that exist.
-- null: history, outdated, time_out
SELECT a.store_id, a.name, a.stream_id, s.stream_name, a.group_id, a.generation, a.layout,
    a.bootstrap, a.missing, a.patience, a.null_key, a.on_error, a.on_gap, a.keep_versions, a.history,
    a.definition AS definition_number, d.key, d.key_type, d.value, d.value_columns, d.delete_when,
    d.outdated, g.time_out
FROM adjunct_store a JOIN stream s USING (stream_id)
JOIN reader_group g ON g.group_id = a.group_id
JOIN adjunct_definition d ON d.store_id = a.store_id AND d.definition = a.definition
WHERE a.name = ANY(CAST(:names AS text[]))

-- name: routing_key -> one
-- Return the routing key of a stream, also of a deleted one.
SELECT routing_key FROM stream WHERE stream_id = :stream_id

-- name: lock -> maybe
-- Lock a store; return its name.
SELECT name FROM adjunct_store WHERE store_id = :store_id FOR NO KEY UPDATE

-- name: exists -> one
-- Return whether there is a store of this name.
SELECT EXISTS (SELECT FROM adjunct_store WHERE name = :name)

-- name: say_time -> one
-- Return the time of a clock as JSON writes it.
SELECT to_json(clock_time(:clock)) #>> '{}'

-- name: complete_since -> one
-- Return the clock of the oldest event of a stream; None if no event was ever truncated.
-- null: since
SELECT CASE WHEN z.events > 0 THEN
    coalesce(clock_after(:stream_id, CAST(:head AS jsonb)), :last) END AS since
FROM size_till(CAST(:stream_id AS bigint), CAST(:head AS jsonb)) z

-- name: discard -> none
-- Make garbage of the files of a store, and forget which batches read them.
WITH files AS (
    INSERT INTO garbage (root, path, stream_id, reason, bytes)
    SELECT '', :folder, NULL, 'deleted', coalesce(sum(bytes), 0)
    FROM adjunct_file WHERE store_id = :store_id
    ON CONFLICT (root, path) DO NOTHING
)
DELETE FROM adjunct_pin WHERE store_id = :store_id

-- name: delete -> none
-- Delete a store.
DELETE FROM adjunct_store WHERE store_id = :store_id

-- name: owned -> one Owned
-- Return how many versions and bytes a store has, and the name of its stream.
SELECT (SELECT count(*) FROM adjunct_version WHERE store_id = :store_id) AS versions,
(SELECT coalesce(sum(bytes), 0)::bigint FROM adjunct_file WHERE store_id = :store_id)
    AS bytes,
(SELECT s.stream_name FROM adjunct_store a JOIN stream s USING (stream_id)
    WHERE a.store_id = :store_id) AS stream

-- name: pinned -> maybe Pinned
-- Return an open batch that is read with a version of a store.
SELECT b.group_name, b.batch_id FROM adjunct_pin p
JOIN reader_batch b USING (group_id, batch_id)
WHERE p.store_id = :store_id AND b.state = 'open' ORDER BY 1, 2 LIMIT 1

-- name: insert -> none
-- Record a store and its definition.
-- null: :history
WITH made AS (
    INSERT INTO adjunct_store (name, stream_id, group_id,
        layout, bootstrap, missing, patience, null_key, on_error, on_gap, keep_versions, history)
    SELECT :name, :stream_id, g.group_id,
        :layout, :bootstrap, :missing, :patience, :null_key, :on_error, :on_gap, :keep_versions,
        :history
    FROM reader_group g WHERE g.name = :name
    RETURNING store_id
)
INSERT INTO adjunct_definition (store_id, definition, key, key_type, value, value_columns, delete_when)
SELECT store_id, 1, :key, :key_type, :value, :value_columns, :delete_when FROM made

-- name: update -> none
-- Store the settings of a store, and its definition if that is another one.
-- null: :history, :time_out
WITH redefined AS (
    INSERT INTO adjunct_definition (store_id, definition, key, key_type, value, value_columns, delete_when)
    VALUES (:store_id, :number, :key, :key_type, :value, :value_columns, :delete_when)
    ON CONFLICT (store_id, definition) DO NOTHING
), timed AS (
    UPDATE reader_group SET time_out = :time_out, generation = generation + 1
    WHERE group_id = :group_id AND time_out IS DISTINCT FROM :time_out
)
UPDATE adjunct_store SET definition = :number, generation = generation + 1,
    layout = :layout, bootstrap = :bootstrap, missing = :missing, patience = :patience, null_key =
    :null_key, on_error = :on_error, on_gap = :on_gap, keep_versions = :keep_versions, history =
    :history
WHERE store_id = :store_id
