-- The rules of weir.model.scale_decision for people who have only SQL; a test compares the two. What SQL cannot know
-- is where the data allows a split: a segment that one key fills is not split, although it is hot.
CREATE OR REPLACE FUNCTION weir_internal.segment_verdicts(in_stream_id bigint)
RETURNS TABLE (segment_id bigint, key_low double precision, key_high double precision,
               rates double precision[], windows bigint[], age bigint, split_rate double precision,
               pieces integer, cold boolean, later boolean)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 10
AS $$
    SELECT l.segment_id, l.key_low, l.key_high, l.rates, l.windows, a.age,
           CASE WHEN v.hot THEN v.rate END,
           least(greatest(2, trunc(v.rate / s.target_rate)), s.scale_factor,
                 greatest(trunc((l.key_high - l.key_low) * 9007199254740992), 1))::integer,
           v.cold, (v.ever_hot AND NOT v.hot) OR (v.ever_cold AND NOT v.cold)
    FROM weir_internal.stream s
    CROSS JOIN LATERAL weir_internal.segment_loads(
        s.stream_id, weir_internal.now_clock()) l
    CROSS JOIN LATERAL (SELECT coalesce(l.measured_until, weir_internal.now_clock())
                               - l.created_at AS age, s.scale_cooldown * 1000000 AS cooldown) a
    CROSS JOIN LATERAL (
        SELECT greatest(l.rates[1], l.rates[2], l.rates[3]) AS rate,
               l.rates[1] > 5 * s.target_rate OR l.rates[2] > 2 * s.target_rate
                   OR l.rates[3] > s.target_rate AS ever_hot,
               a.age > a.cooldown AND (
                   l.rates[1] > 5 * s.target_rate AND a.age > l.windows[1]
                   OR l.rates[2] > 2 * s.target_rate AND a.age > l.windows[2]
                   OR l.rates[3] > s.target_rate AND a.age > l.windows[3]) AS hot,
               c.ever_cold, c.ever_cold AND a.age > greatest(l.windows[4], a.cooldown) AS cold
        FROM (SELECT greatest(l.rates[1], l.rates[2], l.rates[3]) < s.target_rate
                     AND l.rates[4] < 0.5 * s.target_rate AS ever_cold) c) v
    WHERE s.stream_id = in_stream_id
    ORDER BY l.key_low
$$;
COMMENT ON FUNCTION weir_internal.segment_verdicts(bigint) IS 'Per active segment of a stream: the rate by which it is split (null: it is not hot) and into how many pieces, whether it is cold, and whether it would be hot or cold if it were older.';

CREATE OR REPLACE FUNCTION weir.scale_dry_run(stream text)
RETURNS TABLE (action text, rule text, segments text[], pieces integer, rate double precision)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
DECLARE
    s weir_internal.stream;
    v record;
    room bigint;
    active bigint;
    total double precision[];  -- of the group: over each window
    more double precision[];
    before double precision;   -- where the group ends
BEGIN
    SELECT * INTO s FROM weir_internal.stream o WHERE o.stream_id = weir_internal.stream_id(stream);
    action := 'none';
    IF s.state <> 'active' OR s.scaling = 'fixed' THEN
        rule := CASE WHEN s.state = 'active' THEN 'fixed' ELSE s.state END;
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT count(*), bool_or(l.rates IS NULL) AS unknown, bool_or(l.split_rate IS NOT NULL) AS hot,
           bool_or(l.split_rate IS NOT NULL AND l.pieces > 1) AS divisible, bool_or(l.later) AS later,
           bool_or(l.cold) AS cold,
           bool_or(l.cold AND l.cold_before AND l.end_before = l.key_low) AS neighbours
    INTO v
    FROM (SELECT o.*, lag(o.cold) OVER w AS cold_before, lag(o.key_high) OVER w AS end_before
          FROM weir_internal.segment_verdicts(s.stream_id) o WINDOW w AS (ORDER BY o.key_low)) l;
    active := v.count;
    rule := CASE WHEN v.unknown THEN 'no_interval' WHEN v.divisible THEN 'at_maximum'
                 WHEN v.hot THEN 'one_key' WHEN v.later THEN 'too_young' WHEN NOT v.cold THEN 'steady'
                 WHEN active = s.min_segments THEN 'at_minimum'
                 WHEN v.neighbours IS NOT TRUE THEN 'no_cold_neighbours' ELSE 'merge_too_hot' END;
    IF v.unknown THEN
        RETURN NEXT;
        RETURN;
    END IF;
    room := s.max_segments - active;
    FOR v IN SELECT o.segment_id, o.split_rate, o.pieces FROM weir_internal.segment_verdicts(s.stream_id) o
             WHERE o.split_rate IS NOT NULL AND o.pieces > 1
             ORDER BY o.split_rate DESC, o.segment_id LOOP
        pieces := least(v.pieces, room + 1);
        IF pieces > 1 THEN
            action := 'split';
            rule := 'hot';
            segments := ARRAY[weir_internal.segment_name(v.segment_id)];
            rate := v.split_rate;
            room := room - (pieces - 1);
            RETURN NEXT;
        END IF;
    END LOOP;
    IF action = 'split' THEN
        RETURN;
    END IF;
    pieces := 1;
    room := active - s.min_segments;
    segments := '{}';
    FOR v IN SELECT o.* FROM weir_internal.segment_verdicts(s.stream_id) o LOOP
        more := CASE WHEN segments = '{}' THEN v.rates
                     ELSE ARRAY(SELECT a + b FROM unnest(total, v.rates) u (a, b)) END;
        IF v.cold AND segments <> '{}' AND before = v.key_low AND cardinality(segments) < 3 AND room > 0
                AND (SELECT max(m) FROM unnest(more) m) <= 0.5 * s.target_rate THEN
            segments := segments || weir_internal.segment_name(v.segment_id);
            total := more;
            room := room - 1;
        ELSE
            IF cardinality(segments) > 1 THEN
                action := 'merge';
                rule := 'cold';
                rate := (SELECT max(m) FROM unnest(total) m);
                RETURN NEXT;
            END IF;
            segments := CASE WHEN v.cold THEN ARRAY[weir_internal.segment_name(v.segment_id)] ELSE '{}' END;
            total := v.rates;
        END IF;
        before := v.key_high;
    END LOOP;
    IF cardinality(segments) > 1 THEN
        action := 'merge';
        rule := 'cold';
        rate := (SELECT max(m) FROM unnest(total) m);
        RETURN NEXT;
    ELSIF action = 'none' THEN
        segments := NULL;
        pieces := NULL;
        RETURN NEXT;
    END IF;
END $$;
COMMENT ON FUNCTION weir.scale_dry_run(text) IS 'What weir_scale would decide now: a row for each split or merge, all of one scale, or one row with the rule by which it would do nothing. It knows no data: pieces is how many there are at most. Where the keys of a segment allow fewer, a run at the maximum of the stream splits other hot segments into more. The dry run of weir_scale looks at the keys, and also says where a split would lie.';

CREATE OR REPLACE FUNCTION weir.why_scale(stream text)
RETURNS TABLE (segment text, verdict text, why text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp ROWS 10
AS $$
    SELECT weir_internal.segment_name(v.segment_id),
           CASE WHEN v.rates IS NULL THEN 'unknown' WHEN v.split_rate IS NOT NULL THEN 'hot'
                WHEN v.cold THEN 'cold' WHEN v.later THEN 'too young' ELSE 'steady' END,
           CASE WHEN s.scaling = 'fixed' THEN 'the stream does not scale by load'
                WHEN v.rates IS NULL THEN 'the stream has fewer than two commits, so its interval is not known'
           ELSE format('it gets %s (%s per second); it is split above %s, and cold below %s over %s', w.rates,
                       CASE s.scaling WHEN 'byte_rate' THEN 'bytes' ELSE 'events' END, w.limits,
                       0.5 * s.target_rate, v.windows[4] * interval '1 microsecond')
                || CASE WHEN v.split_rate IS NOT NULL AND v.pieces = 1
                        THEN '; it has one position of the key space, which can''t be split'
                        WHEN v.split_rate IS NOT NULL THEN format('; it is to be split into %s', v.pieces)
                            || coalesce(', as far as the maximum of ' || s.max_segments || ' segments allows', '')
                        WHEN v.cold THEN format('; it is merged with cold neighbours if they have at most %s '
                            'together, and at least %s segments are left', 0.5 * s.target_rate, s.min_segments)
                        WHEN v.later THEN format('; it is only %s old, less than the cool-down or a window',
                                                 v.age * interval '1 microsecond')
                        ELSE '' END
           END
    FROM weir_internal.stream s CROSS JOIN LATERAL weir_internal.segment_verdicts(s.stream_id) v
    CROSS JOIN LATERAL (  -- windows of the same length are one
        SELECT string_agg(format('%s over %s', g.rate, g.length), ', ' ORDER BY g.length) AS rates,
               string_agg(format('%s over %s', g.most * s.target_rate, g.length), ' or ' ORDER BY g.length)
                   FILTER (WHERE g.most IS NOT NULL) AS limits
        FROM (SELECT u.length * interval '1 microsecond' AS length, max(round(u.rate::numeric, 2)) AS rate,
                     min(u.most) AS most
              FROM unnest(v.windows, v.rates, ARRAY[5, 2, 1]) AS u (length, rate, most)
              GROUP BY u.length) g) w
    WHERE s.stream_id = weir_internal.stream_id(stream) AND s.state = 'active'
    ORDER BY v.key_low
$$;
COMMENT ON FUNCTION weir.why_scale(text) IS 'Per active segment: hot, cold, steady, too young or unknown, its rates, and what would have to happen for it to be split or merged.';
