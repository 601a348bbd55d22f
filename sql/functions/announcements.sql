-- Announcements to Airflow (decision 75). A triggerer has rights to the functions of this file that have others'
-- rights, and to nothing else.

CREATE OR REPLACE FUNCTION weir_internal.queue_announcements(
    s weir_internal.stream, in_number bigint, in_events boolean, in_until bigint, in_late boolean) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO weir_internal.announcement (airflow, kind, stream_name, stream_id, transaction_number)
    SELECT w.airflow, w.kind, o.stream_name, o.stream_id, in_number
    FROM weir_internal.stream o JOIN weir_internal.watch w USING (stream_name)
    WHERE o.stream_id = s.stream_id AND (o.owner IS NULL OR weir_internal.may_act_for(weir_internal.asking(), o.owner))
      AND (w.kind = 'events' AND in_events
-- each annex: queued.sql
          )
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

CREATE OR REPLACE FUNCTION weir_internal.watch_streams(in_airflow text, in_kinds text[], in_streams text[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT weir_internal.check_watches(in_airflow, in_kinds, in_streams);
    INSERT INTO weir_internal.watch AS w (stream_name, airflow, kind, login)
    SELECT n.stream, in_airflow, n.kind, weir_internal.asking()
    FROM unnest(in_kinds, in_streams) AS n (kind, stream)
    ORDER BY n.stream, n.kind
    ON CONFLICT (stream_name, airflow, kind) DO UPDATE SET seen_at = clock_timestamp(),
        login = CASE WHEN weir_internal.sees_all(excluded.login) THEN w.login ELSE excluded.login END;
-- each annex: watched.sql
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
COMMENT ON FUNCTION weir_internal.to_announce(text, text[]) IS 'What is to be announced to an Airflow, per stream: of events, at most 1,000 transactions; of what an annex announces only that there may be some. in_idle: `kind stream` of what nobody waits for.';

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
