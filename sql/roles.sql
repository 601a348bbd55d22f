-- Least privilege, by schema: jobs change rows and no tables; people and dashboards use what is in weir,
-- and nothing of weir_internal by name. A person who lets consumers write to a table grants INSERT on it
-- to weir_publisher, which may do nothing else: the triggers of that table run with its rights.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'weir_jobs') THEN
        CREATE ROLE weir_jobs NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'weir_reader') THEN
        CREATE ROLE weir_reader NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'weir_publisher') THEN
        CREATE ROLE weir_publisher NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'weir_watcher') THEN
        CREATE ROLE weir_watcher NOLOGIN;
    END IF;
    IF NOT pg_has_role(current_user, 'weir_publisher', 'SET') THEN  -- to give it what it owns
        EXECUTE format('GRANT weir_publisher TO %I WITH INHERIT FALSE, SET TRUE', current_user);
    END IF;
END $$;
REVOKE ALL ON ALL TABLES IN SCHEMA weir, weir_internal FROM weir_jobs, weir_reader, weir_watcher;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA weir, weir_internal FROM weir_jobs, weir_reader, weir_watcher;

GRANT USAGE ON SCHEMA weir TO weir_jobs, weir_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA weir TO weir_jobs, weir_reader;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA weir TO weir_jobs, weir_reader;

GRANT USAGE ON SCHEMA weir_internal, weir_staging TO weir_jobs;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA weir_internal TO weir_jobs;
REVOKE INSERT, UPDATE, DELETE ON weir_internal.installation, weir_internal.alembic_version FROM weir_jobs;
GRANT UPDATE (sweep_count, incarnation) ON weir_internal.installation TO weir_jobs;
GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA weir_internal TO weir_jobs;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA weir_internal TO weir_jobs;

-- Whoever reads a view needs the right to execute the functions in it. Without a right to the schema,
-- nobody can call them by name.
DO $$
DECLARE
    called regprocedure;
BEGIN
    FOR called IN
        SELECT DISTINCT f.oid FROM pg_depend d
        JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
        JOIN pg_class v ON v.oid = r.ev_class AND v.relnamespace = 'weir'::regnamespace
        JOIN pg_proc f ON d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
            AND f.pronamespace = 'weir_internal'::regnamespace
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO weir_reader', called);
    END LOOP;
END $$;

-- A triggerer asks what is to be announced and what has come about, and records what was announced.
GRANT USAGE ON SCHEMA weir_internal TO weir_watcher;
GRANT EXECUTE ON FUNCTION weir_internal.watch_streams, weir_internal.to_announce, weir_internal.announced,
    weir_internal.progress_of
TO weir_watcher;

-- These two run with the rights of weir_publisher, which needs CREATE for as long as it is given them.
GRANT USAGE ON SCHEMA weir_staging TO weir_publisher;
GRANT CREATE ON SCHEMA weir_internal TO weir_publisher;
ALTER FUNCTION weir_internal.publish_staging OWNER TO weir_publisher;
ALTER FUNCTION weir_internal.settle_constraints OWNER TO weir_publisher;
REVOKE CREATE ON SCHEMA weir_internal FROM weir_publisher;
