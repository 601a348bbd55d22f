-- Each recorded cut has passed all that those before it have. So unless it is the newest of those that
-- are not larger, the last one that a cut has passed is found by halves: where one segment lags far
-- behind, testing each would take seconds under the locks.
CREATE FUNCTION weir.last_record(in_stream_id bigint, in_cut jsonb) RETURNS timestamptz
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
DECLARE
    till CONSTANT bigint := (SELECT z.bytes FROM weir.size_till(in_stream_id, in_cut) z);
    newest weir.stream_cut;
    known timestamptz[];
    passed integer := 0;  -- so many of them it has passed
    ahead integer;        -- from this one on none
    middle integer;
BEGIN
    SELECT * INTO newest FROM weir.stream_cut r
    WHERE r.stream_id = in_stream_id AND r.bytes <= till ORDER BY r.recorded_at DESC LIMIT 1;
    IF newest IS NULL OR weir.at_or_before(in_stream_id, newest.cut, in_cut) THEN
        RETURN newest.recorded_at;
    END IF;
    known := array(SELECT r.recorded_at FROM weir.stream_cut r
                   WHERE r.stream_id = in_stream_id AND r.bytes <= till ORDER BY r.recorded_at);
    ahead := cardinality(known);
    WHILE ahead - passed > 1 LOOP
        middle := (passed + ahead) / 2;
        IF weir.at_or_before(in_stream_id, (
                SELECT r.cut FROM weir.stream_cut r
                WHERE r.stream_id = in_stream_id AND r.recorded_at = known[middle]), in_cut)
        THEN
            passed := middle;
        ELSE
            ahead := middle;
        END IF;
    END LOOP;
    RETURN known[passed];
END $$;
COMMENT ON FUNCTION weir.last_record(bigint, jsonb) IS 'When the last recorded cut was recorded that lies at or before a cut; null: none does.';
