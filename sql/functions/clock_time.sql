-- Clocks are microseconds since 1970 UTC.
CREATE FUNCTION weir.clock_time(clock bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'epoch'::timestamptz + clock * interval '1 microsecond';
COMMENT ON FUNCTION weir.clock_time(bigint) IS 'The time of a clock.';

CREATE FUNCTION weir.time_clock(moment timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (extract(epoch FROM moment) * 1000000)::bigint;
COMMENT ON FUNCTION weir.time_clock(timestamptz) IS 'The clock of a time.';
