-- The functions below take a stream by its name. Three SQLSTATEs are Weir's own: WEIR1 for what is
-- not there, WEIR2 for what is wrong with an argument, WEIR4 for what was truncated.
CREATE FUNCTION weir.stream_id(stream text) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
DECLARE
    found bigint;
BEGIN
    IF stream IS NULL THEN
        RAISE EXCEPTION 'which stream is not said: name it, as in nyc/flights.' USING ERRCODE = 'WEIR2', DETAIL = 'argument_missing';
    END IF;
    SELECT s.stream_id INTO found FROM weir.stream s
    WHERE s.scope = split_part(stream, '/', 1) AND s.name = substring(stream FROM '/(.*)')
      AND s.state <> 'deleted';
    IF found IS NULL THEN
        RAISE EXCEPTION 'there is no stream %; create it with weir_create_stream, or check the name.', stream
            USING ERRCODE = 'WEIR1', DETAIL = 'stream_not_found';
    END IF;
    RETURN found;
END $$;
COMMENT ON FUNCTION weir.stream_id(text) IS 'The id of the stream that has this name now.';

-- A segment of a stream by its name, or an error that says that it has none.
CREATE FUNCTION weir.segment_of(in_stream_id bigint, segment text) RETURNS weir.segment
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
DECLARE
    found weir.segment;
BEGIN
    IF weir.segment_id(segment) IS NULL THEN
        RAISE EXCEPTION '''%'' is not a segment: write number.epoch, such as 5.1.', segment
            USING ERRCODE = 'WEIR2', DETAIL = 'segment_name_invalid';
    END IF;
    SELECT s.* INTO found FROM weir.segment s
    WHERE s.stream_id = in_stream_id AND s.segment_id = weir.segment_id(segment);
    IF found.segment_id IS NULL THEN
        RAISE EXCEPTION 'the stream has no segment %: it never existed or was deleted.', segment
            USING ERRCODE = 'WEIR1', DETAIL = 'segment_not_found';
    END IF;
    RETURN found;
END $$;
COMMENT ON FUNCTION weir.segment_of(bigint, text) IS 'The row of a segment, by its name.';
