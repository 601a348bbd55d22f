-- It runs as weir_publisher, which may do to tables what people granted to it, and no more. Nothing of the owner of a table
-- may run by it, as what is deferred would run at the commit, with the rights of the jobs, and what follows in the
-- transaction would find what a trigger has left behind: so a table with triggers, rules, policies, keys that cascade or
-- a column of another's type is left. The lock keeps it as it was looked at.
CREATE OR REPLACE FUNCTION weir_internal.erase_as_publisher(target regclass, in_columns text[], in_keys text[], in_count_only boolean,
    OUT erased bigint, OUT why text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found text;
    numbers CONSTANT numeric[] := ARRAY(SELECT k::numeric FROM unnest(in_keys) k
        WHERE length(k) < 400 AND k ~ '^-?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]{1,3})?$');
BEGIN
    IF NOT has_table_privilege(target, 'SELECT') OR NOT has_table_privilege(target, 'DELETE') THEN
        why := format('weir_publisher may not read and delete its rows (GRANT SELECT, DELETE ON %s TO weir_publisher)', target);
        RETURN;
    ELSIF (SELECT c.relkind NOT IN ('r', 'p') FROM pg_class c WHERE c.oid = target) THEN
        why := 'it is no plain table';
        RETURN;
    END IF;
    EXECUTE format('LOCK TABLE %s IN ROW EXCLUSIVE MODE', target);
    -- 7 is 7.00 in a column of numbers with two digits after the point. Only numbers are written to one: of the keys 7 and
    -- 007, which are texts, it has the same.
    SELECT string_agg(format('%1$I::text OPERATOR(pg_catalog.=) ANY ($1)' || CASE
        WHEN t.typname IN ('int2', 'int4', 'int8', 'numeric', 'float4', 'float8')
            THEN ' OR %1$I::text::numeric OPERATOR(pg_catalog.=) ANY ($2)' ELSE '' END, a.attname), ' OR ') INTO found FROM pg_attribute a
    JOIN pg_type t ON t.oid = a.atttypid AND t.typnamespace = 'pg_catalog'::regnamespace
    WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped AND lower(a.attname) = ANY (in_columns);
    IF found IS NULL THEN
        why := 'no column of it has the keys';
        RETURN;
    ELSIF EXISTS (
        WITH RECURSIVE below AS (
            SELECT target::oid AS oid
            UNION
            SELECT i.inhrelid FROM below b JOIN pg_inherits i ON i.inhparent = b.oid
        )
        SELECT FROM below b JOIN pg_class c USING (oid)
        WHERE c.relkind NOT IN ('r', 'p') OR c.relrowsecurity
           OR EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = b.oid AND NOT g.tgisinternal)
           OR EXISTS (SELECT FROM pg_rewrite w WHERE w.ev_class = b.oid)
           OR EXISTS (SELECT FROM pg_constraint k WHERE k.confrelid = b.oid AND k.contype = 'f'
                      AND k.confdeltype NOT IN ('a', 'r'))) THEN
        why := 'its triggers, rules or policies would run, or rows of other tables would go with its own';
        RETURN;
    END IF;
    IF in_count_only THEN
        EXECUTE format('SELECT count(*) FROM %s WHERE %s', target, found) INTO erased USING in_keys, numbers;
    ELSE
        EXECUTE format('DELETE FROM %s WHERE %s', target, found) USING in_keys, numbers;
        GET DIAGNOSTICS erased = ROW_COUNT;
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.erase_as_publisher(regclass, text[], text[], boolean) IS 'Does what erase_from_table says, for whoever may.';

CREATE OR REPLACE FUNCTION weir_internal.erase_from_table(in_table text, in_columns text[], in_keys text[], in_count_only boolean,
    OUT erased bigint, OUT why text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    target CONSTANT regclass := weir_internal.output_table(in_table);
BEGIN
    IF target IS NULL THEN
        why := 'it is not there any more';
    ELSIF weir_internal.missing_rights_of_caller(target, CASE WHEN in_count_only THEN 'count' ELSE 'erase' END) <> '{}' THEN
        why := format('the login %s may not %s its rows', session_user, CASE WHEN in_count_only THEN 'read' ELSE 'delete' END);
    ELSE
        SELECT e.erased, e.why INTO erased, why FROM weir_internal.erase_as_publisher(target, in_columns, in_keys, in_count_only) e;
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.erase_from_table(text, text[], text[], boolean) IS 'Deletes (or counts) the rows of a table in which one of some columns (in lower case) has one of some texts; or says why it leaves the table: there is no such column, the login or weir_publisher has no right to do that, or something of its owner would run.';
