-- Least privilege: jobs change rows but no table; people and dashboards read views only. Whoever lets
-- consumers write to a table of his own grants INSERT on it to weir_publisher, which may do nothing else:
-- the triggers of that table run with its rights.
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
    IF NOT pg_has_role(current_user, 'weir_publisher', 'SET') THEN  -- to give it what it owns
        EXECUTE format('GRANT weir_publisher TO %I WITH INHERIT FALSE, SET TRUE', current_user);
    END IF;
END $$;
REVOKE ALL ON SCHEMA weir FROM PUBLIC;
GRANT USAGE ON SCHEMA weir TO weir_jobs, weir_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA weir TO weir_jobs;
REVOKE INSERT, UPDATE, DELETE ON weir.installation, weir.alembic_version FROM weir_jobs;
GRANT UPDATE (tide, incarnation) ON weir.installation TO weir_jobs;
GRANT USAGE, SELECT, UPDATE ON SEQUENCE weir.stream_stream_id_seq, weir.reader_group_group_id_seq
    TO weir_jobs;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA weir FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA weir TO weir_jobs, weir_reader;
-- These run with the rights of the owner.
REVOKE EXECUTE ON FUNCTION weir.make_staging, weir.drop_staging FROM weir_reader;
GRANT USAGE ON SCHEMA weir_staging TO weir_jobs, weir_publisher;
-- These run with the rights of weir_publisher.
REVOKE EXECUTE ON FUNCTION weir.publish_staging, weir.settle_constraints FROM weir_reader;
GRANT CREATE ON SCHEMA weir TO weir_publisher;
ALTER FUNCTION weir.publish_staging OWNER TO weir_publisher;
ALTER FUNCTION weir.settle_constraints OWNER TO weir_publisher;
REVOKE CREATE ON SCHEMA weir FROM weir_publisher;
DO $$
DECLARE
    view text;
BEGIN
    FOR view IN SELECT format('weir.%I', viewname) FROM pg_views WHERE schemaname = 'weir' LOOP
        EXECUTE 'GRANT SELECT ON ' || view || ' TO weir_reader';
    END LOOP;
END $$;
