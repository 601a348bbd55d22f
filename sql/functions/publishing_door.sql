-- The one door to what runs as weir_publisher. All tables share that role, so nobody else may execute its functions
-- (roles.sql): here is looked first whether the caller may do to a table what it asks, and afterwards whether the triggers and
-- functions of the tables' owners have left alone what is not theirs.

-- The owner of Weir's schemas need not have a right to that of the table, so that ::regclass would not find it.
CREATE OR REPLACE FUNCTION weir_internal.output_table(in_table text) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = split_part(in_table, '.', 1) AND c.relname = split_part(in_table, '.', 2)
$$;
COMMENT ON FUNCTION weir_internal.output_table(text) IS 'The table that an output names; null if there is none.';

CREATE OR REPLACE FUNCTION weir_internal.missing_rights(in_role name, in_table regclass, in_what text) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT ARRAY(
        SELECT format('USAGE ON SCHEMA %I', n.nspname) WHERE NOT has_schema_privilege(in_role, n.oid, 'USAGE')
        UNION ALL
        SELECT string_agg(r, ', ' ORDER BY i) || format(' ON %I.%I', n.nspname, c.relname)
        FROM unnest(CASE in_what WHEN 'upsert' THEN '{SELECT, INSERT, UPDATE}' WHEN 'replace' THEN '{SELECT, INSERT, DELETE}'
                    WHEN 'erase' THEN '{SELECT, DELETE}' WHEN 'count' THEN '{SELECT}' ELSE '{INSERT}' END::text[])
            WITH ORDINALITY g (r, i)
        WHERE NOT has_table_privilege(in_role, c.oid, r) HAVING count(*) > 0)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = in_table
$$;
COMMENT ON FUNCTION weir_internal.missing_rights(name, regclass, text) IS 'What is to be granted to a role that is to publish rows in a table by a mode, or to erase or count them: the part of a GRANT before TO, for each GRANT.';

-- Jobs may write what people granted to weir_publisher. A team's login may write what it could write by itself; policies
-- are for weir_publisher, and not for who asks, so a table that has some is written by its owner's logins.
CREATE OR REPLACE FUNCTION weir_internal.missing_rights_of_caller(in_table regclass, in_what text) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN weir_internal.sees_all(asking) OR pg_has_role(asking, c.relowner, 'USAGE') THEN '{}'
        WHEN c.relrowsecurity THEN ARRAY[quote_ident(pg_get_userbyid(c.relowner))]
        ELSE weir_internal.missing_rights(asking, c.oid, in_what) END
    FROM pg_class c, weir_internal.asking() WHERE c.oid = in_table
$$;
COMMENT ON FUNCTION weir_internal.missing_rights_of_caller(regclass, text) IS 'What is to be granted to the login that asks, as missing_rights says it.';

-- The right that PUBLIC has by default does not do: who may start a consumer could call what was not made for that. The
-- function runs as weir_publisher for the owner of the table only.
CREATE OR REPLACE FUNCTION weir_internal.check_call(in_table text, in_call text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    called pg_proc;
    schema text;
    owner oid;
BEGIN
    SELECT p.* INTO called FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = split_part(in_call, '.', 1) AND p.proname = split_part(in_call, '.', 2)
      AND p.prokind = 'f' AND p.pronargs = 1 AND p.proargtypes[0] = 'jsonb'::regtype;
    IF called.oid IS NULL THEN
        RAISE EXCEPTION 'there is no function %(jsonb) in Weir''s database; create it, with one argument of type jsonb.', in_call
            USING ERRCODE = 'WEIR1', DETAIL = 'function_not_found';
    END IF;
    schema := quote_ident(split_part(in_call, '.', 1));
    IF NOT has_schema_privilege('weir_publisher', called.pronamespace, 'USAGE') OR NOT EXISTS (
        SELECT FROM aclexplode(called.proacl) a JOIN pg_roles r ON r.oid = a.grantee
        WHERE r.rolname = 'weir_publisher' AND a.privilege_type = 'EXECUTE')
    THEN
        RAISE EXCEPTION 'function % was not granted to the role weir_publisher by name; run GRANT USAGE ON SCHEMA % TO weir_publisher; GRANT EXECUTE ON FUNCTION %.%(jsonb) TO weir_publisher.',
            in_call, schema, schema, quote_ident(called.proname) USING ERRCODE = 'WEIR2', DETAIL = 'right_missing';
    END IF;
    SELECT c.relowner INTO owner FROM pg_class c WHERE c.oid = weir_internal.output_table(in_table);
    IF owner <> called.proowner THEN
        RAISE EXCEPTION 'function % belongs to the role %, and table % to %, and Weir calls only functions of the table''s owner; run ALTER FUNCTION %.%(jsonb) OWNER TO %.',
            in_call, pg_get_userbyid(called.proowner), in_table, pg_get_userbyid(owner), schema, quote_ident(called.proname),
            quote_ident(pg_get_userbyid(owner)) USING ERRCODE = 'WEIR2', DETAIL = 'function_not_allowed';
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.check_call(text, text) IS 'Refuses a function that is not of the owner of a table, or was not granted to weir_publisher by name.';

-- What this transaction has written to the catalogue, which cursors it has open, and what it has written to or read from the
-- tables of others that weir_publisher may use, also below their views and in parts that were rolled back. A row may reach
-- where foreign keys lead.
CREATE OR REPLACE FUNCTION weir_internal.publishing_state(in_tables text[]) RETURNS TABLE (kind text, name text, amount bigint)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    WITH RECURSIVE output AS MATERIALIZED (
        SELECT c.oid, c.relowner FROM unnest(in_tables) t JOIN pg_class c ON c.oid = weir_internal.output_table(t)
    ), linked (oid) AS (
        SELECT oid FROM output
        UNION
        SELECT CASE WHEN k.conrelid = l.oid THEN k.confrelid ELSE k.conrelid END
        FROM linked l JOIN pg_constraint k ON k.contype = 'f' AND l.oid IN (k.conrelid, k.confrelid)
    ), usable (oid) AS (
        SELECT c.oid FROM pg_shdepend d JOIN pg_class c ON c.oid = d.objid
        WHERE d.refclassid = 'pg_authid'::regclass AND d.refobjid = (SELECT oid FROM pg_roles WHERE rolname = 'weir_publisher')
          AND d.classid = 'pg_class'::regclass AND d.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND c.relnamespace <> 'weir_staging'::regnamespace AND c.relowner NOT IN (SELECT relowner FROM output)
        UNION
        SELECT d.refobjid FROM usable u JOIN pg_rewrite w ON w.ev_class = u.oid
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
            AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> u.oid
    )
    SELECT 'catalogue', 'catalogue', sum(pg_stat_get_xact_tuples_inserted(c.oid) + pg_stat_get_xact_tuples_updated(c.oid)
                                         + pg_stat_get_xact_tuples_deleted(c.oid))::bigint
    FROM pg_class c WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind = 'r'
    UNION ALL
    SELECT 'cursor', 'cursor', count(*) FROM pg_cursors p WHERE p.name <> ''
    UNION ALL
    SELECT 'table', c.oid::regclass::text, sum(
        pg_stat_get_xact_tuples_inserted(part.oid) + pg_stat_get_xact_tuples_updated(part.oid)
        + pg_stat_get_xact_tuples_deleted(part.oid) + pg_stat_get_xact_numscans(part.oid)
        + pg_stat_get_xact_blocks_fetched(part.oid)
        + coalesce((SELECT sum(pg_stat_get_xact_blocks_fetched(i.indexrelid)) FROM pg_index i WHERE i.indrelid = part.oid), 0)
        )::bigint
    FROM usable u JOIN pg_class c ON c.oid = u.oid AND c.relkind IN ('r', 'p', 'm', 'S')
    CROSS JOIN LATERAL (SELECT c.oid UNION SELECT t.relid FROM pg_partition_tree(c.oid) t) part
    WHERE c.relowner NOT IN (SELECT relowner FROM output) AND c.oid NOT IN (SELECT oid FROM linked)
    GROUP BY c.oid
$$;
COMMENT ON FUNCTION weir_internal.publishing_state(text[]) IS 'What the triggers and functions of output tables must leave as it is.';

CREATE OR REPLACE FUNCTION weir_internal.publish_tables(in_outputs jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    tables CONSTANT text[] := ARRAY(SELECT o ->> 'table' FROM jsonb_array_elements(in_outputs) WITH ORDINALITY g (o, i) ORDER BY i);
    stagings CONSTANT text[] := ARRAY(SELECT o ->> 'staging' FROM jsonb_array_elements(in_outputs) o);
    names CONSTANT text := array_to_string(tables, ', ');
    paths text[];
    one jsonb;
    missing text[];
    told jsonb;
    done jsonb := '[]';
    before jsonb;
    changed record;
BEGIN
    FOR one IN SELECT o FROM jsonb_array_elements(in_outputs) WITH ORDINALITY g (o, i) ORDER BY i LOOP
        missing := weir_internal.missing_rights_of_caller(weir_internal.output_table(one ->> 'table'), one #>> '{how,mode}');
        IF missing <> '{}' THEN
            RAISE EXCEPTION 'login % may not % rows of table %; run %.', weir_internal.asking(), one #>> '{how,mode}', one ->> 'table',
                (SELECT string_agg(format('GRANT %s TO %I', m, weir_internal.asking()), '; ') FROM unnest(missing) m)
                USING ERRCODE = 'WEIR2', DETAIL = 'right_missing';
        END IF;
        IF one #>> '{how,call}' IS NOT NULL THEN
            PERFORM weir_internal.check_call(one ->> 'table', one #>> '{how,call}');
        END IF;
        PERFORM weir_internal.lend_staging(one ->> 'staging');
    END LOOP;
    paths := ARRAY(SELECT coalesce(weir_internal.owner_path(t), '') FROM unnest(tables) WITH ORDINALITY g (t, i) ORDER BY i);
    SELECT jsonb_object_agg(s.kind || ' ' || s.name, s.amount) INTO before FROM weir_internal.publishing_state(tables) s;
    FOR i IN 1 .. cardinality(tables) LOOP
        one := in_outputs -> i - 1;
        -- The name is in the statement so that it is in the context of an error.
        EXECUTE format('SELECT weir_internal.publish_staging($1, %L, $2, $3, $4)', tables[i]) INTO told
        USING one ->> 'staging', ARRAY(SELECT jsonb_array_elements_text(one -> 'pieces')), paths[i], one -> 'how';
        PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);  -- a trigger may have set another one
        done := done || jsonb_build_array(told);
    END LOOP;
    PERFORM weir_internal.settle_constraints(tables, paths);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    -- From here on nothing of a trigger runs, and no setting of one counts.
    SELECT s.kind, s.name INTO changed FROM weir_internal.publishing_state(tables) s
    WHERE s.amount <> coalesce((before ->> (s.kind || ' ' || s.name))::bigint, 0) OR s.kind = 'cursor' AND s.amount > 0
    ORDER BY s.kind DESC, s.name LIMIT 1;
    IF changed.kind = 'table' THEN
        RAISE EXCEPTION 'a trigger or function of table % reads or changes table % of another owner, so nothing was committed; remove that from it, or let one role own both tables.', names, changed.name
            USING ERRCODE = 'WEIR5', DETAIL = 'trigger_not_allowed';
    ELSIF changed.kind = 'cursor' THEN
        RAISE EXCEPTION 'a cursor is open where the rows of table % are committed, by which what runs there could hand out rows, so nothing was committed; close it.', names
            USING ERRCODE = 'WEIR5', DETAIL = 'trigger_not_allowed';
    ELSIF changed.kind = 'catalogue' THEN
        RAISE EXCEPTION 'a trigger or function of table % creates, changes, grants or drops something in the database, so nothing was committed; remove that from it.', names
            USING ERRCODE = 'WEIR5', DETAIL = 'trigger_not_allowed';
    END IF;
    PERFORM weir_internal.empty_staging(stagings);
    RETURN done;
END $$;
COMMENT ON FUNCTION weir_internal.publish_tables(jsonb) IS 'Puts staged rows into the tables they are for, calls the functions that follow, and checks deferred constraints. in_outputs: {staging, table, pieces, how} each. Returns what publish_staging does, each.';
