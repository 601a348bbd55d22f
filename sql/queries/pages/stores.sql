-- The adjunct stores.

-- name: found -> one
-- Return a page of the names of stores, one more than `limit`, and how many there are in all.
SELECT (SELECT count(*) FROM weir_internal.adjunct_store a
        WHERE :search = '' OR strpos(a.name, lower(:search)) > 0) AS total,
    array(SELECT a.name FROM weir_internal.adjunct_store a
          WHERE (:search = '' OR strpos(a.name, lower(:search)) > 0) AND a.name > :after
          ORDER BY a.name LIMIT CAST(:limit AS bigint) + 1) AS names

-- name: stores -> many Store
-- Return stores by their names.
-- row: An adjunct store: its definition, its newest version, how far it is behind its stream.
-- null: version, complete_to, row_count, bytes, events_behind, time_behind, building, error, failed_at, history, time_out
SELECT s.adjunct_store AS store, s.stream, s.stream_deleted, s.version, s.complete_to, s.row_count,
    s.bytes, s.events_behind, s.time_behind, s.versions, s.building, s.error, s.failed_at, s.layout,
    s.created_at, s.history, s.keep_versions, s.time_out, s.definition, s.key, s.value,
    s.delete_when, s.missing, s.bootstrap, s.on_error, s.on_gap
FROM weir.adjunct_stores s WHERE s.adjunct_store = ANY(:names) ORDER BY s.adjunct_store

-- name: versions -> many Version
-- Return the newest versions of a store.
-- row: A version: what it was made of, when, by whom, and what became of it.
-- null: base, complete_to, layout, row_count, bytes, events, upserts, deletes, failed_rows, published_at
-- null: superseded_at, ended_at, took
SELECT version, state, kind, base, definition, complete_to, layout, row_count, bytes, events,
    upserts, deletes, failed_rows, lost_events, builder, attempt, started_at, published_at,
    superseded_at, ended_at,
    coalesce(published_at, ended_at) - started_at AS took
FROM weir.adjunct_versions WHERE adjunct_store = :name ORDER BY version DESC LIMIT 50

-- name: pins -> many Pin
-- Return the open batches that are read with a version of a store.
-- row: An open batch that is read with a version, which it protects.
-- null: version, complete_to, pinned_at
SELECT reader_group, batch_id, version, state, batch_state, complete_to, pinned_at
FROM weir.adjunct_pins WHERE adjunct_store = :name AND batch_state = 'open'
ORDER BY pinned_at DESC NULLS FIRST, reader_group, batch_id LIMIT 100
