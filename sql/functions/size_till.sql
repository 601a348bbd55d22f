-- Events and bytes before a cut, from the beginning of the stream: what was sealed by the cut's
-- newest creation epoch (a prefix sum), less the segments at or after the cut among them, plus the
-- offsets. No walk over epochs, and nothing below the head is needed.
CREATE FUNCTION weir.size_till(in_stream_id bigint, in_cut jsonb)
RETURNS TABLE (events bigint, bytes bigint)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog ROWS 1
AS $$
    WITH entries AS MATERIALIZED (
        SELECT c.segment_id, c.event_offset, s.key_low, s.key_high, s.creation_epoch
        FROM weir.cut_entries(in_cut) c
        JOIN weir.segment s ON s.stream_id = in_stream_id AND s.segment_id = c.segment_id
    ), span AS (
        SELECT min(creation_epoch) AS oldest, max(creation_epoch) AS newest FROM entries
    ), ahead AS (
        SELECT coalesce(sum(s.events), 0) AS events, coalesce(sum(s.bytes), 0) AS bytes
        FROM span, weir.segment s
        WHERE s.stream_id = in_stream_id
          AND s.sealed_epoch > span.oldest AND s.sealed_epoch <= span.newest
          AND EXISTS (SELECT FROM entries e WHERE e.segment_id <= s.segment_id
                      AND e.key_low < s.key_high AND e.key_high > s.key_low)
    ), within AS (
        SELECT coalesce(sum(e.event_offset), 0) AS events,
               coalesce(sum(weir.bytes_till(in_stream_id, e.segment_id, e.event_offset)), 0) AS bytes
        FROM entries e
    )
    SELECT (p.sealed_events - ahead.events + within.events)::bigint,
           (p.sealed_bytes - ahead.bytes + within.bytes)::bigint
    FROM span, ahead, within, weir.epoch p
    WHERE p.stream_id = in_stream_id AND p.epoch = span.newest
$$;
COMMENT ON FUNCTION weir.size_till(bigint, jsonb) IS 'Events and bytes before a cut, counted from the beginning of the stream.';
