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
            USING ERRCODE = 'WEIR2', DETAIL = 'right_missing';
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.check_staging(text) IS 'Refuses a table of staged rows that a team''s login did not make.';

CREATE OR REPLACE FUNCTION weir_internal.make_staging(in_name text, in_columns text[], in_types oid[], in_modifiers integer[])
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    login CONSTANT name := weir_internal.asking();
    named CONSTANT text[] := regexp_match(in_name, '^g([0-9]{1,18})_t([0-9]{1,18})_[0-9]{1,9}$');
    definitions text;
    names text;
    wrong text;
BEGIN
    PERFORM weir_internal.check_staging(in_name);
    -- Who could take the name that another's reader will need would keep it from working.
    IF named IS NULL OR NOT weir_internal.sees_all(login) AND NOT EXISTS (
        SELECT FROM weir_internal.reader r
        WHERE r.group_id = named[1]::bigint AND r.token = named[2]::bigint
          AND r.group_id NOT IN (SELECT weir_internal.groups_of_others(login))
          AND r.group_id NOT IN (SELECT weir_internal.hidden_groups(login)))
    THEN
        RAISE EXCEPTION 'login % can''t stage rows under the name %; a name is that of a reader of its own: gGROUP_tTOKEN_NUMBER.',
            login, quote_literal(in_name) USING ERRCODE = 'WEIR2', DETAIL = 'right_missing';
    END IF;
    SELECT attname INTO wrong FROM (
        SELECT c.name AS attname, c.i, t.oid IS NOT NULL AND t.typtype IN ('b', 'r', 'm') AND c.modifier IS NOT NULL
            AND c.name <> '' AND octet_length(c.name) < 64 AND c.name <> '_weir_piece'
            AND row_number() OVER (PARTITION BY c.name) = 1 AS fits
        FROM unnest(in_columns, in_types, in_modifiers) WITH ORDINALITY AS c (name, type, modifier, i)
        LEFT JOIN pg_type t ON t.oid = c.type) given
    WHERE fits IS NOT TRUE ORDER BY i LIMIT 1;
    IF FOUND OR cardinality(in_columns) = 0 THEN
        RAISE EXCEPTION 'rows can''t be staged with the column %; give each name once, with the number of a base type of Postgres and its modifier.',
            coalesce(quote_literal(wrong), 'null') USING ERRCODE = 'WEIR2', DETAIL = 'argument_invalid';
    END IF;
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
    IF NOT weir_internal.sees_all(login) THEN  -- a team's login, and no other team's
        EXECUTE format('GRANT SELECT, INSERT ON weir_staging.%I TO %I', in_name, login);
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
    FROM pg_class c WHERE c.oid = weir_internal.output_table(in_table)
$$;
COMMENT ON FUNCTION weir_internal.owner_path(text) IS 'The search path that the owner of a table has after logging in.';

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
