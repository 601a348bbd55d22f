-- What retention decides, by the tables of semantics 11.5 and 11.6: for the run, and for those who look before it.
CREATE OR REPLACE FUNCTION weir_internal.beyond_limit(in_stream weir_internal.stream, in_limit text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN l.of_age THEN 'older than the ' ELSE 'beyond the ' END
           || CASE WHEN in_limit LIKE 'min%' THEN 'minimum ' ELSE 'maximum ' END
           || CASE WHEN l.of_age THEN 'age, ' ELSE 'size, ' END
           || to_char(l.amount / u.size, 'FM9,999,999,999,999,999,999') || ' ' || u.name
    FROM (SELECT in_limit LIKE '%age' AS of_age,
                 (to_jsonb(in_stream) ->> ('retain_' || in_limit))::bigint AS amount) l
    JOIN (VALUES (true, 's', 1), (true, 'min', 60), (true, 'h', 3600), (true, 'd', 86400),
                 (false, 'B', 1), (false, 'kB', 1000), (false, 'MB', 1000000),
                 (false, 'GB', 1000000000), (false, 'TB', 1000000000000)) u (of_age, name, size)
        ON u.of_age = l.of_age AND l.amount % u.size = 0
    ORDER BY u.size DESC LIMIT 1
$$;
COMMENT ON FUNCTION weir_internal.beyond_limit(weir_internal.stream, text) IS 'What exceeds a limit (min_age, min_bytes, max_age, max_bytes) of a stream, in words.';

-- If several subscribers share the bound, these are the ones that have released no more than any other.
-- A subscriber prevents more alone if it is the only one at the place that is the earliest at some key. The places of
-- all are compared at once, key by key, because the lower bound of the others, subscriber by subscriber, takes a
-- hundred times as long for a hundred of them.
CREATE OR REPLACE FUNCTION weir_internal.holding(in_stream_id bigint, in_released jsonb, in_bound jsonb) RETURNS text[]
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    WITH c AS MATERIALIZED (
        SELECT r.value AS cut, array_agg(r.key) AS names, row_number() OVER () AS n
        FROM jsonb_each(in_released) r GROUP BY r.value
    ), entry AS MATERIALIZED (
        SELECT c.n, e.key AS name, CASE WHEN jsonb_typeof(e.value) = 'number' THEN e.value::bigint END AS until
        FROM c CROSS JOIN LATERAL jsonb_each(c.cut) e
    ), segment AS MATERIALIZED (
        SELECT e.name, g.segment_id, g.key_low, g.key_high
        FROM (SELECT d.name, weir_internal.segment_id(d.name) AS id FROM (SELECT DISTINCT name FROM entry) d OFFSET 0) e
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir_internal.segment o
            WHERE o.stream_id = in_stream_id AND o.segment_id = e.id OFFSET 0) g
    ), border AS (
        SELECT s.name, s.segment_id, dense_rank() OVER (ORDER BY v.key) AS piece
        FROM segment s CROSS JOIN LATERAL (VALUES (s.key_low), (s.key_high)) v (key)
    ), spread AS MATERIALIZED (
        SELECT b.name, b.segment_id, p.piece
        FROM (SELECT b.name, b.segment_id, min(b.piece) AS first, max(b.piece) AS past
              FROM border b GROUP BY b.name, b.segment_id) b
        CROSS JOIN LATERAL generate_series(b.first, b.past - 1) AS p (piece)
    ), place AS (  -- what is at the front of each cut, and up to where it is read
        SELECT DISTINCT ON (s.piece, e.n) s.piece, e.n, s.segment_id, coalesce(e.until, 0) AS until
        FROM entry e JOIN spread s USING (name)
        ORDER BY s.piece, e.n, s.segment_id
    ), last AS (
        SELECT p.piece, p.n, rank() OVER (PARTITION BY p.piece ORDER BY p.segment_id, p.until) AS nth FROM place p
    ), sole AS MATERIALIZED (
        SELECT min(l.n) AS n FROM last l WHERE l.nth = 1 GROUP BY l.piece HAVING count(*) = 1
    ), alone AS MATERIALIZED (
        SELECT c.names FROM c WHERE cardinality(c.names) = 1 AND c.n IN (SELECT s.n FROM sole s)
    ), holding AS (
        SELECT names FROM alone
        UNION ALL
        SELECT a.names FROM c a
        WHERE NOT EXISTS (SELECT FROM alone)
          AND (a.cut = in_bound OR NOT EXISTS (SELECT FROM c o WHERE o.cut = in_bound))
          AND NOT EXISTS (
            SELECT FROM c o
            WHERE o.n <> a.n AND weir_internal.at_or_before(in_stream_id, o.cut, a.cut))
    )
    SELECT coalesce(array_agg(n.name ORDER BY n.name COLLATE "C"), '{}')
    FROM holding h CROSS JOIN LATERAL unnest(h.names) AS n (name)
$$;
COMMENT ON FUNCTION weir_internal.holding(bigint, jsonb, jsonb) IS 'The subscribers (of those whose released cuts are given by name) without which the lower bound of all would be later.';

-- bound: the lower bound of what the subscribers released. truncated_past: those that have not released everything
-- that a maximum truncates. next_at: when time alone will change the decision, or cause an alert. in_at: when it decides; a
-- later time than now foretells what time alone will bring.
CREATE OR REPLACE FUNCTION weir_internal.decide_retention(in_stream_id bigint, in_at timestamptz DEFAULT clock_timestamp())
RETURNS TABLE (rule text, reason text, cut jsonb, bound jsonb, events bigint, bytes bigint,
               held_by text[], truncated_past text[], timed_out text[], next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
DECLARE
    sid CONSTANT bigint := in_stream_id;
    s weir_internal.stream;
    i record;
    l jsonb;
    c jsonb;
    chosen text;
    minimum jsonb;
    minimum_rule text;
    kept bigint;
    demand jsonb;
    demand_rule text;
    wanted jsonb;
    lower record;
    released jsonb;
    who text;
    gone text;
BEGIN
    SELECT * INTO s FROM weir_internal.stream o WHERE o.stream_id = sid;
    events := 0;
    bytes := 0;
    held_by := '{}';
    timed_out := '{}';
    truncated_past := '{}';
    SELECT * INTO i FROM weir_internal.retention_inputs(sid, in_at);
    l := i.limits;
    next_at := i.next_at;
    SELECT coalesce(array_agg(u.name ORDER BY u.name) FILTER (WHERE u.timed_out), '{}'),
           jsonb_object_agg(u.name, weir_internal.join_cuts(sid, u.cut, s.head))
               FILTER (WHERE NOT u.timed_out AND s.retention = 'consumed')
    INTO timed_out, released
    FROM jsonb_to_recordset(i.subscribers) AS u (name text, cut jsonb, timed_out boolean);
    -- Whose deletion has released events since the last decision, as it said itself.
    SELECT ' (' || string_agg(DISTINCT r.object, ', ') || CASE count(DISTINCT r.object) WHEN 1 THEN ' was' ELSE ' were' END
           || ' deleted)' INTO gone
    FROM weir_internal.placement p JOIN weir_internal.request r
        ON r.object = p.group_name AND r.operation = 'delete_reader_group' AND r.ended_at >= p.placed_at
        AND EXISTS (SELECT FROM jsonb_array_elements_text(r.result -> 'deletes') d
                    WHERE d LIKE 'that releases % of ' || s.stream_name || ' at once')
    WHERE p.stream_id = sid AND r.ended_at > coalesce(s.retained_at, s.created_at)
      AND NOT EXISTS (SELECT FROM weir_internal.reader_group g WHERE g.group_id = p.group_id);
    gone := coalesce(gone, '');
    who := CASE WHEN timed_out = '{}' THEN 'no subscriber reads the stream'
                ELSE 'every subscriber has timed out (' || array_to_string(timed_out, ', ') || ')' END || gone;
    IF released IS NOT NULL THEN
        SELECT weir_internal.meet_cuts(sid, array_agg(DISTINCT r.value)) INTO bound FROM jsonb_each(released) r;
        held_by := weir_internal.holding(sid, released, bound);
        who := 'all subscribers' || CASE timed_out WHEN '{}' THEN '' ELSE ' that have not timed out' END || gone;
    END IF;
    SELECT m.which, l -> m.which AS record INTO lower
    FROM (VALUES ('min_age', s.retain_min_age), ('min_bytes', s.retain_min_bytes)) m (which, least)
    WHERE m.least IS NOT NULL
    ORDER BY (l -> m.which ->> 'recorded_at')::numeric NULLS FIRST LIMIT 1;
    minimum_rule := lower.which;
    minimum := lower.record;
    IF s.retention = 'keep' THEN
        rule := 'keep';
        reason := 'retention is keep, so the stream keeps everything';
        RETURN NEXT;
        RETURN;
    ELSIF bound IS NULL AND s.retain_max_age IS NULL AND s.retain_max_bytes IS NULL THEN
        rule := 'no_rule';
        reason := who || ', so nothing counts as consumed, and there is no maximum';
        RETURN NEXT;
        RETURN;
    END IF;
    c := coalesce(bound, s.head);
    chosen := CASE WHEN bound IS NULL THEN 'head' ELSE 'consumed' END;
    reason := who || ' are past it; held by ' || array_to_string(held_by, ', ');
    IF bound IS NOT NULL THEN
        IF s.retain_min_age IS NOT NULL AND (l -> 'min_age' IS NULL
                OR NOT weir_internal.at_or_before(sid, c, l -> 'min_age' -> 'cut')) THEN
            IF l -> 'min_age' IS NULL THEN
                rule := 'too_little';
                reason := 'nothing is ' || weir_internal.beyond_limit(s, 'min_age');
                held_by := '{}';
                RETURN NEXT;
                RETURN;
            END IF;
            c := weir_internal.join_cuts(sid, weir_internal.meet_cuts(sid, ARRAY[c, l -> 'min_age' -> 'cut']), s.head);
            chosen := 'min_age';
            reason := 'consumed' || gone || ', and ' || weir_internal.beyond_limit(s, chosen);
        END IF;
        SELECT i.tail_bytes - z.bytes INTO kept FROM weir_internal.size_till(sid, c) z;
        IF kept < s.retain_min_bytes THEN
            IF l -> 'min_bytes' IS NOT NULL THEN
                c := weir_internal.join_cuts(sid,
                    weir_internal.meet_cuts(sid, ARRAY[c, l -> 'min_bytes' -> 'cut']), s.head);
                chosen := 'min_bytes';
                reason := 'consumed' || gone || ', and ' || weir_internal.beyond_limit(s, chosen);
                SELECT i.tail_bytes - z.bytes INTO kept FROM weir_internal.size_till(sid, c) z;
            END IF;
            IF kept < s.retain_min_bytes THEN
                rule := 'too_little';
                reason := 'nothing is ' || weir_internal.beyond_limit(s, 'min_bytes');
                held_by := '{}';
                RETURN NEXT;
                RETURN;
            END IF;
        END IF;
    END IF;
    -- Measured from the subscribers' bound: what only a minimum keeps does not exceed the maximum.
    wanted := coalesce(bound, s.head);
    IF l -> 'past_max_age' IS NOT NULL
            AND NOT weir_internal.at_or_before(sid, l -> 'past_max_age' -> 'cut', wanted) THEN
        demand_rule := 'max_age';
        demand := l -> CASE WHEN weir_internal.at_or_before(sid, wanted, l -> 'past_max_age' -> 'cut')
                            THEN 'within_max_age' ELSE 'past_max_age' END;
    END IF;
    SELECT i.tail_bytes - z.bytes INTO kept FROM weir_internal.size_till(sid, wanted) z;
    wanted := l -> 'within_max_bytes';
    IF kept > s.retain_max_bytes AND i.tail_bytes - (wanted ->> 'bytes')::bigint < kept
            AND (demand IS NULL OR (wanted ->> 'recorded_at')::numeric
                                   > (demand ->> 'recorded_at')::numeric) THEN
        demand_rule := 'max_bytes';
        demand := wanted;
    END IF;
    IF demand IS NOT NULL AND (minimum_rule IS NULL OR minimum IS NOT NULL) THEN
        IF (minimum ->> 'recorded_at')::numeric < (demand ->> 'recorded_at')::numeric THEN
            demand := minimum;
        END IF;
        wanted := weir_internal.join_cuts(sid, demand -> 'cut', s.head);
        SELECT i.tail_bytes - z.bytes INTO kept FROM weir_internal.size_till(sid, wanted) z;
        IF NOT weir_internal.at_or_before(sid, demand -> 'cut', c)
                AND kept >= coalesce(s.retain_min_bytes, 0) THEN
            c := wanted;
            chosen := demand_rule;
            reason := 'it is ' || weir_internal.beyond_limit(s, chosen);
        END IF;
    END IF;
    IF NOT weir_internal.at_or_before(sid, s.head, c) THEN
        rule := 'behind_head';
        reason := 'what ' || chosen || ' chose lies behind the head by now';
    ELSIF c = s.head THEN
        rule := CASE chosen WHEN 'consumed' THEN 'nothing_consumed' ELSE 'too_little' END;
        reason := CASE chosen
            WHEN 'consumed' THEN 'nothing beyond the head is consumed by ' || who || '; held by '
                                 || array_to_string(held_by, ', ')
            WHEN 'head' THEN 'nothing exceeds the maximum'
            ELSE 'what ' || chosen || ' allows is truncated already' END;
    ELSE
        rule := chosen;
        cut := c;
        SELECT z.events - i.head_events, z.bytes - i.head_bytes INTO events, bytes
        FROM weir_internal.size_till(sid, c) z;
        IF released IS NOT NULL AND chosen LIKE 'max%' THEN
            SELECT coalesce(array_agg(DISTINCT r.key COLLATE "C"), '{}') INTO truncated_past
            FROM weir_internal.front(sid, c) f
            CROSS JOIN jsonb_each(released) r
            CROSS JOIN LATERAL weir_internal.cut_segments(sid, r.value) e
            WHERE e.event_offset IS NOT NULL AND weir_internal.has_passed(
                f.keys, f.owners, f.offsets, e.key_low, e.segment_id, e.event_offset + 1);
        END IF;
    END IF;
    IF rule IN ('min_age', 'min_bytes', 'too_little') THEN
        held_by := '{}';
    END IF;
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION weir_internal.decide_retention(bigint, timestamptz) IS 'What retention decides about an active stream: where it truncates (null: nothing), by which rule and why, and who holds events back.';

CREATE OR REPLACE FUNCTION weir.retention_dry_run(stream text)
RETURNS TABLE (rule text, reason text, cut jsonb, bound jsonb, events bigint, bytes bigint,
               held_by text[], timed_out text[], lost jsonb)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
DECLARE
    sid CONSTANT bigint := weir_internal.stream_id(stream);
    state CONSTANT text := (SELECT o.state FROM weir_internal.stream o WHERE o.stream_id = sid);
BEGIN
    IF state <> 'active' THEN  -- weir_retention does not change it
        RETURN QUERY SELECT state, 'the stream is ' || state || ', which is kept as it is', NULL::jsonb,
            NULL::jsonb, 0::bigint, 0::bigint, '{}'::text[], '{}'::text[], '{}'::jsonb;
        RETURN;
    END IF;
    RETURN QUERY SELECT d.rule, d.reason, d.cut, d.bound, d.events, d.bytes, d.held_by, d.timed_out,
        CASE WHEN d.cut IS NULL THEN '{}' ELSE weir_internal.unread_events_lost(sid, d.cut) END
    FROM weir_internal.decide_retention(sid) d;
END $$;
COMMENT ON FUNCTION weir.retention_dry_run(text) IS 'What weir_retention would decide now: the rule and the reason, the new head (null: nothing would be truncated), the bound of the subscribers, how much would be truncated, which subscribers prevent more, which have timed out, and how many unread events each subscriber would lose. Retention does not change a sealed stream: the rule is sealed.';

-- The one place that says about which streams a run decides.
CREATE OR REPLACE FUNCTION weir_internal.retention_due(in_at timestamptz DEFAULT clock_timestamp())
RETURNS TABLE (stream_id bigint, stream text, due_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 100
AS $$
    SELECT s.stream_id, s.stream_name, q.due_at
    FROM (SELECT u.stream_id, min(u.due_at) AS due_at FROM weir_internal.retention_queue u
          WHERE u.due_at <= in_at GROUP BY u.stream_id) q
    JOIN weir_internal.stream s USING (stream_id)
    WHERE s.state = 'active'
$$;
COMMENT ON FUNCTION weir_internal.retention_due(timestamptz) IS 'The streams about which a run of retention would decide at a time, and since when it is due.';

-- Without settings of its own, so that Postgres puts it in place of its calls, and decides about the streams that are asked for.
CREATE OR REPLACE FUNCTION weir.retention_by(at timestamptz)
RETURNS TABLE (stream text, due_at timestamptz, retention text, rule text, reason text, events bigint, bytes bigint, head jsonb,
               bound jsonb, held_by text[], timed_out text[], lost jsonb, lost_to_others jsonb)
LANGUAGE sql STABLE ROWS 100
AS $$
    SELECT q.stream, q.due_at, s.retention, d.rule, d.reason, d.events, d.bytes, d.cut, d.bound, d.held_by, d.timed_out,
           CASE WHEN d.cut IS NULL THEN '{}' ELSE weir_internal.unread_events_lost(s.stream_id, d.cut) END,
           CASE WHEN d.cut IS NULL THEN '{}' ELSE weir_internal.unread_events_lost(s.stream_id, d.cut, false) END
    FROM weir_internal.retention_due(at) q
    JOIN weir_internal.stream s USING (stream_id)
    CROSS JOIN LATERAL weir_internal.decide_retention(q.stream_id, at) d
    WHERE s.retention <> 'keep'
$$;
COMMENT ON FUNCTION weir.retention_by(timestamptz) IS 'What runs of weir_retention truncate by a time, if until then nothing is appended, read or released: as weir.next_retention, of which it is the rule.';
