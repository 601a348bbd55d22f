-- Weir's own SQLSTATEs: WEIR1 if something does not exist, WEIR2 if an argument is wrong, WEIR4 if events were
-- truncated. The detail is the code of the error.
CREATE OR REPLACE FUNCTION weir_internal.stream_id(stream text) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found bigint;
BEGIN
    IF stream IS NULL THEN
        RAISE EXCEPTION 'the stream name is NULL; pass it as scope/name, such as nyc/flights.' USING ERRCODE = 'WEIR2', DETAIL = 'argument_missing';
    END IF;
    SELECT s.stream_id INTO found FROM weir_internal.stream s
    WHERE s.scope = split_part(stream, '/', 1) AND s.name = substring(stream FROM '/(.*)')
      AND s.state <> 'deleted' AND (s.owner IS NULL OR weir_internal.may_act_for(weir_internal.asking(), s.owner));
    IF found IS NULL THEN
        RAISE EXCEPTION 'there is no stream %; check the name (the view weir.streams lists them).', stream
            USING ERRCODE = 'WEIR1', DETAIL = 'stream_not_found';
    END IF;
    RETURN found;
END $$;
COMMENT ON FUNCTION weir_internal.stream_id(text) IS 'The id of the stream that has this name now.';

CREATE OR REPLACE FUNCTION weir_internal.segment_of(in_stream_id bigint, segment text) RETURNS weir_internal.segment
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found weir_internal.segment;
BEGIN
    IF weir_internal.segment_id(segment) IS NULL THEN
        RAISE EXCEPTION '''%'' is not a segment; write number.epoch, such as 5.1.', segment
            USING ERRCODE = 'WEIR2', DETAIL = 'name_invalid';
    END IF;
    SELECT s.* INTO found FROM weir_internal.segment s
    WHERE s.stream_id = in_stream_id AND s.segment_id = weir_internal.segment_id(segment);
    IF found.segment_id IS NULL THEN
        RAISE EXCEPTION 'the stream has no segment %, because it never existed or was deleted; the view weir.segments lists them.', segment
            USING ERRCODE = 'WEIR1', DETAIL = 'segment_not_found';
    END IF;
    RETURN found;
END $$;
COMMENT ON FUNCTION weir_internal.segment_of(bigint, text) IS 'The row of a segment, by its name.';

-- The ids of an epoch's new segments are at least this, and less than first_segment_id(epoch + 1).
CREATE OR REPLACE FUNCTION weir_internal.first_segment_id(epoch integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN epoch::bigint << 32;
COMMENT ON FUNCTION weir_internal.first_segment_id(integer) IS 'The lowest id that a segment created in an epoch can have.';

CREATE OR REPLACE FUNCTION weir_internal.creation_epoch(segment_id bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (segment_id >> 32)::integer;
COMMENT ON FUNCTION weir_internal.creation_epoch(bigint) IS 'The epoch that created a segment, from its id.';

-- The id of a segment is creation epoch << 32 | number; people write number.epoch. This function and everything
-- that it calls are immutable: only then Postgres puts its body in place of a call, and uses segment_by_name.
CREATE OR REPLACE FUNCTION weir_internal.segment_name(segment_id bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (segment_id & 4294967295)::text || '.' || (segment_id >> 32)::text;
COMMENT ON FUNCTION weir_internal.segment_name(bigint) IS 'number.epoch of a segment id.';

-- Null also for numbers that are too large: their bits would be the id of another segment.
CREATE OR REPLACE FUNCTION weir_internal.segment_id(segment_name text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN segment_name ~ '\A(0|[1-9][0-9]{0,9})\.(0|[1-9][0-9]{0,9})\Z'
    THEN CASE WHEN split_part(segment_name, '.', 1)::bigint <= 4294967295
               AND split_part(segment_name, '.', 2)::bigint <= 2147483647
        THEN split_part(segment_name, '.', 2)::bigint << 32
             | split_part(segment_name, '.', 1)::bigint END END;
COMMENT ON FUNCTION weir_internal.segment_id(text) IS 'The id of a segment written number.epoch; null if it is not written so.';

-- Clocks are microseconds since 1970 UTC. This function and everything that it calls are immutable: only then Postgres
-- puts its body in place of a call, and uses the indexes by time. (Adding to a timestamptz is not immutable: an
-- interval with days depends on the time zone of the session.)
CREATE OR REPLACE FUNCTION weir_internal.clock_time(clock bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('epoch'::timestamp + clock * interval '1 microsecond') AT TIME ZONE 'UTC';
COMMENT ON FUNCTION weir_internal.clock_time(bigint) IS 'The time of a clock.';

-- Infinite times become the smallest and largest clock.
CREATE OR REPLACE FUNCTION weir_internal.time_clock(moment timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN isfinite(moment) THEN (extract(epoch FROM moment) * 1000000)::bigint
            WHEN moment > 'epoch'::timestamptz THEN 9223372036854775807
            WHEN moment < 'epoch'::timestamptz THEN -9223372036854775808 END;
COMMENT ON FUNCTION weir_internal.time_clock(timestamptz) IS 'The clock of a time.';

-- Every clock of a stream is made from this one, so that tests can put it forward and back. Postgres puts its body in
-- place of a call; it calls no function of Weir's, because whoever reads a view may execute only those that the view
-- names.
CREATE OR REPLACE FUNCTION weir_internal.now_clock() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
COMMENT ON FUNCTION weir_internal.now_clock() IS 'The clock of this moment.';
