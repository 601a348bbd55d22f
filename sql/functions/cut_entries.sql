-- A stream cut as rows; event_offset is null for a future segment.
CREATE FUNCTION weir.cut_entries(cut jsonb)
RETURNS TABLE (segment_id bigint, event_offset bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 32
AS $$
    SELECT weir.segment_id(entry.key),
           CASE WHEN jsonb_typeof(entry.value) = 'number' THEN entry.value::bigint END
    FROM jsonb_each(cut) AS entry
$$;
COMMENT ON FUNCTION weir.cut_entries(jsonb) IS 'The entries of a stream cut, one row per segment.';
