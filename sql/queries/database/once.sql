-- Whether a transaction was committed.

-- name: mine -> one
-- Return the number of this transaction, if it has written, and when the server was started.
-- null: number
SELECT pg_current_xact_id_if_assigned()::text AS number, pg_postmaster_start_time() AS started

-- name: status -> one
-- Return what became of a transaction. Only the server that gave the number knows what it means: a
-- standby that was promoted does not.
-- null: status
SELECT CASE WHEN pg_postmaster_start_time() = :started
    THEN pg_xact_status(CAST(CAST(:number AS text) AS xid8)) END AS status
