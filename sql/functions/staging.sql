-- Rows that a batch writes to a table: executors copy them into a staging table in weir_staging, and the commit of
-- the batch inserts them into the target table. Jobs may change rows but not create tables, so the functions that
-- create and drop staging tables run with the rights of the owner. Jobs give names and types as identifiers and
-- type numbers, never as SQL.

-- The functions below run with the rights of the owner, for whoever may call them.
CREATE OR REPLACE FUNCTION weir_internal.check_staging(in_name text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    login CONSTANT name := weir_internal.asking();
BEGIN
    IF NOT weir_internal.sees_all(login) AND EXISTS (
        SELECT FROM pg_class c WHERE c.relnamespace = 'weir_staging'::regnamespace AND c.relname = in_name
          AND NOT has_table_privilege(login, c.oid, 'SELECT')) THEN
        RAISE EXCEPTION 'the staged rows % are not those of login %; use your own.', in_name, login
            USING ERRCODE = 'WEIR2', DETAIL = 'staging_of_others';
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.check_staging(text) IS 'Refuses a table of staged rows that a team''s login did not make.';

CREATE OR REPLACE FUNCTION weir_internal.make_staging(in_name text, in_columns text[], in_types oid[], in_modifiers integer[])
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    definitions text;
    names text;
BEGIN
    PERFORM weir_internal.check_staging(in_name);
    SELECT string_agg(format('%I %s', c.name, format_type(c.type, c.modifier)), ', ' ORDER BY c.i),
           string_agg(quote_ident(c.name), ', ' ORDER BY c.i)
    INTO definitions, names
    FROM unnest(in_columns, in_types, in_modifiers) WITH ORDINALITY AS c (name, type, modifier, i);
    EXECUTE format('DROP TABLE IF EXISTS weir_staging.%I', in_name);  -- left by a COMMIT whose answer was lost
    -- Unlogged: after a crash of the server the table is empty, and the commit detects that by the count. The
    -- piece distinguishes the rows of a committed copy from those of a copy that was repeated.
    EXECUTE format('CREATE UNLOGGED TABLE weir_staging.%I '
        '(_weir_piece text NOT NULL DEFAULT pg_current_xact_id()::text, %s)', in_name, definitions);
    EXECUTE format('GRANT SELECT, INSERT ON weir_staging.%I TO weir_jobs', in_name);
    IF NOT weir_internal.sees_all(weir_internal.asking()) THEN  -- a team's login, and no other team's
        EXECUTE format('GRANT SELECT, INSERT ON weir_staging.%I TO %I', in_name, weir_internal.asking());
    END IF;
    RETURN format('COPY weir_staging.%I (%s) FROM STDIN (FORMAT csv, ENCODING ''UTF8'')', in_name, names);
END $$;
COMMENT ON FUNCTION weir_internal.make_staging(text, text[], oid[], integer[]) IS 'Makes a table for the rows that a reader writes; returns the COPY that fills it.';

-- The triggers of the table are written for this search path.
CREATE OR REPLACE FUNCTION weir_internal.owner_path(in_table text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT replace(replace(coalesce(
        (SELECT substr(setting, 13)
         FROM pg_db_role_setting s CROSS JOIN LATERAL unnest(s.setconfig) AS setting
         WHERE s.setrole IN (c.relowner, 0) AND setting LIKE 'search\_path=%'
           AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
         ORDER BY s.setrole = 0, s.setdatabase = 0 LIMIT 1), '"$user", public'),
        '"$user"', '$user'), '$user', quote_ident(pg_get_userbyid(c.relowner)))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = split_part(in_table, '.', 1) AND c.relname = split_part(in_table, '.', 2)
$$;
COMMENT ON FUNCTION weir_internal.owner_path(text) IS 'The search path that the owner of a table has after logging in.';

-- What a trigger or function that runs with the rights of weir_publisher could change or reach, and must not: the
-- functions of that role and what was granted to it, and the tables of others that it may use. amount: a number that
-- another one shows to be changed; of a table, what this transaction has written and how often it has looked there.
-- Tables of the owners of in_tables, and of the functions in_calls, are theirs; a row may reach where foreign keys lead.
CREATE OR REPLACE FUNCTION weir_internal.publishing_state(in_tables text[], in_calls text[]) RETURNS TABLE (kind text, name text, amount bigint)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    WITH RECURSIVE publisher AS MATERIALIZED (
        SELECT oid FROM pg_roles WHERE rolname = 'weir_publisher'
    ), output AS MATERIALIZED (
        SELECT c.oid, c.relowner FROM unnest(in_tables) t
        JOIN pg_namespace n ON n.nspname = split_part(t, '.', 1)
        JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = split_part(t, '.', 2)
    ), owners AS MATERIALIZED (
        SELECT relowner AS oid FROM output
        UNION
        SELECT f.proowner FROM unnest(in_calls) t
        JOIN pg_namespace n ON n.nspname = split_part(t, '.', 1)
        JOIN pg_proc f ON f.pronamespace = n.oid AND f.proname = split_part(t, '.', 2)
        WHERE f.prokind = 'f' AND f.pronargs = 1 AND f.proargtypes[0] = 'jsonb'::regtype
    ), grants AS MATERIALIZED (
        SELECT d.classid, d.objid, d.objsubid FROM pg_shdepend d JOIN publisher p ON d.refobjid = p.oid
        WHERE d.refclassid = 'pg_authid'::regclass AND d.deptype = 'a'
          AND d.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    ), linked (oid) AS (
        SELECT oid FROM output
        UNION
        SELECT CASE WHEN k.conrelid = l.oid THEN k.confrelid ELSE k.conrelid END
        FROM linked l JOIN pg_constraint k ON k.contype = 'f' AND l.oid IN (k.conrelid, k.confrelid)
    )
    SELECT 'function', f.oid::regprocedure::text, f.xmin::text::bigint
    FROM pg_proc f JOIN publisher p ON f.proowner = p.oid
    UNION ALL
    SELECT 'grant', concat_ws(' ', g.classid, g.objid), count(*) FROM grants g
    WHERE g.classid <> 'pg_class'::regclass
       OR g.objid NOT IN (SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'weir_staging'::regnamespace)
    GROUP BY g.classid, g.objid
    UNION ALL
    SELECT 'table', c.oid::regclass::text, sum(
        pg_stat_get_xact_tuples_inserted(part.oid) + pg_stat_get_xact_tuples_updated(part.oid)
        + pg_stat_get_xact_tuples_deleted(part.oid) + pg_stat_get_xact_numscans(part.oid)
        + coalesce((SELECT sum(pg_stat_get_xact_numscans(i.indexrelid)) FROM pg_index i WHERE i.indrelid = part.oid), 0)
        )::bigint
    FROM (SELECT DISTINCT objid FROM grants WHERE classid = 'pg_class'::regclass) g
    JOIN pg_class c ON c.oid = g.objid AND c.relkind IN ('r', 'p')
    CROSS JOIN LATERAL (SELECT c.oid UNION SELECT t.relid FROM pg_partition_tree(c.oid) t) part
    WHERE c.relnamespace <> 'weir_staging'::regnamespace
      AND c.relowner NOT IN (SELECT oid FROM owners) AND c.oid NOT IN (SELECT oid FROM linked)
    GROUP BY c.oid
$$;
COMMENT ON FUNCTION weir_internal.publishing_state(text[], text[]) IS 'What the triggers of output tables must leave as it is.';

-- Nothing that runs with the rights of weir_publisher sees the staged rows of another batch: they are lent to it for
-- the transaction that publishes them and empties their table.
CREATE OR REPLACE FUNCTION weir_internal.lend_staging(in_name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM weir_internal.check_staging(in_name);
    EXECUTE format('GRANT SELECT ON weir_staging.%I TO weir_publisher', in_name);
END $$;
COMMENT ON FUNCTION weir_internal.lend_staging(text) IS 'Lets weir_publisher read staged rows.';

-- A reader uses its staging table again for its next batch: to make and drop one costs more than a small batch. Rows
-- that are only deleted stay in the file until a vacuum, so that a larger file is replaced.
CREATE OR REPLACE FUNCTION weir_internal.empty_staging(in_names text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    staging regclass;
BEGIN
    PERFORM weir_internal.check_staging(n) FROM unnest(in_names) n;
    FOREACH staging IN ARRAY (SELECT array_agg(format('weir_staging.%I', n)::regclass) FROM unnest(in_names) n) LOOP
        EXECUTE format('REVOKE SELECT ON %s FROM weir_publisher', staging);
        IF pg_relation_size(staging) > 1048576 THEN
            EXECUTE format('TRUNCATE %s', staging);
        ELSE
            EXECUTE format('DELETE FROM %s', staging);
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION weir_internal.empty_staging(text[]) IS 'Empties tables of staged rows that were published, and takes them back from weir_publisher.';

CREATE OR REPLACE FUNCTION weir_internal.drop_staging(in_name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM weir_internal.check_staging(in_name);
    EXECUTE format('DROP TABLE IF EXISTS weir_staging.%I', in_name);
END $$;
COMMENT ON FUNCTION weir_internal.drop_staging(text) IS 'Drops a table of staged rows.';

CREATE OR REPLACE FUNCTION weir_internal.abandoned_staging() RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT c.relname::text FROM pg_class c
    CROSS JOIN LATERAL regexp_match(c.relname, '^g(\d+)_t(\d+)_') n
    WHERE c.relnamespace = 'weir_staging'::regnamespace AND c.relkind = 'r'
      AND NOT EXISTS (SELECT FROM weir_internal.reader r
                      WHERE r.group_id = n[1]::bigint AND r.token = n[2]::bigint
                        AND r.lease_until <> '-infinity')
      AND NOT EXISTS (SELECT FROM weir_internal.reader_batch b
                      WHERE b.state = 'open' AND b.group_id = n[1]::bigint AND b.token = n[2]::bigint)
    ORDER BY c.oid
$$;
COMMENT ON FUNCTION weir_internal.abandoned_staging() IS 'The tables of staged rows whose reader can no longer commit.';
