-- The last epoch created at or before a clock; epoch 0 for any time before it.
CREATE FUNCTION weir.epoch_at(in_stream_id bigint, in_clock bigint) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    SELECT coalesce(
        (SELECT e.epoch FROM weir.epoch e
         WHERE e.stream_id = in_stream_id AND e.created_at <= in_clock
         ORDER BY e.created_at DESC LIMIT 1), 0)
$$;
COMMENT ON FUNCTION weir.epoch_at(bigint, bigint) IS 'The epoch that was current at a clock.';
