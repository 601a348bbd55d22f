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

-- Puts every row of the pieces into the table, or raises an error. It runs as weir_publisher, which may only read
-- the rows that are lent to it and do to tables what was granted to it. The triggers of the table, and the function that the output names, run with the rights of that role, and cannot change
-- the role inside a function like this one. in_path is the search path for them. in_how: {mode, key, newest, call,
-- batch}, as weir.reader_groups.outputs.publication describes it.
CREATE OR REPLACE FUNCTION weir_internal.publish_staging(in_name text, in_table text, in_pieces text[], in_path text, in_how jsonb)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    staging CONSTANT regclass := format('weir_staging.%I', in_name)::regclass;
    mode CONSTANT text := in_how ->> 'mode';
    target regclass;
    staged bigint;
    changed text;
    names text;
    given text;
    keys text;
    matches text;
    newest text;
    later text;
    settings text;
    rows CONSTANT text := format(' FROM weir_staging.%I WHERE _weir_piece OPERATOR(pg_catalog.=) ANY ($1)', in_name);
    removal text;
    statement text;
    following text;
    argument jsonb;
BEGIN
    IF current_setting('session_replication_role') = 'replica' THEN
        RAISE EXCEPTION 'triggers and foreign keys of table % would not work, because login % has the setting '
            'session_replication_role = replica; run ALTER ROLE % RESET session_replication_role, and connect again.',
            in_table, session_user, session_user USING ERRCODE = 'WEIR2', DETAIL = 'triggers_disabled';
    END IF;
    EXECUTE 'SELECT count(*)' || rows INTO staged USING in_pieces;
    target := format('%I.%I', split_part(in_table, '.', 1), split_part(in_table, '.', 2))::regclass;
    -- Two transactions that replace the rows of a table at the same time would leave the rows of both.
    EXECUTE format('LOCK TABLE ONLY %s IN %s MODE', target,
        CASE mode WHEN 'replace' THEN 'SHARE ROW EXCLUSIVE' ELSE 'ROW EXCLUSIVE' END);
    -- Rows that were written for other columns would silently be rounded, cut off or left out.
    SELECT attname INTO changed
    FROM (SELECT a.attname, a.atttypid, a.atttypmod FROM pg_attribute a
          WHERE a.attrelid = staging AND a.attnum > 1 AND NOT a.attisdropped
            AND a.attname NOT IN ('_weir_clock', '_weir_place')) s
    FULL JOIN (
        SELECT a.attname, a.attgenerated <> '' OR a.attidentity = 'a' AS generated,
               a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS required,
               CASE WHEN b.typtype = 'e' THEN 'text'::regtype ELSE b.oid END AS staged_type,
               CASE WHEN b.typtype = 'e' THEN -1 WHEN t.typtype = 'd' THEN t.typtypmod
                    ELSE a.atttypmod END AS modifier
        FROM pg_attribute a
        JOIN pg_type t ON t.oid = a.atttypid
        JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
        WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped) g USING (attname)
    WHERE CASE WHEN s.atttypid IS NULL THEN g.required
          ELSE (s.atttypid, s.atttypmod, false) IS DISTINCT FROM (g.staged_type, g.modifier, g.generated)
          END
    LIMIT 1;
    IF changed IS NOT NULL THEN
        RAISE EXCEPTION 'column % of table % was changed after the rows were written',
            quote_literal(changed), in_table USING ERRCODE = 'WEIR3';
    END IF;
    -- Text needs a cast only for an enumeration.
    SELECT string_agg(quote_ident(t.attname), ', ' ORDER BY t.attnum),
           string_agg(CASE WHEN y.typtype = 'e'
                      THEN format('%I::%s', t.attname, format_type(y.oid, NULL))
                      ELSE quote_ident(t.attname) END, ', ' ORDER BY t.attnum),
           string_agg(format('%1$I = excluded.%1$I', t.attname), ', ' ORDER BY t.attnum)
               FILTER (WHERE NOT in_how -> 'key' ? t.attname),
           string_agg(format('w.%1$I = s.%1$I', t.attname)
                      || CASE WHEN y.typtype = 'e' THEN '::' || format_type(y.oid, NULL) ELSE '' END, ' AND ')
               FILTER (WHERE in_how -> 'key' ? t.attname)
    INTO names, given, settings, matches
    FROM pg_attribute s
    JOIN pg_attribute t ON t.attrelid = target AND t.attname = s.attname
    JOIN pg_type y ON y.oid = t.atttypid
    WHERE s.attrelid = staging AND s.attnum > 1 AND NOT t.attisdropped
      AND s.attname NOT IN ('_weir_clock', '_weir_place');
    SELECT string_agg(quote_ident(k), ', ' ORDER BY i)
    INTO keys FROM jsonb_array_elements_text(in_how -> 'key') WITH ORDINALITY AS x (k, i);
    -- Staged values of an enumeration are text, which has another order.
    SELECT string_agg(format('%I%s DESC, ', n,
               CASE WHEN y.typtype = 'e' THEN '::' || format_type(y.oid, NULL) ELSE '' END), '' ORDER BY i),
           format(' WHERE ROW(%s) OPERATOR(pg_catalog.>=) ROW(%s)',
               string_agg(format('excluded.%I', n), ', ' ORDER BY i), string_agg(format('w.%I', n), ', ' ORDER BY i))
    INTO newest, later
    FROM jsonb_array_elements_text(in_how -> 'newest') WITH ORDINALITY AS x (n, i)
    JOIN pg_attribute t ON t.attrelid = target AND t.attname = n
    JOIN pg_type y ON y.oid = t.atttypid;
    IF mode = 'replace' THEN
        removal := format('DELETE FROM %s w', target);
        IF keys IS NOT NULL THEN
            removal := removal || format(' USING (SELECT DISTINCT %s%s) s WHERE %s', keys, rows, matches);
        END IF;
    END IF;
    IF mode = 'upsert' THEN
        -- Of several rows of a key the last one; in the order of the key, so that two transactions that change the
        -- same rows wait for each other instead of blocking each other for ever.
        statement := format('INSERT INTO %s AS w (%s) SELECT %s FROM (SELECT DISTINCT ON (%s) *%s '
            'ORDER BY %s, %s_weir_clock DESC, _weir_place DESC) s ON CONFLICT (%s) %s',
            target, names, given, keys, rows, keys, coalesce(newest, ''), keys,
            coalesce('DO UPDATE SET ' || settings || CASE WHEN newest IS NULL THEN '' ELSE later END, 'DO NOTHING'));
    ELSE
        statement := format('INSERT INTO %s (%s) SELECT %s', target, names, given) || rows;
    END IF;
    IF in_how ->> 'call' IS NOT NULL THEN
        following := format('SELECT %I.%I($1)', split_part(in_how ->> 'call', '.', 1), split_part(in_how ->> 'call', '.', 2));
        argument := (in_how -> 'batch') || jsonb_build_object('table', in_table, 'rows', staged);
    END IF;
    -- From here on names may be looked up in schemas of other people.
    PERFORM set_config('search_path', in_path, true);
    IF removal IS NOT NULL THEN
        EXECUTE removal USING in_pieces;
    END IF;
    EXECUTE statement USING in_pieces;
    IF following IS NOT NULL THEN
        EXECUTE following USING argument;
    END IF;
    RETURN staged;
END $$;
COMMENT ON FUNCTION weir_internal.publish_staging(text, text, text[], text, jsonb) IS 'Puts staged rows into the table they are for; returns how many there were.';

-- Runs deferred triggers now: at the commit they would run with the rights of the jobs' login. Postgres 18 records
-- the role with a deferred trigger. Before 18, a trigger may defer something again without a trace, so the function
-- refuses deferrable triggers of other owners.
CREATE OR REPLACE FUNCTION weir_internal.settle_constraints(in_tables text[], in_paths text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    names text;
    found record;
BEGIN
    FOR i IN 1 .. cardinality(in_tables) LOOP
        SELECT string_agg(format('%I.%I', n.nspname, c.conname), ', ') INTO names
        FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
        WHERE c.conrelid = format('%I.%I', split_part(in_tables[i], '.', 1), split_part(in_tables[i], '.', 2))::regclass
          AND c.contype = 't' AND c.condeferrable;
        PERFORM set_config('search_path', in_paths[i], true);
        IF names IS NOT NULL THEN
            EXECUTE format('SET CONSTRAINTS %s IMMEDIATE', names);
        END IF;
        PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    END LOOP;
    SET CONSTRAINTS ALL IMMEDIATE;
    IF current_setting('server_version_num')::integer < 180000 THEN
        SELECT t.tgname, t.tgrelid::regclass AS relation INTO found
        FROM pg_trigger t
        JOIN pg_class c ON c.oid = t.tgrelid
        JOIN pg_proc f ON f.oid = t.tgfoid
        WHERE t.tgdeferrable AND NOT t.tgisinternal AND EXISTS (
            SELECT FROM pg_roles r WHERE r.oid IN (c.relowner, f.proowner) AND NOT r.rolsuper
              AND r.oid <> (SELECT nspowner FROM pg_namespace WHERE nspname = 'weir'))
        LIMIT 1;
        IF found.tgname IS NOT NULL THEN
            RAISE EXCEPTION 'trigger % of table % is deferrable, and Postgres before version 18 would '
                'run it with the rights of Weir''s jobs; make it NOT DEFERRABLE, or drop it.',
                quote_literal(found.tgname), found.relation USING ERRCODE = 'WEIR2', DETAIL = 'trigger_deferrable';
        END IF;
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.settle_constraints(text[], text[]) IS 'Checks the deferred constraints of tables.';

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
