-- Announcements to Airflow (decision 75). A triggerer has rights to the functions of this file that have others'
-- rights, and to nothing else.

CREATE OR REPLACE FUNCTION weir_internal.partition_span(kind text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE kind WHEN 'hours' THEN 3600000000 WHEN 'days' THEN 86400000000 END;
COMMENT ON FUNCTION weir_internal.partition_span(text) IS 'The microseconds of an hour or a day; null for events.';

CREATE OR REPLACE FUNCTION weir_internal.partition_begin(kind text, event_time bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN event_time - ((event_time % weir_internal.partition_span(kind)) + weir_internal.partition_span(kind))
    % weir_internal.partition_span(kind);
COMMENT ON FUNCTION weir_internal.partition_begin(text, bigint) IS 'When the hour or the day of an event time begins, in UTC, also before 1970.';

CREATE OR REPLACE FUNCTION weir_internal.queue_announcements(
    s weir_internal.stream, in_number bigint, in_events boolean, in_until bigint, in_late boolean) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO weir_internal.announcement (airflow, kind, stream_name, stream_id, transaction_number)
    SELECT w.airflow, w.kind, o.stream_name, o.stream_id, in_number
    FROM weir_internal.stream o JOIN weir_internal.watch w USING (stream_name)
    WHERE o.stream_id = s.stream_id AND (o.owner IS NULL OR weir_internal.may_act_for(weir_internal.asking(), o.owner))
      AND CASE w.kind WHEN 'events' THEN in_events
        ELSE in_late OR weir_internal.partition_begin(w.kind, in_until)
            IS DISTINCT FROM weir_internal.partition_begin(w.kind, s.complete_until) END
    ON CONFLICT DO NOTHING
$$;
COMMENT ON FUNCTION weir_internal.queue_announcements(weir_internal.stream, bigint, boolean, bigint, boolean) IS 'Queues a commit of a stream, as it was before, for each Airflow that watches it: whether it has events, what the stream is complete to from now on, and whether it has late events.';

-- A login of weir_jobs may speak for each Airflow, and what it began is taken over by the first triggerer. So may a login that is
-- a member of the role that began it.
CREATE OR REPLACE FUNCTION weir_internal.check_airflow(in_airflow text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    asks CONSTANT name := weir_internal.asking();
    other name;
BEGIN
    SELECT r.rolname INTO other FROM (SELECT DISTINCT o.login FROM weir_internal.watch o WHERE o.airflow = in_airflow) w
    JOIN pg_roles r ON r.rolname = w.login
    WHERE NOT pg_has_role(asks, r.oid, 'USAGE') AND NOT weir_internal.sees_all(r.rolname)
      AND NOT weir_internal.sees_all(asks)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'login % may not announce to the Airflow %, which is that of login %; give each Airflow a name of its own (airflow_name in weir.toml), or let its owner GRANT % TO %.',
            asks, quote_literal(left(in_airflow, 100)), other, quote_ident(other), quote_ident(asks)
            USING ERRCODE = 'WEIR2', DETAIL = 'right_missing';
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.check_airflow(text) IS 'Refuses an Airflow that another triggerer''s login watches for.';

-- What is committed is queued in a row for each Airflow that watches, so there are not more of them than somebody has.
CREATE OR REPLACE FUNCTION weir_internal.check_watches(in_airflow text, in_kinds text[], in_streams text[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    asks CONSTANT name := weir_internal.asking();
    too_many text;
BEGIN
    PERFORM weir_internal.check_airflow(in_airflow);
    IF weir_internal.sees_all(asks) THEN
        RETURN;
    END IF;
    SELECT CASE
        WHEN octet_length(in_airflow) > 250 OR in_airflow = '' THEN 'an Airflow whose name is empty or longer than 250 bytes'
        WHEN (SELECT max(octet_length(n)) FROM unnest(in_streams) n) > 250 THEN 'a stream whose name is longer than 250 bytes'
        WHEN (SELECT count(DISTINCT w.airflow) FROM weir_internal.watch w
              WHERE w.login = asks AND w.airflow <> in_airflow) >= 8 THEN 'more than 8 Airflows'
        WHEN (SELECT count(*) FROM weir_internal.watch w WHERE w.login = asks) + (
            SELECT count(*) FROM unnest(in_kinds, in_streams) AS n (kind, stream) WHERE NOT EXISTS (
                SELECT FROM weir_internal.watch w
                WHERE w.stream_name = n.stream AND w.airflow = in_airflow AND w.kind = n.kind)) > 100000
        THEN 'more than 100,000 streams' END INTO too_many;
    IF too_many IS NOT NULL THEN
        RAISE EXCEPTION 'login % can''t watch for %; let a login of weir_jobs delete from weir_internal.watch what nobody needs.',
            asks, too_many USING ERRCODE = 'WEIR2', DETAIL = 'argument_invalid';
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.check_watches(text, text[], text[]) IS 'Refuses another login''s Airflow, and more Airflows or streams than a triggerer''s login may watch.';

-- What is complete by then is not announced, as what was committed by then is not.
CREATE OR REPLACE FUNCTION weir_internal.watch_streams(in_airflow text, in_kinds text[], in_streams text[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT weir_internal.check_watches(in_airflow, in_kinds, in_streams);
    INSERT INTO weir_internal.watch AS w (stream_name, airflow, kind, announced_until, login)
    SELECT n.stream, in_airflow, n.kind, weir_internal.partition_begin(n.kind, s.complete_until), weir_internal.asking()
    FROM unnest(in_kinds, in_streams) AS n (kind, stream)
    LEFT JOIN weir_internal.stream s ON s.stream_name = n.stream AND s.state <> 'deleted'
    ORDER BY n.stream, n.kind
    ON CONFLICT (stream_name, airflow, kind) DO UPDATE SET seen_at = clock_timestamp(),
        login = CASE WHEN weir_internal.sees_all(excluded.login) THEN w.login ELSE excluded.login END
$$;
COMMENT ON FUNCTION weir_internal.watch_streams(text, text[], text[]) IS 'Begins to announce streams to an Airflow, or says that it still wants that.';

-- All that is queued is before the tail, of which this statement sees no other state than of the queue.
-- It goes from one stream that has something to the next one, so streams for which nobody waits cost one probe each,
-- however much is queued for them.
CREATE OR REPLACE FUNCTION weir_internal.to_announce(in_airflow text, in_idle text[])
RETURNS TABLE (kind text, stream text, transactions bigint[], events bigint, bytes bigint, cut jsonb, epoch integer,
               runs text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 100
AS $$
    SELECT weir_internal.check_airflow(in_airflow);
    WITH RECURSIVE moved AS (
        (SELECT a.kind, a.stream_name FROM weir_internal.announcement a WHERE a.airflow = in_airflow
         ORDER BY a.kind, a.stream_name LIMIT 1)
        UNION ALL
        SELECT n.kind, n.stream_name FROM moved m CROSS JOIN LATERAL (
            SELECT a.kind, a.stream_name FROM weir_internal.announcement a
            WHERE a.airflow = in_airflow AND (a.kind, a.stream_name) > (m.kind, m.stream_name)
            ORDER BY a.kind, a.stream_name LIMIT 1) n
    )
    SELECT m.kind, m.stream_name, t.numbers, t.events, t.bytes,
           CASE WHEN t.stream_id IS NOT NULL THEN weir_internal.tail_cut(t.stream_id) END,
           t.epoch, t.sources
    FROM moved m
    CROSS JOIN LATERAL (
        SELECT array_agg(t.transaction_number ORDER BY t.clock) AS numbers, sum(t.events)::bigint AS events,
               sum(t.bytes)::bigint AS bytes, max(t.stream_id) AS stream_id, max(s.current_epoch) AS epoch,
               array_agg(DISTINCT t.source) AS sources
        FROM (SELECT a.stream_id, a.transaction_number FROM weir_internal.announcement a
              WHERE a.airflow = in_airflow AND a.kind = m.kind AND a.stream_name = m.stream_name AND m.kind = 'events'
              ORDER BY a.transaction_number LIMIT 1000) a
        JOIN weir_internal.transaction t USING (stream_id, transaction_number)
        JOIN weir_internal.stream s USING (stream_id)) t
    WHERE m.kind || ' ' || m.stream_name <> ALL (in_idle)
$$;
COMMENT ON FUNCTION weir_internal.to_announce(text, text[]) IS 'What is to be announced to an Airflow, per stream: of events, at most 1,000 transactions; of hours and days only that there may be some. in_idle: `kind stream` of what nobody waits for.';

CREATE OR REPLACE FUNCTION weir_internal.announced(in_airflow text, in_streams text[], in_numbers bigint[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT weir_internal.check_airflow(in_airflow);
    WITH told AS (
        DELETE FROM weir_internal.announcement a USING unnest(in_streams, in_numbers) AS n (stream, number)
        WHERE a.airflow = in_airflow AND a.kind = 'events' AND a.stream_name = n.stream
          AND a.transaction_number = n.number
        RETURNING a.stream_name, a.stream_id, a.transaction_number
    )
    UPDATE weir_internal.watch w
    SET announced_at = clock_timestamp(), announced_clock = greatest(w.announced_clock, t.clock)
    FROM (SELECT o.stream_name, max(t.clock) AS clock FROM told o
          JOIN weir_internal.transaction t USING (stream_id, transaction_number) GROUP BY o.stream_name) t
    WHERE w.stream_name = t.stream_name AND w.airflow = in_airflow AND w.kind = 'events'
$$;
COMMENT ON FUNCTION weir_internal.announced(text, text[], bigint[]) IS 'Records that transactions are in the database of an Airflow: pairs of a stream and a transaction number.';

-- Whole hours and days from the last one that was announced, or from the first event, to what is complete; none that
-- is further back than event_time_back, however old an event or a statement is. Commits with events on both sides of that
-- are `across`: their first event after it, and late events of an hour that was announced, are found in their files.
CREATE OR REPLACE FUNCTION weir_internal.due_partitions(in_airflow text, in_kinds text[], in_streams text[])
RETURNS TABLE (kind text, stream text, since bigint, until bigint, numbers bigint[], late bigint[], bound bigint,
               across bigint[], left_out boolean, fresh boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 100
AS $$
    SELECT w.kind, s.stream_name, least(coalesce(f.since, b.until), b.until), b.until, n.numbers, n.late, b.bound,
           f.across, coalesce(f.left_out, false), n.fresh
    FROM unnest(in_kinds, in_streams) AS a (kind, stream)
    JOIN weir_internal.watch w ON w.stream_name = a.stream AND w.kind = a.kind AND w.airflow = in_airflow
    JOIN weir_internal.stream s ON s.stream_name = w.stream_name AND s.state <> 'deleted'
    CROSS JOIN LATERAL (
        SELECT weir_internal.partition_begin(w.kind, s.complete_until) AS until,
               weir_internal.partition_begin(w.kind, s.complete_until - 1000000 * s.event_time_back) AS bound) b
    CROSS JOIN LATERAL (
        SELECT w.announced_until AS since, NULL::bigint[] AS across, false AS left_out
        WHERE w.announced_until >= b.bound
        UNION ALL
        SELECT weir_internal.partition_begin(w.kind, min(t.min_event_time) FILTER (WHERE t.min_event_time >= b.bound)),
               array_agg(t.transaction_number ORDER BY t.clock) FILTER (WHERE t.min_event_time < b.bound
                   AND t.max_event_time >= b.bound),
               bool_or(t.min_event_time < b.bound AND (w.announced_until IS NULL OR t.max_event_time >= w.announced_until))
        FROM weir_internal.transaction t
        WHERE (w.announced_until >= b.bound) IS NOT TRUE AND b.bound IS NOT NULL
          AND t.stream_name = s.stream_name AND t.clock > s.event_time_since
        HAVING (w.announced_until >= b.bound) IS NOT TRUE) f
    CROSS JOIN LATERAL (
        SELECT array_agg(o.transaction_number ORDER BY o.transaction_number) AS numbers,
               array_agg(o.transaction_number ORDER BY o.transaction_number)
                   FILTER (WHERE t.late > 0 AND t.min_event_time < w.announced_until) AS late,
               min(coalesce(t.clock, -o.transaction_number)) > weir_internal.now_clock() - 600000000 AS fresh
        FROM (SELECT o.stream_id, o.transaction_number FROM weir_internal.announcement o
              WHERE o.airflow = in_airflow AND o.kind = w.kind AND o.stream_name = w.stream_name
              ORDER BY o.transaction_number LIMIT 1000) o
        LEFT JOIN weir_internal.transaction t USING (stream_id, transaction_number)) n
    WHERE n.numbers IS NOT NULL
$$;
COMMENT ON FUNCTION weir_internal.due_partitions(text, text[], text[]) IS 'What was committed or stated and is not announced as hours or days: those that are complete, from since to until, in microseconds (null: none is complete), the transactions that say so (below 0: statements), and which of them have events of hours or days that were announced before. No hour before bound is announced; left_out: whether there are events of such; fresh: whether all of it is of the last ten minutes.';

CREATE OR REPLACE FUNCTION weir_internal.announced_partitions(
    in_airflow text, in_kinds text[], in_streams text[], in_untils bigint[], in_numbers jsonb, in_left_out text[])
RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    WITH n AS MATERIALIZED (
        SELECT o.kind, o.stream, o.until, o.left_out, in_numbers -> (o.i - 1)::integer AS numbers
        FROM unnest(in_kinds, in_streams, in_untils, in_left_out) WITH ORDINALITY AS o (kind, stream, until, left_out, i)
    ), told AS (
        DELETE FROM weir_internal.announcement a USING n CROSS JOIN LATERAL jsonb_array_elements(n.numbers) AS m (number)
        WHERE a.airflow = in_airflow AND a.kind = n.kind AND a.stream_name = n.stream
          AND a.transaction_number = m.number::bigint
    )
    UPDATE weir_internal.watch w
    SET announced_at = clock_timestamp(), announced_until = greatest(w.announced_until, n.until),
        left_out = coalesce(n.left_out, w.left_out),
        left_out_at = CASE WHEN n.left_out IS NULL THEN w.left_out_at ELSE clock_timestamp() END
    FROM (SELECT n.kind, n.stream, n.left_out,  -- what was stated may have been taken back meanwhile
                 CASE WHEN s.complete_until IS NOT NULL
                      THEN least(n.until, weir_internal.partition_begin(n.kind, s.complete_until)) END AS until
          FROM n LEFT JOIN weir_internal.stream s ON s.stream_name = n.stream AND s.state <> 'deleted') n
    WHERE w.airflow = in_airflow AND w.kind = n.kind AND w.stream_name = n.stream
$$;
COMMENT ON FUNCTION weir_internal.announced_partitions(text, text[], text[], bigint[], jsonb, text[]) IS 'Records that all hours or days of streams that end by a time are in the database of an Airflow, which transactions need no more announcing (an array for each stream), and what was left out.';
