-- What the view weir.troubles asks.

CREATE OR REPLACE FUNCTION weir_internal.run_is_stuck(in_state text, in_updated_at timestamptz) RETURNS boolean
LANGUAGE sql PARALLEL SAFE
RETURN in_state = 'running' AND in_updated_at < clock_timestamp() - interval '2 minutes';
COMMENT ON FUNCTION weir_internal.run_is_stuck(text, timestamptz) IS 'Whether a run of a job has shown no sign of life for two minutes.';

-- A group reads when its schedule says so: it is late if nothing was committed for twice as long as it usually pauses.
CREATE OR REPLACE FUNCTION weir_internal.patience_with(in_group_name text) RETURNS interval
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT greatest(interval '10 minutes', 2 * max(p.pause)) FROM (
        SELECT b.opened_at - lag(b.committed_at) OVER (ORDER BY b.committed_at) AS pause
        FROM (SELECT o.opened_at, o.committed_at FROM weir_internal.reader_batch o
              WHERE o.group_name = in_group_name AND o.committed_at IS NOT NULL
              ORDER BY o.committed_at DESC LIMIT 100) b) p
$$;
COMMENT ON FUNCTION weir_internal.patience_with(text) IS 'How long a reader group may have unread events and no reader: ten minutes, or twice its longest pause of late.';

CREATE OR REPLACE FUNCTION weir_internal.counted(in_number bigint, in_what text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN to_char(in_number, 'FM999,999,999,999,999,990') || ' ' || in_what || CASE WHEN in_number = 1 THEN '' ELSE 's' END;
COMMENT ON FUNCTION weir_internal.counted(bigint, text) IS 'So many of something, for a person.';
