-- Cuts that are to be proven.

CREATE OR REPLACE FUNCTION weir_internal.unproven_cuts()
RETURNS TABLE (stream_id bigint, stream_name text, until bigint, since bigint)
LANGUAGE sql STABLE ROWS 100
AS $$
    SELECT c.stream_id, min(c.stream_name), max(c.clock), coalesce(min(v.proven_clock), -1)
    FROM weir_internal.stream_cut c LEFT JOIN weir_internal.verification v USING (stream_id)
    WHERE c.proven_at IS NULL GROUP BY c.stream_id
$$;
COMMENT ON FUNCTION weir_internal.unproven_cuts() IS 'The streams with cuts that are not proven, up to which clock their cuts reach, and up to which their files were looked at.';

-- What was truncated or compacted since it was found is no damage any more, as in weir.damage.
CREATE OR REPLACE FUNCTION weir_internal.cuts_proven_by_now() RETURNS TABLE (stream_id bigint, recorded_at timestamptz)
LANGUAGE sql STABLE ROWS 100
AS $$
    SELECT c.stream_id, c.recorded_at FROM weir_internal.stream_cut c JOIN weir_internal.verification v USING (stream_id)
    WHERE c.proven_at IS NULL AND v.proven_clock >= c.clock
      AND NOT EXISTS (
          SELECT FROM weir_internal.found_damage d JOIN weir_internal.data_file f USING (stream_id, segment_id, start_offset)
          WHERE d.stream_id = c.stream_id AND f.path = d.path)
$$;
COMMENT ON FUNCTION weir_internal.cuts_proven_by_now() IS 'The cuts that are not called proven yet, before which all was looked at, and no damage is.';
