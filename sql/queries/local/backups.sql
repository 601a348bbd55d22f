-- What a backup is made of.

-- name: moment -> one
-- Return which installation this is at the moment that the transaction sees, and who owns what Weir
-- made, and let others see the same moment. The transaction may then wait for them as long as they take.
SELECT installation_id, pg_export_snapshot() AS snapshot,
       CAST(current_setting('server_version_num') AS int) / 10000 AS server,
       to_char(clock_timestamp(), 'YYYY-MM-DD HH24:MI:SS') AS at,
       set_config('idle_in_transaction_session_timeout', '0', true) AS waits,
       CAST((SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'weir_internal') AS text)
           AS owner, incarnation
FROM installation

-- name: files -> many
-- Return the files that have events, and those of adjunct stores.
SELECT path, bytes FROM data_file UNION SELECT path, bytes FROM adjunct_file ORDER BY path

-- name: roles -> many
-- Return the roles that own something in this database, or have a right to it: also the owners of
-- streams and reader groups, of which Postgres does not know.
SELECT rolname FROM pg_roles WHERE NOT starts_with(rolname, 'pg_') AND (oid IN
    (SELECT refobjid FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND dbid =
     (SELECT oid FROM pg_database WHERE datname = current_database()))
    OR rolname IN (SELECT owner FROM stream UNION SELECT owner FROM reader_group))
ORDER BY rolname

-- name: alone -> one
-- Let nobody else restore into this database before the transaction ends, as long as that takes.
-- Return whether that is so, the process of who restores (`weir restore`, or the `pg_restore` of one
-- that was killed, which goes on), the version of the server, and who this login is.
-- null: other
SELECT pg_try_advisory_xact_lock(7305808869231650152) AS locked,
       (SELECT min(pid) FROM pg_stat_activity WHERE datname = current_database()
        AND application_name IN ('weir restore', 'pg_restore') AND pid <> pg_backend_pid()) AS other,
       set_config('application_name', 'weir restore', true) AS said,
       set_config('idle_in_transaction_session_timeout', '0', true) AS waits,
       CAST(current_setting('server_version_num') AS int) / 10000 AS server,
       CAST(current_user AS text) AS login, current_setting('is_superuser') = 'on' AS may_all

-- name: there -> one
-- Return which installation is here, whether it has streams, of which incarnation it says that it is,
-- and whether of another one than this, and what `emptying` said, unless that restore ended.
-- null: begun
SELECT installation_id, EXISTS (SELECT FROM stream) AS used, incarnation,
       incarnation <> incarnation() AS moved,
       (SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace
        WHERE nspname = 'weir_restoring') AS begun
FROM installation

-- name: may_give -> one
-- Return whether this login may give things to any role.
SELECT current_setting('is_superuser') = 'on' AS may_give

-- name: emptying -> many
-- Return statements that make roles that are missing, drop what a migration made, and say what is
-- restored, in the comment of a schema that no dump has.
SELECT format('CREATE ROLE %I', r) AS statement
FROM unnest(CAST(:roles AS text[])) AS r WHERE r NOT IN (SELECT rolname FROM pg_roles)
UNION ALL
SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace
WHERE nspname IN ('weir', 'weir_internal', 'weir_staging', 'weir_ducklake', 'weir_restoring')
UNION ALL SELECT 'CREATE SCHEMA weir_restoring'
UNION ALL SELECT format('COMMENT ON SCHEMA weir_restoring IS %L', CAST(:said AS text))

-- name: say -> none
-- Say what was restored, until a recovery says which incarnation this is.
UPDATE installation SET incarnation = :said WHERE incarnation <> incarnation()

-- name: end -> none
-- Drop what `emptying` made.
DROP SCHEMA IF EXISTS weir_restoring

-- name: users -> many
-- Return files with the streams, or the adjunct stores, that they are of.
SELECT path, 'stream ' || stream_name AS of FROM data_file WHERE path = ANY(CAST(:paths AS text[]))
UNION SELECT f.path, 'adjunct store ' || s.name FROM adjunct_file f JOIN adjunct_store s USING (store_id)
WHERE f.path = ANY(CAST(:paths AS text[]))
