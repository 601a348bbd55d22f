-- A group that stops for good reads up to its end, however much comes after it.
CREATE FUNCTION weir.oldest_unread(in_stream_id bigint, in_cut jsonb, in_end jsonb) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
BEGIN
    IF in_end IS NULL THEN
        RETURN weir.clock_after(in_stream_id, in_cut);
    END IF;
    RETURN (
        SELECT min(i.clock)
        FROM weir.stream s
        CROSS JOIN LATERAL weir.segments_between(s.stream_id, in_cut,
            weir.join_cuts(in_stream_id, in_cut, in_end)) b
        CROSS JOIN LATERAL (
            SELECT i.clock FROM weir.time_index i
            WHERE i.stream_id = in_stream_id AND i.segment_id = b.segment_id
              AND i.start_offset <= b.from_offset
            ORDER BY i.start_offset DESC LIMIT 1) i
        WHERE s.stream_id = in_stream_id AND b.from_offset < b.to_offset);
END $$;
COMMENT ON FUNCTION weir.oldest_unread(bigint, jsonb, jsonb) IS 'The clock of the oldest event from a cut up to an end, null for the tail; null when there is none.';

-- What a reader group that stands at a cut has still to read of a stream. What lies below the head
-- can't be read any more, so it begins at the head where that is later; a group that stops for good
-- reads up to its end, of which nothing is left where it was passed or truncated.
CREATE FUNCTION weir.unread_from(in_stream_id bigint, in_cut jsonb, in_head jsonb, in_end jsonb)
RETURNS TABLE (readable jsonb, events bigint, bytes bigint, oldest bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 1
AS $$
#variable_conflict use_column
DECLARE
    tail CONSTANT jsonb := CASE WHEN in_end IS NULL THEN weir.tail_cut(in_stream_id) END;
    here jsonb;
    past jsonb;
BEGIN
    IF in_cut = tail THEN  -- as most groups most of the time; the head is not later
        RETURN QUERY SELECT in_cut, 0::bigint, 0::bigint, NULL::bigint;
        RETURN;
    END IF;
    here := weir.readable_cut(in_stream_id, in_cut, in_head);
    past := coalesce(tail, weir.join_cuts(in_stream_id, here, in_end));
    IF here IS NULL THEN  -- the stream was deleted
        RETURN;
    ELSIF here = past THEN
        RETURN QUERY SELECT here, 0::bigint, 0::bigint, NULL::bigint;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT here, b.events - a.events, b.bytes - a.bytes,
           weir.oldest_unread(in_stream_id, here, in_end)
    FROM weir.size_till(in_stream_id, here) a CROSS JOIN weir.size_till(in_stream_id, past) b;
END $$;
COMMENT ON FUNCTION weir.unread_from(bigint, jsonb, jsonb, jsonb) IS 'What there is to read from a cut (the head, where that is later) up to an end, null for the tail: where it begins, events, bytes, and the clock of the oldest.';
