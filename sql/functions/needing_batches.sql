-- A batch may be at files that died while it was open, as long as its reader's lease, and a grace after
-- that: a reader that comes back so late, and an heir, plan it anew without them. While Postgres was away
-- nobody could renew a lease.
CREATE FUNCTION weir.needing_batches(in_grace double precision)
RETURNS TABLE (stream_id bigint, batch_id bigint, reader_group text, opened_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    SELECT gs.stream_id, b.batch_id, g.name, b.opened_at
    FROM weir.reader_batch b
    JOIN weir.reader r ON r.group_id = b.group_id AND r.reader_id = b.reader_id AND r.token = b.token
    JOIN weir.reader_group g ON g.group_id = b.group_id
    JOIN weir.reader_group_stream gs ON gs.group_id = b.group_id
    WHERE b.state = 'open'
      AND greatest(r.lease_until, pg_postmaster_start_time()) + in_grace * interval '1 second' > clock_timestamp()
$$;
COMMENT ON FUNCTION weir.needing_batches(double precision) IS 'The open batches, per stream of their group, whose readers are at work or were until so many seconds ago: what died while they were open is kept for them.';
