-- The next bounded cut (semantics 16). The distance is shared by the segments of the cut. A segment
-- that is at its end is left as soon as one of its successors waits for no unread predecessor; its
-- other successors become future. A successor gets its predecessors' shares, each divided by the
-- number of their successors.
CREATE FUNCTION weir.next_cut(in_stream_id bigint, cut jsonb, distance bigint) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    WITH sid AS MATERIALIZED (
        SELECT in_stream_id AS stream_id
    ), entry AS MATERIALIZED (
        SELECT c.*, coalesce(c.event_offset >= c.events, false) AS done,
               greatest(1, distance / greatest(1, count(c.event_offset) OVER ())) AS share
        FROM sid CROSS JOIN LATERAL weir.cut_segments(sid.stream_id, cut) c
    ), edge AS MATERIALIZED (
        SELECT e.segment_id AS from_id, n.segment_id, n.key_low, n.key_high, n.creation_epoch,
               e.share / count(*) OVER (PARTITION BY e.segment_id) AS share
        FROM entry e CROSS JOIN sid
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir.segment g WHERE g.stream_id = sid.stream_id
            AND g.segment_id >= e.sealed_epoch::bigint << 32
            AND g.segment_id < (e.sealed_epoch + 1)::bigint << 32 OFFSET 0) n
        WHERE e.done AND n.key_low < e.key_high AND n.key_high > e.key_low
    ), merged AS MATERIALIZED (
        SELECT n.segment_id, n.creation_epoch, n.key_low, n.key_high, sum(n.share)::bigint AS share,
               array_agg(n.from_id) AS froms
        FROM edge n GROUP BY n.segment_id, n.creation_epoch, n.key_low, n.key_high
    ), successor AS MATERIALIZED (
        SELECT m.*, NOT EXISTS (
            SELECT FROM sid JOIN weir.segment p ON p.stream_id = sid.stream_id
                AND p.sealed_epoch = m.creation_epoch
                AND p.key_low < m.key_high AND p.key_high > m.key_low
            WHERE p.segment_id <> ALL (m.froms)
              AND EXISTS (SELECT FROM entry o WHERE o.segment_id <= p.segment_id
                          AND o.key_low < p.key_high AND o.key_high > p.key_low)) AS ready
        FROM merged m
    ), departed AS MATERIALIZED (
        SELECT DISTINCT unnest(froms) AS segment_id FROM successor WHERE ready
    ), moved AS (
        SELECT e.segment_id, e.event_offset, e.share FROM entry e
        WHERE e.event_offset IS NOT NULL AND e.segment_id NOT IN (SELECT segment_id FROM departed)
        UNION ALL SELECT n.segment_id, 0, n.share FROM successor n WHERE n.ready
    ), listed AS (
        SELECT m.segment_id,
               to_jsonb(least(m.event_offset + greatest(1, m.share),
                              coalesce(t.tail_offset, g.events))) AS v
        FROM moved m
        CROSS JOIN LATERAL (
            SELECT * FROM weir.segment g WHERE g.stream_id = (SELECT stream_id FROM sid)
            AND g.segment_id = m.segment_id OFFSET 0) g
        LEFT JOIN weir.segment_tail t ON t.stream_id = g.stream_id AND t.segment_id = g.segment_id
        UNION ALL
        SELECT n.segment_id, '"future"'::jsonb FROM successor n
        WHERE NOT n.ready AND n.froms && (SELECT array_agg(segment_id) FROM departed)
        UNION ALL
        SELECT e.segment_id, '"future"'::jsonb FROM entry e
        WHERE e.event_offset IS NULL
          AND e.segment_id NOT IN (SELECT segment_id FROM successor WHERE ready)
    )
    SELECT jsonb_object_agg(weir.segment_name(l.segment_id), l.v ORDER BY l.segment_id) FROM listed l
$$;
COMMENT ON FUNCTION weir.next_cut(bigint, jsonb, bigint) IS 'The same for a stream''s id, and a cut that is known to be valid and not truncated.';

CREATE FUNCTION weir.next_cut(stream text, cut jsonb, distance bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
DECLARE
    sid CONSTANT bigint := weir.stream_id(stream);
    head CONSTANT jsonb := (SELECT s.head FROM weir.stream s WHERE s.stream_id = sid);
    behind bigint;
BEGIN
    IF distance IS NULL OR distance < 1 THEN
        RAISE EXCEPTION 'the distance is %; give the number of events to go on by, 1 or more.', coalesce(distance::text, 'NULL')
            USING ERRCODE = 'WEIR2', DETAIL = 'argument_invalid';
    END IF;
    PERFORM weir.valid_cut(sid, cut);
    behind := weir.first_behind(sid, head, cut);
    IF behind IS NOT NULL THEN
        RAISE EXCEPTION 'what follows the cut was truncated in segment %; begin at the head, %, or later.', weir.segment_name(behind), head
            USING ERRCODE = 'WEIR4', DETAIL = 'events_truncated';
    END IF;
    RETURN weir.next_cut(sid, cut, distance);
END $$;
COMMENT ON FUNCTION weir.next_cut(text, jsonb, bigint) IS 'The cut that lies about so many events after another: what to read next when that much is read at once.';
