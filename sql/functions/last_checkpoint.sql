-- What a group has confirmed last. One that waited may be complete after a later one.
CREATE FUNCTION weir.last_checkpoint(in_group_id bigint)
RETURNS TABLE (name text, created_at timestamptz, cuts jsonb)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 1
AS $$
    SELECT c.name, c.created_at, c.cuts FROM weir.checkpoint c
    WHERE c.group_id = in_group_id AND c.state = 'complete'
    ORDER BY c.created_at DESC LIMIT 1
$$;
COMMENT ON FUNCTION weir.last_checkpoint(bigint) IS 'The newest complete checkpoint of a reader group.';
