-- The rules of weir.retention.decision once more, for whoever has only SQL; a test holds them together.
CREATE FUNCTION weir.retention_dry_run(stream text)
RETURNS TABLE (rule text, cut jsonb, bound jsonb, events bigint, bytes bigint, left_out text[])
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog ROWS 1
AS $$
#variable_conflict use_column
DECLARE
    sid CONSTANT bigint := weir.stream_id(stream);
    s weir.stream;
    i record;
    l jsonb;
    c jsonb;
    chosen text;
    floor jsonb;
    floor_rule text;
    kept bigint;
    demand jsonb;
    demand_rule text;
    wanted jsonb;
    lower record;
BEGIN
    SELECT * INTO s FROM weir.stream o WHERE o.stream_id = sid;
    events := 0;
    bytes := 0;
    IF s.state <> 'active' THEN  -- which weir_retention leaves as it is
        rule := s.state;
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO i FROM weir.retention_inputs(sid);
    l := i.limits;
    SELECT coalesce(array_agg(u.name ORDER BY u.name) FILTER (WHERE u.timed_out), '{}'),
           weir.meet_cuts(sid, array_agg(weir.join_cuts(sid, u.cut, s.head))
                               FILTER (WHERE NOT u.timed_out AND s.retain_by_consumption))
    INTO left_out, bound
    FROM jsonb_to_recordset(i.subscribers) AS u (name text, cut jsonb, timed_out boolean);
    SELECT m.which, l -> m.which AS record INTO lower
    FROM (VALUES ('min_age', s.retain_min_age), ('min_bytes', s.retain_min_bytes)) m (which, least)
    WHERE m.least IS NOT NULL
    ORDER BY (l -> m.which ->> 'recorded_at')::numeric NULLS FIRST LIMIT 1;
    floor_rule := lower.which;
    floor := lower.record;
    rule := 'too_little';
    IF bound IS NULL AND floor_rule IS NOT NULL THEN
        IF floor IS NULL THEN
            RETURN NEXT;
            RETURN;
        END IF;
        c := floor -> 'cut';
        chosen := floor_rule;
    ELSIF bound IS NULL AND s.retain_max_age IS NULL AND s.retain_max_bytes IS NULL THEN
        rule := 'no_rule';
        RETURN NEXT;
        RETURN;
    ELSE
        c := coalesce(bound, s.head);
        chosen := CASE WHEN bound IS NULL THEN 'head' ELSE 'consumed' END;
        IF s.retain_min_age IS NOT NULL AND (l -> 'min_age' IS NULL
                OR NOT weir.at_or_before(sid, c, l -> 'min_age' -> 'cut')) THEN
            IF l -> 'min_age' IS NULL THEN
                RETURN NEXT;
                RETURN;
            END IF;
            c := weir.join_cuts(sid, weir.meet_cuts(sid, ARRAY[c, l -> 'min_age' -> 'cut']), s.head);
            chosen := 'min_age';
        END IF;
        SELECT i.tail_bytes - z.bytes INTO kept FROM weir.size_till(sid, c) z;
        IF kept < s.retain_min_bytes THEN
            IF l -> 'min_bytes' IS NULL THEN
                RETURN NEXT;
                RETURN;
            END IF;
            c := weir.join_cuts(sid, weir.meet_cuts(sid, ARRAY[c, l -> 'min_bytes' -> 'cut']), s.head);
            chosen := 'min_bytes';
            SELECT i.tail_bytes - z.bytes INTO kept FROM weir.size_till(sid, c) z;
            IF kept < s.retain_min_bytes THEN
                RETURN NEXT;
                RETURN;
            END IF;
        END IF;
        IF l -> 'past_max_age' IS NOT NULL
                AND NOT weir.at_or_before(sid, l -> 'past_max_age' -> 'cut', c) THEN
            demand_rule := 'max_age';
            demand := l -> CASE WHEN weir.at_or_before(sid, c, l -> 'past_max_age' -> 'cut')
                                THEN 'within_max_age' ELSE 'past_max_age' END;
        END IF;
        wanted := l -> 'within_max_bytes';
        IF kept > s.retain_max_bytes AND i.tail_bytes - (wanted ->> 'bytes')::bigint < kept
                AND (demand IS NULL OR (wanted ->> 'recorded_at')::numeric
                                       > (demand ->> 'recorded_at')::numeric) THEN
            demand_rule := 'max_bytes';
            demand := wanted;
        END IF;
        IF demand IS NOT NULL AND (floor_rule IS NULL OR floor IS NOT NULL) THEN
            IF (floor ->> 'recorded_at')::numeric < (demand ->> 'recorded_at')::numeric THEN
                demand := floor;
            END IF;
            wanted := weir.join_cuts(sid, demand -> 'cut', s.head);
            SELECT i.tail_bytes - z.bytes INTO kept FROM weir.size_till(sid, wanted) z;
            IF NOT weir.at_or_before(sid, demand -> 'cut', c)
                    AND kept >= coalesce(s.retain_min_bytes, 0) THEN
                c := wanted;
                chosen := demand_rule;
            END IF;
        END IF;
    END IF;
    IF NOT weir.at_or_before(sid, s.head, c) THEN
        rule := 'behind_head';
    ELSIF c = s.head THEN
        rule := CASE chosen WHEN 'consumed' THEN 'nothing_consumed' ELSE 'too_little' END;
    ELSE
        rule := chosen;
        cut := c;
        SELECT z.events - i.head_events, z.bytes - i.head_bytes INTO events, bytes
        FROM weir.size_till(sid, c) z;
    END IF;
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION weir.retention_dry_run(text) IS 'What weir_retention would decide now: the rule, the new head (null: nothing is to do), the bound of the subscribers, what would be freed, and who has timed out. A sealed stream is left as it is: the rule is sealed.';
