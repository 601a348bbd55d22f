-- What the commit of a batch does to its tables, and whether a table did what it was told to do.

-- Puts every row of the pieces into the table as it was staged, or raises an error. Returns how many there were
-- (staged), and what the table did otherwise, if its owner lets it (told). It runs as weir_publisher, which may only read
-- the rows that are lent to it and do to tables what was granted to it. The triggers of the table, and the function that the output names, run with the rights of that role, and cannot change
-- the role inside a function like this one. in_path is the search path for them. in_how: {mode, key, newest, call,
-- batch}, as weir.reader_groups.outputs.publication describes it.
CREATE OR REPLACE FUNCTION weir_internal.publish_staging(in_name text, in_table text, in_pieces text[], in_path text, in_how jsonb)
RETURNS jsonb
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
    fields text;
    given_fields text;
    newer text;
    parts oid[];
    triggered boolean;
    ruled boolean;
    remote boolean;
    watched boolean;
    declared boolean;
    hidden boolean;
    checked text;
    removed bigint := 0;
    came bigint;
    differing bigint := 0;
    lasting bigint := 0;
    inserted bigint;
    updated bigint;
    deleted bigint;
    found text[] := '{}';
    said text;
BEGIN
    IF current_setting('session_replication_role') = 'replica' THEN
        RAISE EXCEPTION 'triggers and foreign keys of table % would not work, because login % has the setting '
            'session_replication_role = replica; run ALTER ROLE % RESET session_replication_role, and connect again.',
            in_table, session_user, session_user USING ERRCODE = 'WEIR2', DETAIL = 'table_refused';
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
               FILTER (WHERE in_how -> 'key' ? t.attname),
           format('ROW(%s)::pg_catalog.text', string_agg(format('w.%I', t.attname), ', ' ORDER BY t.attnum)),
           format('ROW(%s)::pg_catalog.text', string_agg(format('s.%I', t.attname)
                      || CASE WHEN y.typtype = 'e' THEN '::' || format_type(y.oid, NULL) ELSE '' END, ', ' ORDER BY t.attnum))
    INTO names, given, settings, matches, fields, given_fields
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
               string_agg(format('excluded.%I', n), ', ' ORDER BY i), string_agg(format('w.%I', n), ', ' ORDER BY i)),
           format(' OR ROW(%s) OPERATOR(pg_catalog.>) ROW(%s)',
               string_agg(format('w.%I', n), ', ' ORDER BY i),
               string_agg(format('s.%I%s', n, CASE WHEN y.typtype = 'e' THEN '::' || format_type(y.oid, NULL) ELSE '' END), ', ' ORDER BY i))
    INTO newest, later, newer
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
    -- Without triggers, rules and foreign keys to itself, a table takes each row as it is or raises an error.
    parts := ARRAY(
        WITH RECURSIVE part (oid) AS (
            SELECT target::oid UNION SELECT i.inhrelid FROM pg_inherits i JOIN part ON i.inhparent = part.oid)
        SELECT oid FROM part);
    triggered := EXISTS (SELECT FROM pg_trigger t
        WHERE t.tgrelid = ANY (parts) AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A'));
    ruled := EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = target AND r.ev_type = '3' AND r.ev_enabled IN ('O', 'A'));
    remote := EXISTS (SELECT FROM pg_class c WHERE c.oid = ANY (parts) AND c.relkind = 'f');
    watched := triggered OR remote
        OR EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = ANY (parts) AND r.ev_enabled IN ('O', 'A'))
        OR EXISTS (SELECT FROM pg_constraint k WHERE k.contype = 'f' AND k.conrelid = ANY (parts) AND k.confrelid = ANY (parts)
                   AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd')));
    declared := coalesce(obj_description(target, 'pg_class') ~ '\mweir: may change rows\M', false);  -- by its owner
    hidden := mode = 'replace' AND row_security_active(target) AND NOT (
        SELECT coalesce(bool_or(shows AND reads) FILTER (WHERE polpermissive), false)
               AND coalesce(bool_or(shows AND deletes) FILTER (WHERE polpermissive), false)
               AND coalesce(bool_and(shows) FILTER (WHERE NOT polpermissive), true)
        FROM (SELECT polpermissive, polcmd IN ('*', 'r') AS reads, polcmd IN ('*', 'd') AS deletes,
                     coalesce(pg_get_expr(polqual, polrelid) = 'true', false) AS shows
              FROM pg_policy WHERE polrelid = target AND polcmd IN ('*', 'r', 'd')
                AND EXISTS (SELECT FROM unnest(polroles) r WHERE r = 0 OR pg_has_role(r, 'USAGE'))) p);
    IF watched THEN
        SELECT sum(pg_stat_get_xact_tuples_inserted(p)), sum(pg_stat_get_xact_tuples_updated(p)),
               sum(pg_stat_get_xact_tuples_deleted(p))
        INTO inserted, updated, deleted FROM unnest(parts) p;
        IF NOT ruled THEN
            -- Rows as BEFORE triggers have left them, of which each must be one that was staged.
            statement := format('WITH put AS (%1$s RETURNING %2$s) SELECT (SELECT pg_catalog.count(*) FROM put), '
                '(SELECT pg_catalog.count(*) FROM (SELECT ROW(%2$s)::pg_catalog.text FROM put '
                'EXCEPT ALL SELECT ROW(%3$s)::pg_catalog.text%4$s) other)', statement, names, given, rows);
        END IF;
        -- What is in the table when AFTER triggers are done.
        checked := CASE
            WHEN mode = 'upsert' THEN format('SELECT pg_catalog.count(*) FROM (SELECT DISTINCT ON (%1$s) *%2$s '
                'ORDER BY %1$s, %3$s_weir_clock DESC, _weir_place DESC) s WHERE NOT EXISTS (SELECT FROM %4$s w WHERE %5$s '
                'AND (%6$s OPERATOR(pg_catalog.=) %7$s%8$s))',
                keys, rows, coalesce(newest, ''), target, matches, fields, given_fields,
                CASE WHEN newest IS NULL THEN '' ELSE newer END)
            WHEN mode = 'replace' THEN format('SELECT pg_catalog.count(*) FROM (SELECT %1$s FROM %2$s w%3$s '
                'EXCEPT ALL SELECT %4$s FROM (SELECT *%5$s) s) other', fields, target,
                CASE WHEN keys IS NULL THEN '' ELSE format(' WHERE EXISTS (SELECT FROM (SELECT *%s) s WHERE %s)', rows, matches) END,
                given_fields, rows)
            END;
    END IF;
    -- From here on names may be looked up in schemas of other people.
    PERFORM set_config('search_path', in_path, true);
    IF removal IS NOT NULL THEN
        EXECUTE removal USING in_pieces;
        GET DIAGNOSTICS removed = ROW_COUNT;
    END IF;
    IF watched AND NOT ruled THEN
        EXECUTE statement INTO came, differing USING in_pieces;
    ELSE
        EXECUTE statement USING in_pieces;
        GET DIAGNOSTICS came = ROW_COUNT;
    END IF;
    IF checked IS NOT NULL THEN
        EXECUTE checked INTO lasting USING in_pieces;
    END IF;
    PERFORM set_config('search_path', 'pg_catalog, pg_temp', true);
    IF mode <> 'upsert' AND came <> staged THEN
        found := found || format('%s came in', came);
    END IF;
    IF hidden THEN
        found := found || 'its policies may hide rows that are to be replaced'::text;
    END IF;
    IF watched THEN
        IF greatest(differing, lasting) > 0 THEN
            found := found || format('%s are not there as they were staged', greatest(differing, lasting));
        END IF;
        SELECT sum(pg_stat_get_xact_tuples_inserted(p)) - inserted, sum(pg_stat_get_xact_tuples_updated(p)) - updated,
               sum(pg_stat_get_xact_tuples_deleted(p)) - deleted
        INTO inserted, updated, deleted FROM unnest(parts) p;
        IF NOT remote AND current_setting('track_counts')::boolean AND (CASE mode
            -- Postgres counts a row twice that another transaction inserts at the same moment.
            WHEN 'upsert' THEN inserted - deleted + updated <> came
            ELSE (inserted, updated, deleted) <> (came, 0, removed) END)
        THEN
            found := found || format('the table inserted %s, updated %s and deleted %s rows', inserted, updated, deleted);
        END IF;
        IF ruled AND triggered AND mode = 'insert' THEN
            found := found || 'rules and triggers together do not let Weir see what came in'::text;
        END IF;
    END IF;
    IF found <> '{}' THEN
        said := format('table %s did something else than mode=%s with the %s rows that were staged for it: %s',
                       in_table, mode, staged, array_to_string(found, ', '));
        IF NOT declared THEN
            RAISE EXCEPTION '%; remove the trigger, rule, policy or foreign key that does that, or let the owner of the '
                'table declare that it is wanted: COMMENT ON TABLE % IS ''weir: may change rows''.', said, target
                USING ERRCODE = 'WEIR2', DETAIL = 'table_refused';
        END IF;
    END IF;
    PERFORM set_config('search_path', in_path, true);
    IF following IS NOT NULL THEN
        EXECUTE following USING argument;
    END IF;
    RETURN pg_catalog.jsonb_build_object('staged', staged, 'told', said);
END $$;
COMMENT ON FUNCTION weir_internal.publish_staging(text, text, text[], text, jsonb) IS 'Puts staged rows into the table they are for; returns how many there were, and what the table did otherwise.';

-- Runs deferred triggers now: at the commit they would run with the rights of the jobs' login. Postgres 18 records
-- the role with a deferred trigger. Before 18, a trigger may defer something again without a trace, so the function
-- refuses deferrable triggers of other owners.
CREATE OR REPLACE FUNCTION weir_internal.settle_constraints(in_tables text[], in_paths text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    names text;
    found record;
    parts CONSTANT oid[] := ARRAY(
        WITH RECURSIVE part (oid) AS (
            SELECT format('%I.%I', split_part(t, '.', 1), split_part(t, '.', 2))::regclass::oid FROM unnest(in_tables) t
            WHERE coalesce(obj_description(format('%I.%I', split_part(t, '.', 1), split_part(t, '.', 2))::regclass, 'pg_class')
                           !~ '\mweir: may change rows\M', true)
            UNION SELECT i.inhrelid FROM pg_inherits i JOIN part ON i.inhparent = part.oid)
        SELECT oid FROM part);
    before bigint;
BEGIN
    SELECT sum(pg_stat_get_xact_tuples_inserted(p) + pg_stat_get_xact_tuples_updated(p) + pg_stat_get_xact_tuples_deleted(p))
    INTO before FROM unnest(parts) p;
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
    IF before <> (
        SELECT sum(pg_stat_get_xact_tuples_inserted(p) + pg_stat_get_xact_tuples_updated(p) + pg_stat_get_xact_tuples_deleted(p))
        FROM unnest(parts) p)
    THEN
        RAISE EXCEPTION 'a deferred trigger of table % changed its rows after those of the batch were in it; remove it, or let '
            'the owner of the table declare that it is wanted: COMMENT ON TABLE ... IS ''weir: may change rows''.',
            array_to_string(in_tables, ', ') USING ERRCODE = 'WEIR2', DETAIL = 'table_refused';
    END IF;
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
                quote_literal(found.tgname), found.relation USING ERRCODE = 'WEIR2', DETAIL = 'table_refused';
        END IF;
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.settle_constraints(text[], text[]) IS 'Checks the deferred constraints of tables.';

