-- Whether events were read before they were truncated. A receipt says who subscribed when they went, and what each of
-- them had lost by then; the ranges of a group say what its batches have read. Both are found by probes of an index,
-- however long the stream has lived. One row without a reader group: nobody subscribed at that time.
CREATE OR REPLACE FUNCTION weir.was_read_before_it_went(stream text, segment text, from_offset bigint, to_offset bigint)
RETURNS TABLE (reader_group text, read boolean, events bigint, lost_events bigint, passed_events bigint,
               truncated_at timestamptz, rule text, released_at timestamptz, batches bigint[], runs text[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 4
AS $$
#variable_conflict use_column
DECLARE
    sid CONSTANT bigint := weir_internal.stream_id(stream);
    wanted CONSTANT bigint := weir_internal.segment_id(was_read_before_it_went.segment);
    first CONSTANT bigint := greatest(was_read_before_it_went.from_offset, 0);
    past CONSTANT bigint := was_read_before_it_went.to_offset;
BEGIN
    IF wanted IS NULL THEN
        RAISE EXCEPTION '''%'' is not a segment; write number.epoch, such as 5.1.', segment
            USING ERRCODE = 'WEIR2', DETAIL = 'name_invalid';
    END IF;
    RETURN QUERY
    WITH took AS MATERIALIZED (
        SELECT greatest(r.from_offset, first) AS first, least(r.to_offset, past) AS past, t.*
        FROM weir_internal.truncated_range r JOIN weir_internal.truncation t USING (stream_id, number)
        WHERE r.stream_id = sid AND r.segment_id = wanted AND r.from_offset < past AND r.from_offset >= coalesce((
            SELECT max(b.from_offset) FROM weir_internal.truncated_range b
            WHERE b.stream_id = sid AND b.segment_id = wanted AND b.from_offset <= first), 0)
          AND r.to_offset > first
    ), asked AS (
        SELECT s.key AS name, (s.value ->> 'group_id')::bigint AS group_id, t.number, t.first, t.past, t.truncated_at,
               t.rule, (s.value ->> 'lost')::bigint AS lost, (s.value ->> 'released_at')::timestamptz AS released_at,
               s.value -> 'batches' AS batches, s.value -> 'runs' AS runs
        FROM took t LEFT JOIN LATERAL jsonb_each(t.subscribers) s ON true
    ), given AS (
        SELECT a.*, a.past - a.first AS size, CASE WHEN EXISTS (
                   SELECT FROM weir_internal.placement p
                   WHERE p.group_id = a.group_id AND p.stream_id = sid AND p.cause = 'moved')
               THEN a.past - a.first - least(a.lost, a.past - a.first)
               ELSE least(a.past - a.first, coalesce((
                   SELECT sum(upper(u) - lower(u))
                   FROM (SELECT range_agg(int8range(greatest(d.from_offset, a.first), least(d.to_offset, a.past))) AS m
                         FROM weir_internal.delivered_range d
                         WHERE d.group_id = a.group_id AND d.stream_id = sid AND d.segment_id = wanted
                           AND d.from_offset < a.past AND d.to_offset > a.first) o CROSS JOIN unnest(o.m) u), 0)) END
               AS given
        FROM asked a
    )
    SELECT g.name, CASE WHEN g.name IS NOT NULL THEN sum(g.size - g.given) = 0 END, sum(g.size)::bigint,
           sum(least(g.lost, g.size - g.given))::bigint,
           sum(g.size - g.given - least(g.lost, g.size - g.given))::bigint,
           max(g.truncated_at), (array_agg(g.rule ORDER BY g.number DESC))[1], max(g.released_at),
           CASE WHEN bool_or(jsonb_typeof(g.batches) = 'array')
                THEN ARRAY[min((g.batches ->> 0)::bigint), max((g.batches ->> 1)::bigint)] END,
           CASE WHEN bool_or(jsonb_typeof(g.runs) = 'array') THEN
               ARRAY[(array_agg(g.runs ->> 0 ORDER BY g.number) FILTER (WHERE jsonb_typeof(g.runs) = 'array'))[1],
                     (array_agg(g.runs ->> 1 ORDER BY g.number DESC) FILTER (WHERE jsonb_typeof(g.runs) = 'array'))[1]]
           END
    FROM given g GROUP BY g.name ORDER BY g.name;
END $$;
COMMENT ON FUNCTION weir.was_read_before_it_went(text, text, bigint, bigint) IS 'Of the offsets of a segment that were truncated, per reader group that subscribed when they went: whether it had read them all; how many there are, how many it lost, and how many it had passed, as it began or was reset after them; when and by which rule the last of them went, when the group had released events last, and the first and the last batch and run that had read what went with them. No row: none of them is truncated. A row without a group: nobody subscribed.';

CREATE OR REPLACE FUNCTION weir.was_read_before_it_went(stream text, cut jsonb)
RETURNS TABLE (reader_group text, read boolean, events bigint, lost_events bigint,
               truncated_at timestamptz, rule text, released_at timestamptz, batches bigint[], runs text[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 4
AS $$
#variable_conflict use_column
DECLARE
    sid CONSTANT bigint := weir_internal.stream_id(stream);
    wrong text;
BEGIN
    SELECT e.key || ': ' || e.value INTO wrong
    FROM jsonb_each(CASE WHEN jsonb_typeof(was_read_before_it_went.cut) = 'object' THEN was_read_before_it_went.cut END) e
    WHERE weir_internal.segment_id(e.key) IS NULL OR e.value <> '"future"' AND e.value::text !~ '\A[0-9]{1,18}\Z' LIMIT 1;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'the stream cut has the entry %; write a segment as number.epoch, such as 5.1, and its offset as a whole number, 0 or more, or "future".', wrong
            USING ERRCODE = 'WEIR2', DETAIL = 'cut_invalid';
    END IF;
    RETURN QUERY
    SELECT s.key, CASE WHEN s.key IS NOT NULL THEN (s.value ->> 'lost_so_far')::bigint = 0 END, t.events_until,
           (s.value ->> 'lost_so_far')::bigint, t.truncated_at, t.rule, (s.value ->> 'released_at')::timestamptz,
           CASE WHEN jsonb_typeof(s.value -> 'batches') = 'array'
                THEN ARRAY[(s.value -> 'batches' ->> 0)::bigint, (s.value -> 'batches' ->> 1)::bigint] END,
           CASE WHEN jsonb_typeof(s.value -> 'runs') = 'array'
                THEN ARRAY[s.value -> 'runs' ->> 0, s.value -> 'runs' ->> 1] END
    FROM weir_internal.truncation t
    LEFT JOIN LATERAL jsonb_each(t.subscribers) s ON true
    -- The last event before the cut is the one before an offset, or of a segment of an earlier epoch.
    WHERE t.stream_id = sid AND t.number = (
        SELECT max(r.number) FROM weir_internal.cut_entries(was_read_before_it_went.cut) c
        CROSS JOIN LATERAL (
            (SELECT o.number FROM weir_internal.truncated_range o
             WHERE o.stream_id = sid AND o.segment_id = c.segment_id AND o.from_offset < c.event_offset
             ORDER BY o.from_offset DESC LIMIT 1)
            UNION ALL
            (SELECT o.number FROM weir_internal.truncated_range o
             WHERE o.stream_id = sid AND o.segment_id < c.segment_id >> 32 << 32
             ORDER BY o.segment_id DESC, o.from_offset DESC LIMIT 1)) r)
    ORDER BY s.key;
END $$;
COMMENT ON FUNCTION weir.was_read_before_it_went(text, jsonb) IS 'Of the truncated events before a cut, per reader group that subscribed when the last of them went: whether it had read all that went since it subscribes; how many events had gone by then, and how many it lost; when and by which rule the last of them went, when the group had released events last, and the first and the last batch and run that had read what went with them. No row: nothing before the cut is truncated. A row without a group: nobody subscribed.';
