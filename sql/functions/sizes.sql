-- Within one commit, bytes are divided in proportion to events.
CREATE OR REPLACE FUNCTION weir_internal.bytes_before(in_stream_id bigint, in_segment_id bigint, in_offset bigint)
RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(
        (SELECT i.start_byte
                + (i.bytes::numeric * least(in_offset - i.start_offset, i.events) / i.events)::bigint
         FROM weir_internal.commit_at(in_stream_id, in_segment_id, in_offset - 1) i), 0)
$$;
COMMENT ON FUNCTION weir_internal.bytes_before(bigint, bigint, bigint) IS 'Bytes of a segment before an offset, as first committed.';

-- The sum is: the events of all segments sealed by the newest creation epoch of the cut (a prefix sum), minus those
-- segments among them that are at or after the cut, plus the offsets. The function finds those segments from the
-- cut's own, successor by successor. So it reads nothing before the cut, and of what is after the cut only what was
-- sealed by that epoch.
CREATE OR REPLACE FUNCTION weir_internal.size_till(in_stream_id bigint, in_cut jsonb)
RETURNS TABLE (events bigint, bytes bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    WITH RECURSIVE entries AS MATERIALIZED (
        SELECT * FROM weir_internal.cut_segments(in_stream_id, in_cut)
    ), newest AS MATERIALIZED (
        SELECT max(creation_epoch) AS epoch FROM entries
    ), ahead AS (
        SELECT e.segment_id, e.key_low, e.key_high, e.sealed_epoch, e.events, e.bytes
        FROM entries e WHERE e.sealed_epoch <= (SELECT epoch FROM newest)
        UNION
        SELECT n.segment_id, n.key_low, n.key_high, n.sealed_epoch, n.events, n.bytes
        FROM ahead a
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir_internal.segment g WHERE g.stream_id = in_stream_id
            AND g.segment_id >= weir_internal.first_segment_id(a.sealed_epoch)
            AND g.segment_id < weir_internal.first_segment_id(a.sealed_epoch + 1) OFFSET 0) n
        WHERE n.key_low < a.key_high AND n.key_high > a.key_low
          AND n.sealed_epoch <= (SELECT epoch FROM newest)
    ), unread AS (
        SELECT coalesce(sum(a.events), 0) AS events, coalesce(sum(a.bytes), 0) AS bytes
        FROM ahead a
    ), within AS (
        SELECT coalesce(sum(e.event_offset), 0) AS events,
               coalesce(sum(CASE WHEN e.event_offset > 0 THEN
                   weir_internal.bytes_before(in_stream_id, e.segment_id, e.event_offset) END), 0) AS bytes
        FROM entries e
    )
    SELECT (p.sealed_events - unread.events + within.events)::bigint - weir_internal.holes_till(in_stream_id, in_cut),
           (p.sealed_bytes - unread.bytes + within.bytes)::bigint
    FROM unread, within, weir_internal.epoch p
    WHERE p.stream_id = in_stream_id AND p.epoch = (SELECT epoch FROM newest)
$$;
COMMENT ON FUNCTION weir_internal.size_till(bigint, jsonb) IS 'Events (without those that were erased) and bytes before a cut, counted from the beginning of the stream.';

CREATE OR REPLACE FUNCTION weir.size_till(stream text, cut jsonb)
RETURNS TABLE (events bigint, bytes bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT z.* FROM (SELECT weir_internal.stream_id(stream) AS stream_id OFFSET 0) s
    CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, weir_internal.valid_cut(s.stream_id, cut)) z
$$;
COMMENT ON FUNCTION weir.size_till(text, jsonb) IS 'Events (without those that were erased) and bytes before a cut, counted from the beginning of the stream.';

CREATE OR REPLACE FUNCTION weir.size_between(stream text, "from" jsonb, "to" jsonb)
RETURNS TABLE (events bigint, bytes bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT b.events - a.events, b.bytes - a.bytes
    FROM (SELECT weir_internal.stream_id(stream) AS stream_id OFFSET 0) s
    CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, weir_internal.valid_cut(s.stream_id, "from")) a
    CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, weir_internal.valid_cut(s.stream_id, "to")) b
$$;
COMMENT ON FUNCTION weir.size_between(text, jsonb, jsonb) IS 'Events and bytes between two cuts; negative if the second cut is before the first.';

-- Of a segment that is read to its end, it looks at the successors, which are unread unless they are given; of any
-- other, at the first unread commit, which is the oldest. Nothing follows a segment in which `in_end` lies, and what it
-- calls "future" is not read either. (In JSON, "future" is less than any number.) With a plan for any values: to plan it
-- anew for each call takes ten times as long as to answer.
CREATE OR REPLACE FUNCTION weir_internal.clock_from(
    in_stream_id bigint, in_segments bigint[], in_offsets bigint[], in_end jsonb DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
AS $$
BEGIN RETURN (
    WITH RECURSIVE given AS MATERIALIZED (
        SELECT * FROM unnest(in_segments, in_offsets) AS g (segment_id, next_offset)
    ), front AS (
        SELECT g.segment_id, g.next_offset FROM given g
        UNION
        SELECT n.segment_id, coalesce((SELECT g.next_offset FROM given g WHERE g.segment_id = n.segment_id), 0)
        FROM front f
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir_internal.segment g
            WHERE g.stream_id = in_stream_id AND g.segment_id = f.segment_id
              AND g.events <= f.next_offset
              AND in_end -> weir_internal.segment_name(f.segment_id) IS NULL OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT * FROM weir_internal.segment g WHERE g.stream_id = in_stream_id
            AND g.segment_id >= weir_internal.first_segment_id(s.sealed_epoch)
            AND g.segment_id < weir_internal.first_segment_id(s.sealed_epoch + 1) OFFSET 0) n
        WHERE n.key_low < s.key_high AND n.key_high > s.key_low
    )
    SELECT min(first.clock)
    FROM front f
    CROSS JOIN LATERAL weir_internal.commit_from(in_stream_id, f.segment_id, f.next_offset) first
    WHERE coalesce(in_end -> weir_internal.segment_name(f.segment_id) > to_jsonb(f.next_offset), true));
END $$;
COMMENT ON FUNCTION weir_internal.clock_from(bigint, bigint[], bigint[], jsonb) IS 'The clock of the oldest event of a stream at or after offsets of segments, or in what follows those segments, and before a cut; null if there is none.';

CREATE OR REPLACE FUNCTION weir_internal.clock_between(in_stream_id bigint, in_from jsonb, in_to jsonb) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT weir_internal.clock_from(in_stream_id, array_agg(c.segment_id), array_agg(coalesce(c.event_offset, 0)), in_to)
    FROM weir_internal.cut_entries(in_from) c
$$;
COMMENT ON FUNCTION weir_internal.clock_between(bigint, jsonb, jsonb) IS 'The clock of the oldest event of a stream that lies after one cut and before another; null if there is none.';

CREATE OR REPLACE FUNCTION weir_internal.clock_after(in_stream_id bigint, in_cut jsonb) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT weir_internal.clock_from(in_stream_id, array_agg(c.segment_id), array_agg(coalesce(c.event_offset, 0)))
    FROM weir_internal.cut_entries(in_cut) c
$$;
COMMENT ON FUNCTION weir_internal.clock_after(bigint, jsonb) IS 'The clock of the oldest event at or after a cut; null if there is none.';

CREATE OR REPLACE FUNCTION weir_internal.oldest_unread(in_stream_id bigint, in_cut jsonb, in_end jsonb) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF in_end IS NULL THEN
        RETURN weir_internal.clock_after(in_stream_id, in_cut);
    END IF;
    RETURN (
        SELECT min(i.clock)
        FROM weir_internal.stream s
        CROSS JOIN LATERAL weir_internal.segments_between(s.stream_id, in_cut,
            weir_internal.join_cuts(in_stream_id, in_cut, in_end)) b
        CROSS JOIN LATERAL weir_internal.commit_at(in_stream_id, b.segment_id, b.from_offset) i
        WHERE s.stream_id = in_stream_id AND b.from_offset < b.to_offset);
END $$;
COMMENT ON FUNCTION weir_internal.oldest_unread(bigint, jsonb, jsonb) IS 'The clock of the oldest event from a cut to an end (null: the tail); null if there is none.';

-- Events below the head cannot be read any more, so it begins at the join of cut and head. A group with an end
-- reads up to its end; nothing is left of what it has passed or what was truncated.
CREATE OR REPLACE FUNCTION weir_internal.unread_from(in_stream_id bigint, in_cut jsonb, in_head jsonb, in_end jsonb)
RETURNS TABLE (readable jsonb, events bigint, bytes bigint, oldest bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
DECLARE
    tail CONSTANT jsonb := CASE WHEN in_end IS NULL THEN weir_internal.tail_cut(in_stream_id) END;
    here jsonb;
    end_cut jsonb;
BEGIN
    IF in_cut = tail THEN  -- usual for a group that keeps up; the head is not later
        RETURN QUERY SELECT in_cut, 0::bigint, 0::bigint, NULL::bigint;
        RETURN;
    END IF;
    here := weir_internal.readable_cut(in_stream_id, in_cut, in_head);
    end_cut := coalesce(tail, weir_internal.join_cuts(in_stream_id, here, in_end));
    IF here IS NULL THEN  -- the stream was deleted
        RETURN;
    ELSIF here = end_cut THEN
        RETURN QUERY SELECT here, 0::bigint, 0::bigint, NULL::bigint;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT here, b.events - a.events, b.bytes - a.bytes,
           weir_internal.oldest_unread(in_stream_id, here, in_end)
    FROM weir_internal.size_till(in_stream_id, here) a CROSS JOIN weir_internal.size_till(in_stream_id, end_cut) b;
END $$;
COMMENT ON FUNCTION weir_internal.unread_from(bigint, jsonb, jsonb, jsonb) IS 'What there is to read from a cut (or from the head, if that is later) to an end (null: the tail): the cut where it begins, the events and bytes, and the clock of the oldest event.';
