-- Rows of a batch that go to a table: executors write them to a table of their own in the schema
-- weir_staging, the batch's commit puts them into the table they are for. Jobs may change rows but
-- no tables, so what makes and drops those tables runs with the rights of the owner; names and
-- types come from jobs as identifiers and type numbers, never as SQL.

CREATE FUNCTION weir.make_staging(in_name text, in_columns text[], in_types oid[], in_modifiers integer[])
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog
AS $$
DECLARE
    definitions text;
    names text;
BEGIN
    SELECT string_agg(format('%I %s', c.name, format_type(c.type, c.modifier)), ', ' ORDER BY c.i),
           string_agg(quote_ident(c.name), ', ' ORDER BY c.i)
    INTO definitions, names
    FROM unnest(in_columns, in_types, in_modifiers) WITH ORDINALITY AS c (name, type, modifier, i);
    EXECUTE format('DROP TABLE IF EXISTS weir_staging.%I', in_name);  -- of a COMMIT that was lost
    -- Not logged: after a crash of the server they are empty, which the commit sees by their count.
    -- The piece tells the rows of a copy that was committed from those of one that was done again.
    EXECUTE format('CREATE UNLOGGED TABLE weir_staging.%I '
        '(_weir_piece text NOT NULL DEFAULT pg_current_xact_id()::text, %s)', in_name, definitions);
    EXECUTE format('GRANT SELECT, INSERT ON weir_staging.%I TO weir_jobs', in_name);
    RETURN format('COPY weir_staging.%I (%s) FROM STDIN (FORMAT csv)', in_name, names);
END $$;
COMMENT ON FUNCTION weir.make_staging(text, text[], oid[], integer[]) IS 'For jobs: makes a table for the rows that an attempt writes; returns the COPY that fills it.';

-- Every row of the pieces, or an error: as the one who calls it, who must have the right to insert.
CREATE FUNCTION weir.publish_staging(in_name text, in_table text, in_pieces text[])
RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
    staged bigint;
    names text;
    given text;
BEGIN
    EXECUTE format('SELECT count(*) FROM weir_staging.%I WHERE _weir_piece = ANY ($1)', in_name)
        INTO staged USING in_pieces;
    -- Only to an enumeration is text not assigned by itself.
    SELECT string_agg(quote_ident(t.attname), ', ' ORDER BY t.attnum),
           string_agg(CASE WHEN y.typtype = 'e'
                      THEN format('%I::%s', t.attname, format_type(y.oid, NULL))
                      ELSE quote_ident(t.attname) END, ', ' ORDER BY t.attnum)
    INTO names, given
    FROM pg_attribute s
    JOIN pg_attribute t ON t.attrelid = in_table::regclass AND t.attname = s.attname
    JOIN pg_type y ON y.oid = t.atttypid
    WHERE s.attrelid = format('weir_staging.%I', in_name)::regclass AND s.attnum > 1
      AND NOT t.attisdropped;
    EXECUTE format('INSERT INTO %s (%s) SELECT %s FROM weir_staging.%I WHERE _weir_piece = ANY ($1)',
        in_table::regclass, names, given, in_name) USING in_pieces;
    PERFORM weir.drop_staging(in_name);
    RETURN staged;
END $$;
COMMENT ON FUNCTION weir.publish_staging(text, text, text[]) IS 'For jobs: puts staged rows into the table they are for; returns how many there were.';

CREATE FUNCTION weir.drop_staging(in_name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog
AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS weir_staging.%I', in_name);
END $$;
COMMENT ON FUNCTION weir.drop_staging(text) IS 'For jobs: drops a table of staged rows.';

CREATE FUNCTION weir.dead_staging() RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
    SELECT c.relname::text FROM pg_class c
    CROSS JOIN LATERAL regexp_match(c.relname, '^g(\d+)_b(\d+)_a(\d+)_') n
    WHERE c.relnamespace = 'weir_staging'::regnamespace AND c.relkind = 'r'
      AND NOT EXISTS (SELECT FROM weir.reader_batch b
                      WHERE b.state = 'open' AND b.group_id = n[1]::bigint
                        AND b.batch_id = n[2]::bigint AND b.attempt = n[3]::integer)
    ORDER BY c.oid
$$;
COMMENT ON FUNCTION weir.dead_staging() IS 'For jobs: the tables of staged rows whose attempt can''t commit any more.';
