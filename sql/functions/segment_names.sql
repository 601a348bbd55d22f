-- A segment's id is creation epoch << 32 | number; people write number.epoch. Immutable to the last call
-- in it: only then Postgres puts the body in the place of a call, and finds the index segment_by_name.
CREATE FUNCTION weir.segment_name(segment_id bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (segment_id & 4294967295)::text || '.' || (segment_id >> 32)::text;
COMMENT ON FUNCTION weir.segment_name(bigint) IS 'number.epoch of a segment id.';

-- What does not fit would be the id of another segment.
CREATE FUNCTION weir.segment_id(segment_name text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN segment_name ~ '\A(0|[1-9][0-9]{0,9})\.(0|[1-9][0-9]{0,9})\Z'
    THEN CASE WHEN split_part(segment_name, '.', 1)::bigint <= 4294967295
               AND split_part(segment_name, '.', 2)::bigint <= 2147483647
        THEN split_part(segment_name, '.', 2)::bigint << 32
             | split_part(segment_name, '.', 1)::bigint END END;
COMMENT ON FUNCTION weir.segment_id(text) IS 'The id of a segment written number.epoch; null for what is not.';
