-- Least privilege, by schema: jobs change rows and no tables; people and dashboards use what is in weir;
-- what they may read of weir_internal by name is for the pages. A team's login is a member of weir_team and of the role that owns what is
-- the team's: it does what jobs do, with what it sees. A person who lets consumers write to a table grants INSERT on it
-- to weir_publisher, which may do nothing else: the triggers of that table run with its rights.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'weir_jobs') THEN
        CREATE ROLE weir_jobs NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'weir_reader') THEN
        CREATE ROLE weir_reader NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'weir_team') THEN
        CREATE ROLE weir_team NOLOGIN;
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
REVOKE ALL ON ALL TABLES IN SCHEMA weir, weir_ducklake, weir_internal FROM weir_jobs, weir_team, weir_reader, weir_watcher;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA weir, weir_internal FROM weir_jobs, weir_team, weir_reader, weir_watcher;

GRANT USAGE ON SCHEMA weir, weir_ducklake TO weir_jobs, weir_team, weir_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA weir, weir_ducklake TO weir_jobs, weir_team, weir_reader;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA weir TO weir_jobs, weir_team, weir_reader;

GRANT USAGE ON SCHEMA weir_internal, weir_staging TO weir_jobs, weir_team;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA weir_internal TO weir_jobs, weir_team;
REVOKE INSERT, UPDATE, DELETE ON weir_internal.installation, weir_internal.alembic_version, weir_internal.hidden_stream,
    weir_internal.hidden_group, weir_internal.hidden_store, weir_internal.held_garbage, weir_internal.annex_file
FROM weir_jobs, weir_team;
GRANT UPDATE (sweep_count, swept_at, incarnation, warehouse, batches_pruned) ON weir_internal.installation TO weir_jobs;
GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA weir_internal TO weir_jobs, weir_team;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA weir_internal TO weir_jobs, weir_team;
-- What Airflow is told of all streams is no team's.
REVOKE INSERT, UPDATE, DELETE ON weir_internal.watch FROM weir_team;
REVOKE INSERT, UPDATE ON weir_internal.announcement FROM weir_team;
REVOKE EXECUTE ON FUNCTION weir_internal.watch_streams, weir_internal.to_announce, weir_internal.announced
FROM weir_team;

-- A view shows what its reader may see, so that it takes the reader's rights to tables and functions. The pages ask
-- them by name, too.
GRANT USAGE ON SCHEMA weir_internal TO weir_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA weir_internal TO weir_reader;
-- Receipts are evidence, too: of what was truncated, and of what a group was given (which becomes longer). They go with their
-- stream, once it is sealed.
REVOKE UPDATE ON weir_internal.truncation, weir_internal.truncated_range, weir_internal.delivered_range FROM weir_jobs, weir_team;
GRANT UPDATE (to_offset, events, lost, last_batch, last_at) ON weir_internal.delivered_range TO weir_jobs, weir_team;
DO $$
DECLARE
    kept text;
BEGIN
    FOREACH kept IN ARRAY ARRAY['placement', 'delivered_range', 'truncation', 'truncated_range'] LOOP
        EXECUTE format('DROP POLICY IF EXISTS of_streams_that_end ON weir_internal.%I', kept);
        EXECUTE format($policy$CREATE POLICY of_streams_that_end ON weir_internal.%1$I AS RESTRICTIVE FOR DELETE
            TO weir_jobs, weir_team USING (EXISTS (
                SELECT FROM weir_internal.stream s WHERE s.stream_id = %1$I.stream_id AND s.state <> 'active'))$policy$, kept);
    END LOOP;
END $$;
-- Of a run, who ran it never changes, and of a request only the keys go that are to be forgotten. Old runs are pruned for all.
REVOKE INSERT, UPDATE ON weir_internal.job_run FROM weir_jobs, weir_team;
GRANT INSERT (dag_id, run_id, task_id, map_index, try_number, job, item, arguments, state, started_at, updated_at, progress,
    report, error, retryable, begun, approved, started_by) ON weir_internal.job_run TO weir_jobs, weir_team;
GRANT UPDATE (item, arguments, state, started_at, updated_at, progress, report, error, retryable, begun, approved)
ON weir_internal.job_run TO weir_jobs, weir_team;
REVOKE DELETE ON weir_internal.job_run FROM weir_team;
REVOKE INSERT, UPDATE, DELETE ON weir_internal.request FROM weir_jobs, weir_team;
GRANT INSERT (request_id, operation, object, arguments, result, ended_at) ON weir_internal.request TO weir_jobs, weir_team;
GRANT UPDATE (result) ON weir_internal.request TO weir_jobs, weir_team;
-- Whoever has the hashes of erased keys with their salt can try keys (decision 91).
REVOKE ALL ON weir_internal.erased_keys FROM weir_jobs, weir_team, weir_reader;
GRANT SELECT (stream_id, keys), DELETE ON weir_internal.erased_keys TO weir_jobs, weir_team;
DO $$
DECLARE
    called regprocedure;
    seen regclass;
BEGIN
    FOR called IN
        SELECT DISTINCT f.oid FROM pg_depend d
        JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
        JOIN pg_class v ON v.oid = r.ev_class AND v.relnamespace IN ('weir'::regnamespace, 'weir_ducklake'::regnamespace)
        JOIN pg_proc f ON d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
            AND f.pronamespace = 'weir_internal'::regnamespace
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO weir_reader', called);
    END LOOP;
    -- And those that change nothing, with the rights of whoever calls them.
    FOR called IN
        SELECT f.oid FROM pg_proc f WHERE f.pronamespace = 'weir_internal'::regnamespace
            AND f.provolatile <> 'v' AND f.prokind = 'f' AND NOT f.prosecdef
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO weir_reader', called);
    END LOOP;
    FOR seen IN SELECT oid FROM pg_class
                WHERE relnamespace IN ('weir'::regnamespace, 'weir_ducklake'::regnamespace) AND relkind = 'v' LOOP
        EXECUTE format('ALTER VIEW %s SET (security_invoker = true)', seen);
    END LOOP;
END $$;

-- A trigger needs no right to its function; whoever has it could let it run for a table of their own.
DO $$
DECLARE
    called regprocedure;
BEGIN
    FOR called IN SELECT oid FROM pg_proc
                  WHERE pronamespace = 'weir_internal'::regnamespace AND prorettype = 'trigger'::regtype LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM weir_jobs, weir_team, weir_reader', called);
    END LOOP;
END $$;
-- Whoever lists what is hidden need not hide it.
REVOKE EXECUTE ON FUNCTION weir_internal.hidden_names FROM weir_jobs, weir_team, weir_reader;

-- What is about a stream, a reader group or an adjunct store is seen by whoever sees that. Policies of one role are
-- joined by OR: for weir_jobs they are true, which costs nothing.
GRANT EXECUTE ON FUNCTION weir_internal.hidden_streams, weir_internal.hidden_groups, weir_internal.groups_of_others,
    weir_internal.hidden_stores, weir_internal.tells_hidden, weir_internal.may_act_for, weir_internal.sees_all,
    weir_internal.time_clock, weir_internal.clock_time, weir_internal.epoch_at, weir_internal.close_stream,
    weir_internal.lease_is_over
TO weir_reader;
CREATE OR REPLACE TRIGGER check_owner BEFORE INSERT OR UPDATE OF owner ON weir_internal.stream
    FOR EACH ROW WHEN (NEW.owner IS NOT NULL) EXECUTE FUNCTION weir_internal.check_owner();
CREATE OR REPLACE TRIGGER check_owner BEFORE INSERT OR UPDATE OF owner ON weir_internal.reader_group
    FOR EACH ROW WHEN (NEW.owner IS NOT NULL) EXECUTE FUNCTION weir_internal.check_owner();
CREATE OR REPLACE TRIGGER take_owner BEFORE INSERT ON weir_internal.stream
    FOR EACH ROW WHEN (NEW.name LIKE '%.rejected') EXECUTE FUNCTION weir_internal.take_owner();
CREATE OR REPLACE TRIGGER pass_owner_on AFTER UPDATE OF owner ON weir_internal.stream
    FOR EACH ROW WHEN (NEW.owner IS DISTINCT FROM OLD.owner) EXECUTE FUNCTION weir_internal.pass_owner_on();
CREATE OR REPLACE TRIGGER number_schema BEFORE INSERT ON weir_internal.stream_schema
    FOR EACH ROW EXECUTE FUNCTION weir_internal.number_schema();
CREATE OR REPLACE TRIGGER add_ducklake_deletes AFTER INSERT ON weir_internal.stream
    FOR EACH ROW EXECUTE FUNCTION weir_internal.keep_ducklake_deletes();
CREATE OR REPLACE TRIGGER drop_ducklake_deletes AFTER UPDATE OF state ON weir_internal.stream
    FOR EACH ROW WHEN (NEW.state = 'deleted') EXECUTE FUNCTION weir_internal.keep_ducklake_deletes();
DO $$
DECLARE
    one record;
    by_stream text;
    by_group text;
    seen text;
    changed text;
BEGIN
    FOR one IN
        SELECT c.oid::regclass AS name, c.relname, array_agg(a.attname::text) AS columns
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'weir_internal'::regnamespace AND c.relkind = 'r'
        GROUP BY c.oid, c.relname
        HAVING array_agg(a.attname::text) && '{stream_id, group_id, store_id}' OR c.relname IN ('job_run', 'request', 'watch', 'owner_history')
    LOOP
        by_stream := format('NOT EXISTS (SELECT FROM weir_internal.hidden_stream h WHERE h.stream_id = %s.stream_id)', one.relname);
        by_group := format('NOT EXISTS (SELECT FROM weir_internal.hidden_group h WHERE h.group_id = %s.group_id)', one.relname);
        seen := CASE WHEN 'store_id' = ANY (one.columns) AND one.relname <> 'adjunct_store'
                THEN format('NOT EXISTS (SELECT FROM weir_internal.hidden_store h WHERE h.store_id = %s.store_id)', one.relname)
            ELSE concat_ws(' OR ', CASE WHEN 'stream_id' = ANY (one.columns) THEN by_stream END,
                           CASE WHEN 'group_id' = ANY (one.columns) AND one.relname <> 'adjunct_store' THEN by_group END) END;
        seen := CASE one.relname
            WHEN 'stream' THEN 'owner IS NULL OR owner IN (SELECT weir_internal.own_roles())'
            WHEN 'group_history' THEN by_stream
            WHEN 'owner_history' THEN 'owner = '''' OR owner IN (SELECT weir_internal.own_roles())'
            WHEN 'watch' THEN 'EXISTS (SELECT FROM weir_internal.stream s WHERE s.stream_name = watch.stream_name AND s.state <> ''deleted'')
                OR weir_internal.hides_nothing(current_user)'
            WHEN 'garbage' THEN  -- the folder of an output has its name
                by_stream || ' AND (stream_id IS NOT NULL OR root = '''' OR weir_internal.hides_nothing(current_user))'
            -- What others did to something that is seen may have been told names that are not.
            WHEN 'request' THEN 'login IN (SELECT weir_internal.logins_of_teams()) OR weir_internal.hides_nothing(current_user)
                OR object IN (SELECT weir_internal.seen_names()) AND NOT weir_internal.tells_hidden(result::text)'
            WHEN 'job_run' THEN 'login IN (SELECT weir_internal.logins_of_teams()) OR weir_internal.hides_nothing(current_user)
                OR weir_internal.names_in(arguments) <@ ARRAY(SELECT weir_internal.seen_names())
                   AND NOT weir_internal.tells_hidden(concat_ws('' '', arguments, report, progress, error))'
            ELSE seen END;
        changed := CASE WHEN one.relname IN ('reader', 'checkpoint')
            THEN 'group_id NOT IN (SELECT weir_internal.groups_of_others(current_user))'
            WHEN one.relname IN ('job_run', 'request') THEN 'true'
            WHEN one.relname = 'garbage' THEN by_stream ELSE seen END;
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', one.name);
        EXECUTE format('DROP POLICY IF EXISTS everything ON %s', one.name);
        EXECUTE format('DROP POLICY IF EXISTS of_teams ON %s', one.name);
        EXECUTE format('CREATE POLICY everything ON %s TO weir_jobs USING (true)', one.name);
        EXECUTE format('CREATE POLICY of_teams ON %s TO weir_team, weir_reader USING (%s) WITH CHECK (%s)',
                       one.name, seen, changed);
    END LOOP;
END $$;

-- A team changes the runs and requests of its logins, and those of others only if they are about what it owns (a key that is to
-- be forgotten may be in them).
DO $$
DECLARE
    told record;
    owned CONSTANT text := 'SELECT s.stream_name FROM weir_internal.stream s WHERE s.owner IN (SELECT weir_internal.own_roles())
        UNION ALL SELECT g.name FROM weir_internal.reader_group g WHERE g.owner IN (SELECT weir_internal.own_roles())';
BEGIN
    FOR told IN VALUES ('job_run', format('weir_internal.names_in(arguments) <@ ARRAY(%s)', owned)),
                       ('request', format('object IN (%s)', owned)) LOOP
        EXECUTE format('DROP POLICY IF EXISTS of_own_logins ON weir_internal.%I', told.column1);
        EXECUTE format('CREATE POLICY of_own_logins ON weir_internal.%I AS RESTRICTIVE FOR UPDATE TO weir_team
            USING (login IN (SELECT weir_internal.logins_of_teams()) OR %s)', told.column1, told.column2);
    END LOOP;
END $$;

-- A triggerer asks what is to be announced and what has come about, and records what was announced.
GRANT USAGE ON SCHEMA weir_internal TO weir_watcher;
GRANT EXECUTE ON FUNCTION weir_internal.watch_streams, weir_internal.to_announce, weir_internal.announced,
    weir_internal.progress_of, weir_internal.work
TO weir_watcher;
GRANT EXECUTE ON FUNCTION weir_internal.work TO weir_reader;

-- These run with the rights of weir_publisher, which needs CREATE for as long as it is given them. Nobody may execute them
-- but the owner, whose functions look first who asks for what (publishing_door.sql).
REVOKE EXECUTE ON FUNCTION weir_internal.publish_staging, weir_internal.settle_constraints,
    weir_internal.lend_staging, weir_internal.empty_staging
FROM weir_jobs, weir_team, weir_reader;
GRANT USAGE ON SCHEMA weir_staging TO weir_publisher;
GRANT USAGE, CREATE ON SCHEMA weir_internal TO weir_publisher;
ALTER FUNCTION weir_internal.publish_staging OWNER TO weir_publisher;
ALTER FUNCTION weir_internal.settle_constraints OWNER TO weir_publisher;
DO $$
DECLARE
    owner CONSTANT name := current_user;
BEGIN
    SET LOCAL ROLE weir_publisher;
    EXECUTE format('GRANT EXECUTE ON FUNCTION weir_internal.publish_staging, weir_internal.settle_constraints TO %I', owner);
    RESET ROLE;
END $$;
REVOKE USAGE, CREATE ON SCHEMA weir_internal FROM weir_publisher;
