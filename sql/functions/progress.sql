-- One row per thing that somebody waits for, however many wait for it. With plans for any values: Postgres would else
-- plan what it calls anew for each group, which takes as long as to answer.
CREATE OR REPLACE FUNCTION weir_internal.progress_of(in_groups text[], in_streams text[], in_aims jsonb)
RETURNS TABLE (kind text, name text, events bigint, clock bigint, now bigint, event_time text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan ROWS 100
AS $$
    -- A triggerer waits for everybody; who else asks is told what they see.
    WITH hidden AS MATERIALIZED (
        SELECT weir_internal.hidden_streams(a.login) AS stream_id FROM weir_internal.asking() AS a (login)
        WHERE NOT pg_has_role(a.login, 'weir_watcher', 'USAGE')
    ), hidden_group AS MATERIALIZED (
        SELECT weir_internal.hidden_groups(a.login) AS group_id FROM weir_internal.asking() AS a (login)
        WHERE NOT pg_has_role(a.login, 'weir_watcher', 'USAGE')
    )
    SELECT 'group', g.name, coalesce(sum(u.events), 0)::bigint, min(u.oldest), weir_internal.now_clock(), NULL
    FROM weir_internal.reader_group g
    LEFT JOIN weir_internal.reader_group_stream gs USING (group_id)
    LEFT JOIN weir_internal.stream s ON s.stream_id = gs.stream_id AND s.state <> 'deleted'
    LEFT JOIN LATERAL weir_internal.unread_from(
        s.stream_id, weir_internal.group_cut(gs.group_id, s.stream_id), s.head, gs.end_cut) u ON s.stream_id IS NOT NULL
    WHERE g.name = ANY (in_groups) AND g.group_id NOT IN (SELECT group_id FROM hidden_group)
    GROUP BY g.group_id, g.name
    UNION ALL
    SELECT 'stream', s.stream_name, t.events, s.complete_until, weir_internal.now_clock(), s.event_time
    FROM weir_internal.stream s
    CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, weir_internal.tail_cut(s.stream_id)) t
    WHERE s.stream_name = ANY (in_streams) AND s.state <> 'deleted' AND s.stream_id NOT IN (SELECT stream_id FROM hidden)
    UNION ALL
    SELECT 'aim', a.aim::text, coalesce(sum(u.events), 0)::bigint, NULL, weir_internal.now_clock(), NULL
    FROM jsonb_array_elements(in_aims) AS a (aim)
    JOIN weir_internal.reader_group g ON g.name = a.aim ->> 'reader_group'
    CROSS JOIN LATERAL jsonb_each(a.aim -> 'cuts') AS c (stream_id, cut)
    JOIN weir_internal.reader_group_stream gs
        ON gs.group_id = g.group_id AND gs.stream_id = c.stream_id::bigint
    JOIN weir_internal.stream s ON s.stream_id = gs.stream_id AND s.state <> 'deleted'
    LEFT JOIN LATERAL weir_internal.unread_from(
        s.stream_id, weir_internal.group_cut(g.group_id, s.stream_id), s.head, c.cut) u ON true
    WHERE g.group_id NOT IN (SELECT group_id FROM hidden_group)
    GROUP BY a.aim
$$;
COMMENT ON FUNCTION weir_internal.progress_of(text[], text[], jsonb) IS 'How far things are: of reader groups the unread events and the clock of the oldest one; of streams the events ever appended and the event time that they are complete to; of aims, which are a reader_group and its cuts by stream id, the unread events before the cuts. What does not exist has no row.';
