-- What a backup is made of.

-- name: moment -> one
-- Return which installation this is at the moment that the transaction sees, and let others see the
-- same moment. The transaction may then wait for them as long as they take.
SELECT installation_id, pg_export_snapshot() AS snapshot,
       CAST(current_setting('server_version_num') AS int) / 10000 AS server,
       to_char(clock_timestamp(), 'YYYY-MM-DD HH24:MI:SS') AS at,
       set_config('idle_in_transaction_session_timeout', '0', true) AS waits
FROM installation

-- name: files -> many
-- Return the files that have events, and those of adjunct stores.
SELECT path, bytes FROM data_file UNION SELECT path, bytes FROM adjunct_file ORDER BY path

-- name: roles -> many
-- Return the roles that own something in this database, or have a right to it.
SELECT DISTINCT r.rolname FROM pg_shdepend d JOIN pg_roles r ON r.oid = d.refobjid
WHERE d.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND d.refclassid = 'pg_authid'::regclass AND NOT starts_with(r.rolname, 'pg_')
ORDER BY r.rolname

-- name: there -> one
-- Return which installation is here, whether it has streams, and whether it is one that was restored
-- and not recovered since.
SELECT installation_id, EXISTS (SELECT FROM stream) AS used, incarnation <> incarnation() AS moved
FROM installation

-- name: may_give -> one
-- Return whether this login may give things to any role.
SELECT current_setting('is_superuser') = 'on' AS may_give

-- name: emptying -> many
-- Return statements that make roles that are missing, and drop what a migration made.
SELECT format('CREATE ROLE %I', r) AS statement
FROM unnest(CAST(:roles AS text[])) AS r WHERE r NOT IN (SELECT rolname FROM pg_roles)
UNION ALL
SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace
WHERE nspname IN ('weir', 'weir_internal', 'weir_staging', 'weir_ducklake')
