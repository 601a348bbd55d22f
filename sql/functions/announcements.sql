-- Announcements to Airflow (decisions 75 and 76). A triggerer has rights to the functions of this file that have others'
-- rights, and to nothing else.

CREATE OR REPLACE FUNCTION weir_internal.queue_announcements(
    s weir_internal.stream, in_number bigint, in_events boolean, in_partitions boolean) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO weir_internal.announcement (airflow, kind, stream_name, stream_id, transaction_number)
    SELECT w.airflow, w.kind, s.stream_name, s.stream_id, in_number FROM weir_internal.watch w
    WHERE w.stream_name = s.stream_name AND CASE w.kind WHEN 'events' THEN in_events ELSE in_partitions END
    ON CONFLICT DO NOTHING
$$;
COMMENT ON FUNCTION weir_internal.queue_announcements(weir_internal.stream, bigint, boolean, boolean) IS 'Queues a commit of a locked stream for each Airflow that watches it: whether it has events, and whether it may have completed hours or changed complete ones.';

CREATE OR REPLACE FUNCTION weir_internal.partition_span(kind text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE kind WHEN 'hours' THEN 3600000000 WHEN 'days' THEN 86400000000 END;
COMMENT ON FUNCTION weir_internal.partition_span(text) IS 'The microseconds of an hour or a day; null for events.';

CREATE OR REPLACE FUNCTION weir_internal.partition_begin(kind text, event_time bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN event_time - ((event_time % weir_internal.partition_span(kind)) + weir_internal.partition_span(kind))
    % weir_internal.partition_span(kind);
COMMENT ON FUNCTION weir_internal.partition_begin(text, bigint) IS 'When the hour or the day of an event time begins, in UTC, also before 1970.';

-- What is complete by then is not announced, as what was committed by then is not.
CREATE OR REPLACE FUNCTION weir_internal.watch_streams(in_airflow text, in_kinds text[], in_streams text[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO weir_internal.watch AS w (stream_name, airflow, kind, announced_until)
    SELECT n.stream, in_airflow, n.kind, weir_internal.partition_begin(n.kind, s.complete_until)
    FROM unnest(in_kinds, in_streams) AS n (kind, stream)
    LEFT JOIN weir_internal.stream s ON s.stream_name = n.stream AND s.state <> 'deleted'
    ORDER BY n.stream, n.kind
    ON CONFLICT (stream_name, airflow, kind) DO UPDATE SET seen_at = clock_timestamp()
$$;
COMMENT ON FUNCTION weir_internal.watch_streams(text, text[], text[]) IS 'Begins to announce streams to an Airflow, or says that it still wants that.';

-- It goes from one stream that has something to the next one, so streams for which nobody waits cost one probe each,
-- however much is queued for them.
CREATE OR REPLACE FUNCTION weir_internal.to_announce(in_airflow text, in_idle text[])
RETURNS TABLE (kind text, stream text, transactions bigint[], events bigint, bytes bigint, cut jsonb, epoch integer,
               runs text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 100
AS $$
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
           CASE WHEN t.clock IS NOT NULL THEN weir.stream_cut_at(m.stream_name, weir_internal.clock_time(t.clock)) END,
           t.epoch, t.sources
    FROM moved m
    CROSS JOIN LATERAL (
        SELECT array_agg(t.transaction_number ORDER BY t.clock) AS numbers, sum(t.events)::bigint AS events,
               sum(t.bytes)::bigint AS bytes, max(t.clock) AS clock, max(s.current_epoch) AS epoch,
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
