-- The rules of weir.stream_cut.check_valid once more, where a person may give a cut; a test holds them
-- together. What Weir has recorded is valid, and is not checked again.
CREATE FUNCTION weir.valid_cut(in_stream_id bigint, cut jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
#variable_conflict use_column
DECLARE
    nobody CONSTANT bigint := 9223372036854775807;
    k double precision[];
    o bigint[];
    wrong record;
BEGIN
    IF cut IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT c.segment_id, c.event_offset, e.past INTO wrong
    FROM weir.cut_segments(in_stream_id, cut) c
    LEFT JOIN weir.segment_tail t ON t.stream_id = in_stream_id AND t.segment_id = c.segment_id
    CROSS JOIN LATERAL (SELECT coalesce(t.tail_offset, c.events) AS past) e
    WHERE c.event_offset > e.past ORDER BY c.segment_id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'offset % does not exist in segment %: choose one between 0 and its end, %.',
            wrong.event_offset, weir.segment_name(wrong.segment_id), wrong.past USING ERRCODE = 'WEIR2', DETAIL = 'offset_invalid';
    END IF;
    SELECT f.keys, f.owners INTO k, o FROM weir.front(in_stream_id, cut) f;
    SELECT c.segment_id, c.event_offset, min(p.owner) AS older INTO wrong
    FROM weir.cut_segments(in_stream_id, cut) c
    CROSS JOIN LATERAL (
        SELECT o[i] AS owner
        FROM generate_series(width_bucket(c.key_low, k), width_bucket(c.key_high, k) - 1) i) p
    GROUP BY c.segment_id, c.event_offset
    HAVING (min(p.owner) < c.segment_id) = (c.event_offset IS NOT NULL)
    ORDER BY c.segment_id LIMIT 1;
    IF wrong.event_offset IS NOT NULL THEN
        RAISE EXCEPTION 'segment % has an offset but overlaps %, which comes before it and is not yet passed: list % as future or leave it out.',
            weir.segment_name(wrong.segment_id), weir.segment_name(wrong.older),
            weir.segment_name(wrong.segment_id) USING ERRCODE = 'WEIR2', DETAIL = 'cut_overlaps';
    ELSIF wrong.segment_id IS NOT NULL THEN
        RAISE EXCEPTION 'segment % is listed as future but no listed segment comes before it: give it an offset, or list the segment that is read first.',
            weir.segment_name(wrong.segment_id) USING ERRCODE = 'WEIR2', DETAIL = 'cut_begins_with_future';
    END IF;
    SELECT k[i] AS low, coalesce(k[i + 1], 1.0) AS high INTO wrong
    FROM generate_subscripts(k, 1) i WHERE o[i] = nobody AND k[i] < 1.0 ORDER BY i LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'no segment of the stream cut holds the keys [%, %): add the one that is read next there, as future if one of its predecessors is listed.',
            wrong.low, wrong.high USING ERRCODE = 'WEIR2', DETAIL = 'cut_has_gap';
    END IF;
    -- What lies between two segments of a cut was created when the older was sealed, or later.
    WITH listed AS MATERIALIZED (
        SELECT min(c.sealed_epoch) AS oldest, max(c.creation_epoch) AS newest
        FROM weir.cut_segments(in_stream_id, cut) c
    )
    SELECT g.segment_id, least(o[i - 1], o[i]) AS older, greatest(o[i - 1], o[i]) AS newer INTO wrong
    FROM listed l
    CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
        SELECT * FROM weir.segment s
        WHERE s.stream_id = in_stream_id AND s.segment_id >= l.oldest::bigint << 32
          AND s.segment_id < (l.newest + 1)::bigint << 32 OFFSET 0) g
    CROSS JOIN LATERAL generate_series(
        width_bucket(g.key_low, k) + 1, width_bucket(g.key_high, k)) i
    WHERE k[i] < g.key_high AND g.segment_id > least(o[i - 1], o[i])
      AND g.segment_id < greatest(o[i - 1], o[i])
    ORDER BY g.segment_id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'segment % comes after %, which is unread, and before %, which therefore cannot be reached: list % as future in place of %.',
            weir.segment_name(wrong.segment_id), weir.segment_name(wrong.older),
            weir.segment_name(wrong.newer), weir.segment_name(wrong.segment_id),
            weir.segment_name(wrong.newer) USING ERRCODE = 'WEIR2', DETAIL = 'cut_unreachable';
    END IF;
    RETURN cut;
END $$;
COMMENT ON FUNCTION weir.valid_cut(bigint, jsonb) IS 'A stream cut as it was given, or an error that says which of its segments is wrong, and why.';
