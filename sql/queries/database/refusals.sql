-- What the database says after it has refused something.

-- name: standing -> one
-- Return how a login stands to Weir in a database: whether it may use the schema, and is a member
-- of weir_jobs or weir_team. Null without Weir.
-- null: usable
SELECT current_setting('server_version_num')::integer AS version,
    current_setting('server_encoding') AS encoding,
    current_user AS login, n.oid IS NOT NULL AS migrated,
    has_schema_privilege(n.oid, 'USAGE') AS usable,
    EXISTS (SELECT FROM pg_roles WHERE rolname IN ('weir_jobs', 'weir_team')
        AND pg_has_role(oid, 'USAGE')) AS member
FROM (VALUES (1)) AS one (row) LEFT JOIN pg_namespace n ON n.nspname = 'weir_internal'

-- name: layout -> one
-- Return the layout of the database.
SELECT version_num FROM weir_internal.alembic_version

-- name: oldest -> maybe
-- Return the session with the oldest transaction. The transaction that has locked a row has an id,
-- which one can look up in every session.
SELECT pid, usename FROM pg_stat_activity
WHERE datname = current_database() AND backend_xid IS NOT NULL
ORDER BY age(backend_xid) DESC LIMIT 1

-- name: limit -> one
-- Return how long a transaction of this login may take, which servers have from 17 on. The driver
-- does not pass on what the server says when that is over.
-- null: most
SELECT nullif(current_setting('transaction_timeout', true), '0') AS most
