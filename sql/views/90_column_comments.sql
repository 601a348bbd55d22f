-- Gives each column of a view that has no comment the comment of the columns of that name in the tables and views
-- that the view reads, if they have only one. In order of creation, because views read other views.
DO $$
DECLARE
    bare record;
    column_comment text;
BEGIN
    FOR bare IN
        SELECT v.oid AS view_id, v.relname, a.attname
        FROM pg_class v JOIN pg_attribute a ON a.attrelid = v.oid AND a.attnum > 0
        WHERE v.relnamespace = 'weir'::regnamespace AND v.relkind = 'v'
          AND col_description(v.oid, a.attnum) IS NULL
        ORDER BY v.oid, a.attnum
    LOOP
        SELECT min(d.description) INTO column_comment
        FROM pg_rewrite r
        JOIN pg_depend p ON p.classid = 'pg_rewrite'::regclass AND p.objid = r.oid
            AND p.refclassid = 'pg_class'::regclass AND p.refobjid <> r.ev_class
        JOIN pg_attribute b ON b.attrelid = p.refobjid AND b.attnum = p.refobjsubid
        JOIN pg_description d ON d.classoid = 'pg_class'::regclass AND d.objoid = b.attrelid
            AND d.objsubid = b.attnum
        WHERE r.ev_class = bare.view_id AND b.attname = bare.attname
        HAVING count(DISTINCT d.description) = 1;
        column_comment := coalesce(column_comment, CASE bare.attname
            WHEN 'stream' THEN 'scope/stream.'
            WHEN 'segment' THEN 'number.epoch.'
            WHEN 'reader_group' THEN 'Its name.' END);
        IF column_comment IS NOT NULL THEN
            EXECUTE format('COMMENT ON COLUMN weir.%I.%I IS %L', bare.relname, bare.attname, column_comment);
        END IF;
    END LOOP;
END $$;
