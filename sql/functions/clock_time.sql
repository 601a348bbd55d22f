-- Clocks are microseconds since 1970 UTC. Immutable to the last call in it: only then Postgres puts the
-- body in the place of a call, and finds the indexes by time. (To add to a timestamptz is not: where an
-- interval has days, it depends on the session's time zone.)
CREATE FUNCTION weir.clock_time(clock bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('epoch'::timestamp + clock * interval '1 microsecond') AT TIME ZONE 'UTC';
COMMENT ON FUNCTION weir.clock_time(bigint) IS 'The time of a clock.';

-- An infinite time is one before or after all clocks.
CREATE FUNCTION weir.time_clock(moment timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN isfinite(moment) THEN (extract(epoch FROM moment) * 1000000)::bigint
            WHEN moment > 'epoch'::timestamptz THEN 9223372036854775807
            WHEN moment < 'epoch'::timestamptz THEN -9223372036854775808 END;
COMMENT ON FUNCTION weir.time_clock(timestamptz) IS 'The clock of a time.';
