-- The adjunct store with a name. The detail is the code of the error.
CREATE OR REPLACE FUNCTION weir_internal.adjunct_store_id(store text) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found bigint;
BEGIN
    IF store IS NULL THEN
        RAISE EXCEPTION 'the name of the adjunct store is NULL; pass it as scope/name, such as nyc/planes.' USING ERRCODE = 'WEIR2', DETAIL = 'argument_missing';
    END IF;
    SELECT a.store_id INTO found FROM weir_internal.adjunct_store a WHERE a.name = store;
    IF found IS NULL THEN
        RAISE EXCEPTION 'there is no adjunct store %; check the name (the view weir.adjunct_stores lists them).', store
            USING ERRCODE = 'WEIR1', DETAIL = 'adjunct_store_not_found';
    END IF;
    RETURN found;
END $$;
COMMENT ON FUNCTION weir_internal.adjunct_store_id(text) IS 'The id of the adjunct store that has this name now.';

CREATE OR REPLACE FUNCTION weir.adjunct(store text, version bigint DEFAULT NULL)
RETURNS TABLE (path text, row_count bigint, bytes bigint, key_low double precision, key_high double precision)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 10
AS $$
#variable_conflict use_column
DECLARE
    found CONSTANT bigint := weir_internal.adjunct_store_id(store);
    wanted bigint;
BEGIN
    SELECT max(v.version) INTO wanted FROM weir_internal.adjunct_version v
    WHERE v.store_id = found AND v.state = 'published' AND v.version = coalesce(adjunct.version, v.version);
    IF wanted IS NULL AND adjunct.version IS NOT NULL THEN
        RAISE EXCEPTION 'adjunct store % has no version % (it never existed, or it has expired); the view weir.adjunct_versions lists those that exist.', store, adjunct.version
            USING ERRCODE = 'WEIR1', DETAIL = 'adjunct_version_not_found';
    END IF;
    RETURN QUERY
    SELECT f.path, f.row_count, f.bytes, f.low / 9007199254740992.0::double precision,
           f.high / 9007199254740992.0::double precision
    FROM weir_internal.adjunct_version_file p JOIN weir_internal.adjunct_file f USING (store_id, path)
    WHERE p.store_id = found AND p.version = wanted ORDER BY f.low, f.path;
END $$;
COMMENT ON FUNCTION weir.adjunct(text, bigint) IS 'The Parquet files that are the table of an adjunct store, below the warehouse: of a version, or of the newest one. Each key is in one of them, whose range has its routing position.';
