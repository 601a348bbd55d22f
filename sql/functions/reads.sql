-- U(from) minus U(to), and the present segments of the second cut. U of a cut has the segments at whose first key the
-- front of the cut is not newer (see front). The segments after the first cut were created by the epochs that sealed
-- its segments, and so on, epoch by epoch: the cost grows with the answer, and no pairs are compared.
CREATE OR REPLACE FUNCTION weir_internal.segments_between(in_stream_id bigint, "from" jsonb, "to" jsonb)
RETURNS TABLE (segment text, key_low double precision, key_high double precision,
               from_offset bigint, to_offset bigint, segment_id bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 64
AS $$
#variable_conflict use_column
DECLARE
    sid CONSTANT bigint := in_stream_id;
    a CONSTANT jsonb := coalesce("from", (SELECT head FROM weir_internal.stream WHERE stream_id = sid));
    b CONSTANT jsonb := coalesce("to", weir_internal.tail_cut(sid));
    a_keys double precision[];
    a_owners bigint[];
    b_keys double precision[];
    b_owners bigint[];
    ahead CONSTANT text := weir_internal.segment_name(weir_internal.first_behind(sid, a, b));
BEGIN
    IF ahead IS NOT NULL THEN
        RAISE EXCEPTION 'the first stream cut is after the second in segment %; give the earlier cut first.', ahead
            USING ERRCODE = 'WEIR2', DETAIL = 'position_invalid';
    END IF;
    SELECT keys, owners INTO b_keys, b_owners FROM weir_internal.front(sid, b);
    SELECT keys, owners INTO a_keys, a_owners FROM weir_internal.front(sid, a);
    RETURN QUERY
    WITH RECURSIVE first AS MATERIALIZED (
        SELECT * FROM weir_internal.cut_segments(sid, a)
    ), passed AS (
        SELECT f.segment_id, f.key_low, f.key_high, f.sealed_epoch, f.events FROM first f
        WHERE b_owners[width_bucket(f.key_low, b_keys)] > f.segment_id
    ), sealing AS (
        SELECT p.sealed_epoch AS epoch FROM passed p
        UNION
        SELECT n.sealed_epoch
        FROM sealing s
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir_internal.segment g WHERE g.stream_id = sid
            AND g.segment_id >= weir_internal.first_segment_id(s.epoch)
            AND g.segment_id < weir_internal.first_segment_id(s.epoch + 1) OFFSET 0) n
        WHERE a_owners[width_bucket(n.key_low, a_keys)] <= n.segment_id
          AND b_owners[width_bucket(n.key_low, b_keys)] > n.segment_id
    ), found AS (
        SELECT p.segment_id, p.key_low, p.key_high, p.events AS to_offset FROM passed p
        UNION
        SELECT n.segment_id, n.key_low, n.key_high, n.events
        FROM sealing s
        CROSS JOIN LATERAL (
            SELECT * FROM weir_internal.segment g WHERE g.stream_id = sid
            AND g.segment_id >= weir_internal.first_segment_id(s.epoch)
            AND g.segment_id < weir_internal.first_segment_id(s.epoch + 1) OFFSET 0) n
        WHERE a_owners[width_bucket(n.key_low, a_keys)] <= n.segment_id
          AND b_owners[width_bucket(n.key_low, b_keys)] > n.segment_id
        UNION ALL
        SELECT e.segment_id, e.key_low, e.key_high, e.event_offset
        FROM weir_internal.cut_segments(sid, b) e WHERE e.event_offset IS NOT NULL
    )
    SELECT weir_internal.segment_name(x.segment_id), x.key_low, x.key_high, coalesce(f.event_offset, 0),
           x.to_offset, x.segment_id
    FROM found x LEFT JOIN first f USING (segment_id)
    ORDER BY x.segment_id;
END $$;
COMMENT ON FUNCTION weir_internal.segments_between(bigint, jsonb, jsonb) IS 'As weir.segments_between, for the id of a stream, and cuts that are known to be valid.';

CREATE OR REPLACE FUNCTION weir.segments_between(stream text, "from" jsonb DEFAULT NULL, "to" jsonb DEFAULT NULL)
RETURNS TABLE (segment text, key_low double precision, key_high double precision,
               from_offset bigint, to_offset bigint, segment_id bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 64
AS $$
DECLARE
    sid CONSTANT bigint := weir_internal.stream_id(stream);
BEGIN
    RETURN QUERY SELECT * FROM weir_internal.segments_between(
        sid, weir_internal.valid_cut(sid, "from"), weir_internal.valid_cut(sid, "to"));
END $$;
COMMENT ON FUNCTION weir.segments_between(text, jsonb, jsonb) IS 'The segments to read from one cut (null: the head) to another (null: the tail), each with its first offset and the offset to stop at.';

CREATE OR REPLACE FUNCTION weir.span(stream text, cut jsonb)
RETURNS TABLE (segment text, epoch integer)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 32
AS $$
    SELECT weir_internal.segment_name(c.segment_id),
           least(c.sealed_epoch - 1, max(c.creation_epoch) OVER ())
    FROM (SELECT weir_internal.stream_id(stream) AS stream_id OFFSET 0) s
    CROSS JOIN LATERAL weir_internal.cut_segments(s.stream_id, weir_internal.valid_cut(s.stream_id, cut)) c
    ORDER BY c.segment_id
$$;
COMMENT ON FUNCTION weir.span(text, jsonb) IS 'Per segment of a cut the last epoch that it was part of, up to the epoch of the newest segment (PDP-32).';

-- Semantics 16.3. The segments of the cut share the distance. A segment at its end is replaced by its successors as
-- soon as one of them waits for no unread predecessor; the others become future. A successor gets the shares of its
-- predecessors, each divided by the number of their successors.
CREATE OR REPLACE FUNCTION weir_internal.next_cut(in_stream_id bigint, cut jsonb, distance bigint) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    WITH sid AS MATERIALIZED (
        SELECT s.stream_id, s.stream_name FROM weir_internal.stream s WHERE s.stream_id = in_stream_id
    ), entry AS MATERIALIZED (
        SELECT c.*, coalesce(c.event_offset >= c.events, false) AS done,
               greatest(1, distance / greatest(1, count(c.event_offset) OVER ())) AS share
        FROM sid CROSS JOIN LATERAL weir_internal.cut_segments(sid.stream_id, cut) c
    ), edge AS MATERIALIZED (
        SELECT e.segment_id AS from_id, n.segment_id, n.key_low, n.key_high, n.creation_epoch,
               e.share / count(*) OVER (PARTITION BY e.segment_id) AS share
        FROM entry e CROSS JOIN sid
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir_internal.segment g WHERE g.stream_id = sid.stream_id
            AND g.segment_id >= weir_internal.first_segment_id(e.sealed_epoch)
            AND g.segment_id < weir_internal.first_segment_id(e.sealed_epoch + 1) OFFSET 0) n
        WHERE e.done AND n.key_low < e.key_high AND n.key_high > e.key_low
    ), merged AS MATERIALIZED (
        SELECT n.segment_id, n.creation_epoch, n.key_low, n.key_high, sum(n.share)::bigint AS share,
               array_agg(n.from_id) AS froms
        FROM edge n GROUP BY n.segment_id, n.creation_epoch, n.key_low, n.key_high
    ), successor AS MATERIALIZED (
        SELECT m.*, NOT EXISTS (
            SELECT FROM sid JOIN weir_internal.segment p ON p.stream_name = sid.stream_name
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
            SELECT * FROM weir_internal.segment g WHERE g.stream_id = (SELECT stream_id FROM sid)
            AND g.segment_id = m.segment_id OFFSET 0) g
        LEFT JOIN weir_internal.segment_tail t ON t.stream_id = g.stream_id AND t.segment_id = g.segment_id
        UNION ALL
        SELECT n.segment_id, '"future"'::jsonb FROM successor n
        WHERE NOT n.ready AND n.froms && (SELECT array_agg(segment_id) FROM departed)
        UNION ALL
        SELECT e.segment_id, '"future"'::jsonb FROM entry e
        WHERE e.event_offset IS NULL
          AND e.segment_id NOT IN (SELECT segment_id FROM successor WHERE ready)
    )
    SELECT jsonb_object_agg(weir_internal.segment_name(l.segment_id), l.v ORDER BY l.segment_id) FROM listed l
$$;
COMMENT ON FUNCTION weir_internal.next_cut(bigint, jsonb, bigint) IS 'As weir.next_cut, for the id of a stream, and a cut that is known to be valid and not truncated.';

CREATE OR REPLACE FUNCTION weir.next_cut(stream text, cut jsonb, distance bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    sid CONSTANT bigint := weir_internal.stream_id(stream);
    head CONSTANT jsonb := (SELECT s.head FROM weir_internal.stream s WHERE s.stream_id = sid);
    behind bigint;
BEGIN
    IF distance IS NULL OR distance < 1 THEN
        RAISE EXCEPTION 'the distance is %; it must be a number of events, 1 or more.', coalesce(distance::text, 'NULL')
            USING ERRCODE = 'WEIR2', DETAIL = 'argument_invalid';
    END IF;
    PERFORM weir_internal.valid_cut(sid, cut);
    behind := weir_internal.first_behind(sid, head, cut);
    IF behind IS NOT NULL THEN
        RAISE EXCEPTION 'the events after the cut in segment % were truncated; start at the head, %, or later.', weir_internal.segment_name(behind), head
            USING ERRCODE = 'WEIR4', DETAIL = 'events_truncated';
    END IF;
    RETURN weir_internal.next_cut(sid, cut, distance);
END $$;
COMMENT ON FUNCTION weir.next_cut(text, jsonb, bigint) IS 'The cut about so many events after another: what to read next if that much is read at once.';

-- A commit in flight may still get a clock before now, so the answer for a recent time may change. Only
-- closed_cut_at in weir.controller.queries makes sure that it does not.
CREATE OR REPLACE FUNCTION weir.stream_cut_at(stream text, at timestamptz) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN EXISTS (
            SELECT FROM weir_internal.epoch e
            WHERE e.stream_id = s.stream_id AND e.created_at <= weir_internal.time_clock(at))
        THEN weir_internal.readable_cut(s.stream_id, (
            SELECT jsonb_object_agg(weir_internal.segment_name(a.segment_id), coalesce((
                       SELECT i.start_offset + i.events FROM weir_internal.commit_by(
                           s.stream_id, a.segment_id, weir_internal.time_clock(at)) i), 0) ORDER BY a.segment_id)
            FROM weir_internal.active_segments_at(
                s.stream_id, weir_internal.epoch_at(s.stream_id, weir_internal.time_clock(at))) a), s.head)
        -- The epoch of that time was pruned, but a segment of the head may be older than the first epoch that
        -- is left. Everything pruned is below the head, so the segments of the head decide alone.
        ELSE coalesce((
            SELECT jsonb_object_agg(weir_internal.segment_name(h.segment_id), CASE
                    WHEN h.event_offset IS NULL THEN '"future"'
                    ELSE to_jsonb(greatest(h.event_offset, (
                       SELECT i.start_offset + i.events FROM weir_internal.commit_by(
                           s.stream_id, h.segment_id, weir_internal.time_clock(at)) i))) END ORDER BY h.segment_id)
            FROM weir_internal.cut_entries(s.head) h), s.head)
        END
    FROM weir_internal.stream s
    WHERE s.stream_id = weir_internal.stream_id(stream)
$$;
COMMENT ON FUNCTION weir.stream_cut_at(text, timestamptz) IS 'The cut that was the tail at a time, or the head if that is later. The events that were committed after the time begin there.';

CREATE OR REPLACE FUNCTION weir.recorded_cut(stream text, at timestamptz)
RETURNS TABLE (recorded_at timestamptz, cut jsonb, events bigint, bytes bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT c.recorded_at, c.cut, c.events, c.bytes FROM weir_internal.stream_cut c
    WHERE c.stream_id = weir_internal.stream_id(stream) AND c.recorded_at <= at
    ORDER BY c.recorded_at DESC LIMIT 1
$$;
COMMENT ON FUNCTION weir.recorded_cut(text, timestamptz) IS 'The newest cut of the retention set recorded at or before a time.';
