-- Events and bytes before a cut, from the beginning of the stream: what was sealed by the cut's
-- newest creation epoch (a prefix sum), less the segments at or after the cut among them, plus the
-- offsets. Those are found from the cut's own segments, successor by successor, so nothing is read
-- that lies before the cut, and of what lies after it only what was sealed by that epoch.
CREATE FUNCTION weir.size_till(in_stream_id bigint, in_cut jsonb)
RETURNS TABLE (events bigint, bytes bigint)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 1
AS $$
    WITH RECURSIVE entries AS MATERIALIZED (
        SELECT * FROM weir.cut_segments(in_stream_id, in_cut)
    ), newest AS MATERIALIZED (
        SELECT max(creation_epoch) AS epoch FROM entries
    ), ahead AS (
        SELECT e.segment_id, e.key_low, e.key_high, e.sealed_epoch, e.events, e.bytes
        FROM entries e WHERE e.sealed_epoch <= (SELECT epoch FROM newest)
        UNION
        SELECT n.segment_id, n.key_low, n.key_high, n.sealed_epoch, n.events, n.bytes
        FROM ahead a
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir.segment g WHERE g.stream_id = in_stream_id
            AND g.segment_id >= a.sealed_epoch::bigint << 32
            AND g.segment_id < (a.sealed_epoch + 1)::bigint << 32 OFFSET 0) n
        WHERE n.key_low < a.key_high AND n.key_high > a.key_low
          AND n.sealed_epoch <= (SELECT epoch FROM newest)
    ), unread AS (
        SELECT coalesce(sum(a.events), 0) AS events, coalesce(sum(a.bytes), 0) AS bytes
        FROM ahead a
    ), within AS (
        SELECT coalesce(sum(e.event_offset), 0) AS events,
               coalesce(sum(CASE WHEN e.event_offset > 0 THEN
                   weir.bytes_till(in_stream_id, e.segment_id, e.event_offset) END), 0) AS bytes
        FROM entries e
    )
    SELECT (p.sealed_events - unread.events + within.events)::bigint,
           (p.sealed_bytes - unread.bytes + within.bytes)::bigint
    FROM unread, within, weir.epoch p
    WHERE p.stream_id = in_stream_id AND p.epoch = (SELECT epoch FROM newest)
$$;
COMMENT ON FUNCTION weir.size_till(bigint, jsonb) IS 'Events and bytes before a cut, counted from the beginning of the stream.';

CREATE FUNCTION weir.size_till(stream text, cut jsonb)
RETURNS TABLE (events bigint, bytes bigint)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 1
AS $$
    SELECT z.* FROM (SELECT weir.stream_id(stream) AS stream_id OFFSET 0) s
    CROSS JOIN LATERAL weir.size_till(s.stream_id, weir.valid_cut(s.stream_id, cut)) z
$$;
COMMENT ON FUNCTION weir.size_till(text, jsonb) IS 'Events and bytes before a cut, counted from the beginning of the stream.';

CREATE FUNCTION weir.size_between(stream text, "from" jsonb, "to" jsonb)
RETURNS TABLE (events bigint, bytes bigint)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 1
AS $$
    SELECT b.events - a.events, b.bytes - a.bytes
    FROM (SELECT weir.stream_id(stream) AS stream_id OFFSET 0) s
    CROSS JOIN LATERAL weir.size_till(s.stream_id, weir.valid_cut(s.stream_id, "from")) a
    CROSS JOIN LATERAL weir.size_till(s.stream_id, weir.valid_cut(s.stream_id, "to")) b
$$;
COMMENT ON FUNCTION weir.size_between(text, jsonb, jsonb) IS 'Events and bytes between two cuts; negative when the second lies before the first.';
