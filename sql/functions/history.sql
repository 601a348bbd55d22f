-- How large streams were, and how far groups, at times of the past: what the tables *_history have (decision 103).

-- The one place that says how fine the past is known, and for how long at least: at most 2,416 rows for a stream, or for
-- a group and a stream, as they are pruned once a day.
CREATE OR REPLACE FUNCTION weir_internal.history_grains() RETURNS TABLE (grain integer, kept interval)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 3
AS $$ VALUES (300, interval '1 day'), (3600, interval '30 days'), (86400, interval '1095 days') $$;
COMMENT ON FUNCTION weir_internal.history_grains() IS 'How long the parts of time are of which the past has rows, in seconds, and for how long it has those.';

CREATE OR REPLACE FUNCTION weir_internal.history_slots(in_at timestamptz) RETURNS TABLE (grain integer, slot timestamptz)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 3
AS $$
    SELECT g.grain, date_bin(g.grain * interval '1 second', in_at, '1970-01-01 00:00:00+00')
    FROM weir_internal.history_grains() g
$$;
COMMENT ON FUNCTION weir_internal.history_slots(timestamptz) IS 'In which part of time of each length a time is.';

-- Of the parts of that length that had ended by then, or of longer ones if there is none.
CREATE OR REPLACE FUNCTION weir_internal.stream_size_at(in_stream_id bigint, in_grain integer, in_at timestamptz)
RETURNS TABLE (recorded_at timestamptz, events bigint, bytes bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    (SELECT h.recorded_at, h.events, h.bytes FROM weir_internal.stream_history h
     WHERE h.stream_id = in_stream_id AND h.grain = in_grain AND h.slot <= in_at - in_grain * interval '1 second'
     ORDER BY h.slot DESC LIMIT 1)
    UNION ALL
    (SELECT h.recorded_at, h.events, h.bytes FROM weir_internal.stream_history h
     WHERE in_grain < 3600 AND h.stream_id = in_stream_id AND h.grain = 3600 AND h.slot <= in_at - interval '1 hour'
     ORDER BY h.slot DESC LIMIT 1)
    UNION ALL
    (SELECT h.recorded_at, h.events, h.bytes FROM weir_internal.stream_history h
     WHERE in_grain < 86400 AND h.stream_id = in_stream_id AND h.grain = 86400 AND h.slot <= in_at - interval '1 day'
     ORDER BY h.slot DESC LIMIT 1)
    LIMIT 1
$$;
COMMENT ON FUNCTION weir_internal.stream_size_at(bigint, integer, timestamptz) IS 'What was before the tail of a stream by a time, as last recorded, and when that was.';

CREATE OR REPLACE FUNCTION weir_internal.group_place_at(in_group_id bigint, in_stream_id bigint, in_grain integer, in_at timestamptz)
RETURNS TABLE (recorded_at timestamptz, read bigint, unread bigint, read_bytes bigint, unread_bytes bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT n.recorded_at, coalesce(n.read, z.events), n.unread, coalesce(n.read_bytes, z.bytes), n.unread_bytes
    FROM (
        SELECT h.*, NULL::jsonb AS cut FROM (
            (SELECT h.recorded_at, h.read, h.unread, h.read_bytes, h.unread_bytes FROM weir_internal.group_history h
             WHERE h.group_id = in_group_id AND h.stream_id = in_stream_id AND h.grain = in_grain
               AND h.slot <= in_at - in_grain * interval '1 second'
             ORDER BY h.slot DESC LIMIT 1)
            UNION ALL
            (SELECT h.recorded_at, h.read, h.unread, h.read_bytes, h.unread_bytes FROM weir_internal.group_history h
             WHERE in_grain < 3600 AND h.group_id = in_group_id AND h.stream_id = in_stream_id AND h.grain = 3600
               AND h.slot <= in_at - interval '1 hour'
             ORDER BY h.slot DESC LIMIT 1)
            UNION ALL
            (SELECT h.recorded_at, h.read, h.unread, h.read_bytes, h.unread_bytes FROM weir_internal.group_history h
             WHERE in_grain < 86400 AND h.group_id = in_group_id AND h.stream_id = in_stream_id AND h.grain = 86400
               AND h.slot <= in_at - interval '1 day'
             ORDER BY h.slot DESC LIMIT 1)
            LIMIT 1) h
        UNION ALL  -- where it was put since, or before it moved
        (SELECT p.placed_at, NULL, NULL, NULL, NULL, p.cut FROM weir_internal.placement p
         WHERE p.group_id = in_group_id AND p.stream_id = in_stream_id AND p.placed_at <= in_at
         ORDER BY p.number DESC LIMIT 1)
        ORDER BY recorded_at DESC LIMIT 1) n
    LEFT JOIN LATERAL weir_internal.size_till(in_stream_id, n.cut) z ON n.cut IS NOT NULL
$$;
COMMENT ON FUNCTION weir_internal.group_place_at(bigint, bigint, integer, timestamptz) IS 'How far a group was in a stream by a time, as last recorded, or where it was put since, and when that was.';
