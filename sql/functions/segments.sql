-- Walks the tiling: at key 0, take the newest segment that begins there and was created by then; continue at its
-- end. This takes one or two index probes per segment, however long the history is. Postgres reads all entries of a
-- page for which a condition holds, even if only the first one is wanted, and in a long history a page is full of
-- segments that begin at one key. So the first probe looks at 256 epochs only; older segments take a second one.
CREATE OR REPLACE FUNCTION weir_internal.active_segments_at(in_stream_id bigint, in_epoch integer)
RETURNS TABLE (segment_id bigint, key_low double precision, key_high double precision)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 16
AS $$
    WITH RECURSIVE walk AS (
        (SELECT s.segment_id, s.key_low, s.key_high, s.sealed_epoch
         FROM weir_internal.segment s
         WHERE s.stream_id = in_stream_id AND s.key_low = 0 AND s.creation_epoch <= in_epoch
         ORDER BY s.creation_epoch DESC LIMIT 1)
        UNION ALL
        SELECT s.segment_id, s.key_low, s.key_high, s.sealed_epoch
        FROM walk w CROSS JOIN LATERAL (
            (SELECT n.segment_id, n.key_low, n.key_high, n.sealed_epoch
             FROM weir_internal.segment n
             WHERE n.stream_id = in_stream_id AND n.key_low = w.key_high
               AND n.creation_epoch <= in_epoch AND n.creation_epoch > in_epoch - 256
             ORDER BY n.creation_epoch DESC LIMIT 1)
            UNION ALL
            (SELECT n.segment_id, n.key_low, n.key_high, n.sealed_epoch
             FROM weir_internal.segment n
             WHERE n.stream_id = in_stream_id AND n.key_low = w.key_high
               AND n.creation_epoch <= in_epoch
             ORDER BY n.creation_epoch DESC LIMIT 1)
            LIMIT 1) s
        WHERE w.key_high < 1
    )
    SELECT w.segment_id, w.key_low, w.key_high FROM walk w
    WHERE w.sealed_epoch IS NULL OR w.sealed_epoch > in_epoch
$$;
COMMENT ON FUNCTION weir_internal.active_segments_at(bigint, integer) IS 'The segments that tile [0, 1) in an epoch (PDP-32).';

-- In a long history most epochs are after the head: all their segments are newer than those of the head. Then the
-- head hides nothing of them, and the function makes no cut of them.
CREATE OR REPLACE FUNCTION weir.active_segments(stream text, at timestamptz DEFAULT NULL)
RETURNS TABLE (segment text, key_low double precision, key_high double precision,
               first_offset bigint, segment_id bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 16
AS $$
    WITH s AS MATERIALIZED (
        SELECT s.stream_id, s.head, weir_internal.time_clock(at) AS clock
        FROM weir_internal.stream s
        WHERE s.stream_id = weir_internal.stream_id(stream)
          AND (s.sealed_clock IS NULL OR weir_internal.time_clock(at) < s.sealed_clock)
    ), tiles AS MATERIALIZED (
        SELECT a.* FROM s
        CROSS JOIN LATERAL weir_internal.active_segments_at(
            s.stream_id, weir_internal.epoch_at(s.stream_id, s.clock)) a
        WHERE s.clock IS NOT NULL
        UNION ALL
        SELECT g.segment_id, g.key_low, g.key_high FROM s
        JOIN weir_internal.segment_tail t ON t.stream_id = s.stream_id
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir_internal.segment g WHERE g.stream_id = t.stream_id
            AND g.segment_id = t.segment_id OFFSET 0) g
        WHERE s.clock IS NULL
    ), usual AS MATERIALIZED (
        SELECT (SELECT max(split_part(key, '.', 2)::integer) FROM jsonb_object_keys(s.head) AS key)
               < (SELECT min(weir_internal.creation_epoch(t.segment_id)) FROM tiles t) AS so
        FROM s
    ), readable AS (
        SELECT t.segment_id, t.key_low, t.key_high, 0::bigint AS event_offset
        FROM tiles t WHERE (SELECT so FROM usual)
        UNION ALL
        SELECT c.segment_id, g.key_low, g.key_high, c.event_offset
        FROM s
        CROSS JOIN LATERAL weir_internal.cut_entries(weir_internal.join_cuts(s.stream_id,
            (SELECT jsonb_object_agg(weir_internal.segment_name(t.segment_id), 0) FROM tiles t), s.head)) c
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir_internal.segment g WHERE g.stream_id = s.stream_id
            AND g.segment_id = c.segment_id OFFSET 0) g
        WHERE NOT (SELECT so FROM usual)
    )
    SELECT weir_internal.segment_name(r.segment_id), r.key_low, r.key_high, r.event_offset, r.segment_id
    FROM readable r
    ORDER BY r.key_low, r.segment_id
$$;
COMMENT ON FUNCTION weir.active_segments(text, timestamptz) IS 'The segments that were active at a time (null: now), each with the first offset that can still be read. If all events of a segment are below the head, its successors are returned in its place. first_offset is null if a predecessor must be read first. A sealed stream has none.';

-- For an earlier clock: the first epoch that was not pruned.
CREATE OR REPLACE FUNCTION weir_internal.epoch_at(in_stream_id bigint, in_clock bigint) RETURNS integer
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(
        (SELECT e.epoch FROM weir_internal.epoch e
         WHERE e.stream_id = in_stream_id AND e.created_at <= in_clock
         ORDER BY e.created_at DESC LIMIT 1),
        (SELECT min(f.epoch) FROM weir_internal.epoch f WHERE f.stream_id = in_stream_id), 0)
$$;
COMMENT ON FUNCTION weir_internal.epoch_at(bigint, bigint) IS 'The epoch that was current at a clock.';

CREATE OR REPLACE FUNCTION weir.epoch_at(stream text, at timestamptz) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT weir_internal.epoch_at(weir_internal.stream_id(stream), weir_internal.time_clock(at)) $$;
COMMENT ON FUNCTION weir.epoch_at(text, timestamptz) IS 'The epoch that was current at a time; for an earlier time the first epoch that was not pruned.';

CREATE OR REPLACE FUNCTION weir.scale_metadata(stream text, "from" timestamptz, "to" timestamptz)
RETURNS TABLE (epoch integer, created_at timestamptz, cause text, splits bigint, merges bigint,
               segments jsonb)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT e.epoch, weir_internal.clock_time(e.created_at), e.cause,
           e.splits - lag(e.splits, 1, e.splits) OVER w,
           e.merges - lag(e.merges, 1, e.merges) OVER w,
           (SELECT jsonb_object_agg(weir_internal.segment_name(a.segment_id),
                                    jsonb_build_array(a.key_low, a.key_high) ORDER BY a.segment_id)
            FROM weir_internal.active_segments_at(e.stream_id, e.epoch) a)
    FROM (SELECT weir_internal.stream_id(stream) AS stream_id OFFSET 0) s
    JOIN weir_internal.epoch e ON e.stream_id = s.stream_id
        AND e.epoch BETWEEN weir_internal.epoch_at(s.stream_id, weir_internal.time_clock("from"))
                    AND weir_internal.epoch_at(s.stream_id, weir_internal.time_clock("to"))
    WINDOW w AS (ORDER BY e.epoch)
    ORDER BY e.epoch
$$;
COMMENT ON FUNCTION weir.scale_metadata(text, timestamptz, timestamptz) IS 'The epochs between two times with their segments and ranges, and the splits and merges that made each of them (0 for the first one shown).';

-- All segments that overlap a sealed segment in the epoch that sealed it were created in that epoch, and their
-- predecessors were sealed in it: two ranges of indexes, however long the history is.
CREATE OR REPLACE FUNCTION weir.successors(stream text, segment text)
RETURNS TABLE (successor text, key_low double precision, key_high double precision,
               predecessors text[])
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 4
AS $$
    SELECT weir_internal.segment_name(n.segment_id), n.key_low, n.key_high,
           array(SELECT weir_internal.segment_name(p.segment_id) FROM weir_internal.segment p
                 WHERE p.stream_name = s.stream_name AND p.sealed_epoch = s.sealed_epoch
                   AND p.key_low < n.key_high AND p.key_high > n.key_low
                 ORDER BY p.segment_id)
    FROM weir_internal.segment_of(weir_internal.stream_id(stream), segment) s
    CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
        SELECT * FROM weir_internal.segment g WHERE g.stream_id = s.stream_id
        AND g.segment_id >= weir_internal.first_segment_id(s.sealed_epoch)
        AND g.segment_id < weir_internal.first_segment_id(s.sealed_epoch + 1) OFFSET 0) n
    WHERE n.key_low < s.key_high AND n.key_high > s.key_low
    ORDER BY n.segment_id
$$;
COMMENT ON FUNCTION weir.successors(text, text) IS 'The segments that follow a segment over its keys, each with all its predecessors. An active segment has none.';

CREATE OR REPLACE FUNCTION weir.predecessors(stream text, segment text)
RETURNS TABLE (predecessor text, key_low double precision, key_high double precision,
               successors text[])
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 4
AS $$
    SELECT weir_internal.segment_name(p.segment_id), p.key_low, p.key_high,
           array(SELECT weir_internal.segment_name(n.segment_id) FROM (
                     SELECT * FROM weir_internal.segment g WHERE g.stream_id = s.stream_id
                     AND g.segment_id >= weir_internal.first_segment_id(s.creation_epoch)
                     AND g.segment_id < weir_internal.first_segment_id(s.creation_epoch + 1) OFFSET 0) n
                 WHERE n.key_low < p.key_high AND n.key_high > p.key_low
                 ORDER BY n.segment_id)
    FROM weir_internal.segment_of(weir_internal.stream_id(stream), segment) s
    JOIN weir_internal.segment p ON p.stream_name = s.stream_name AND p.sealed_epoch = s.creation_epoch
        AND p.key_low < s.key_high AND p.key_high > s.key_low
    ORDER BY p.segment_id
$$;
COMMENT ON FUNCTION weir.predecessors(text, text) IS 'The segments that a segment follows, each with all its successors. The segments of epoch 0 have none.';
