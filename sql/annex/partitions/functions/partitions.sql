-- Hours and days of event time: which are complete, and what an Airflow was told of them.

CREATE OR REPLACE FUNCTION weir_internal.partition_span(kind text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE kind WHEN 'hours' THEN 3600000000 WHEN 'days' THEN 86400000000 END;
COMMENT ON FUNCTION weir_internal.partition_span(text) IS 'The microseconds of an hour or a day; null for events.';

CREATE OR REPLACE FUNCTION weir_internal.partition_begin(kind text, event_time bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN event_time - ((event_time % weir_internal.partition_span(kind)) + weir_internal.partition_span(kind))
    % weir_internal.partition_span(kind);
COMMENT ON FUNCTION weir_internal.partition_begin(text, bigint) IS 'When the hour or the day of an event time begins, in UTC, also before 1970.';

-- Whoever calls it, it only says what is true: nothing later than what a stream is complete to is announced.
CREATE OR REPLACE FUNCTION weir_internal.take_back_announced(in_stream_id bigint)
RETURNS TABLE (airflow text, kind text, since bigint, until bigint)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 10
AS $$
    WITH told AS MATERIALIZED (
        SELECT w.stream_name, w.airflow, w.kind, w.announced_until,
               weir_internal.partition_begin(w.kind, s.complete_until) AS back
        FROM weir_internal.stream s JOIN weir_internal.watched_partition w USING (stream_name)
        WHERE s.stream_id = in_stream_id AND s.state <> 'deleted' AND w.announced_until IS NOT NULL
          AND s.stream_id NOT IN (SELECT weir_internal.hidden_streams(weir_internal.asking()))
    )
    UPDATE weir_internal.watched_partition w SET announced_until = t.back
    FROM told t
    WHERE w.stream_name = t.stream_name AND w.airflow = t.airflow AND w.kind = t.kind
      AND (t.back IS NULL OR t.announced_until > t.back)
    RETURNING w.airflow, w.kind, t.back, t.announced_until
$$;
COMMENT ON FUNCTION weir_internal.take_back_announced(bigint) IS 'Forgets that hours and days were announced that are later than what a stream is complete to, and returns them.';

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
    JOIN weir_internal.watched_partition w ON w.stream_name = a.stream AND w.kind = a.kind AND w.airflow = in_airflow
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
    UPDATE weir_internal.watched_partition w
    SET announced_until = greatest(w.announced_until, n.until),
        left_out = coalesce(n.left_out, w.left_out),
        left_out_at = CASE WHEN n.left_out IS NULL THEN w.left_out_at ELSE clock_timestamp() END
    FROM (SELECT n.kind, n.stream, n.left_out,  -- what was stated may have been taken back meanwhile
                 CASE WHEN s.complete_until IS NOT NULL
                      THEN least(n.until, weir_internal.partition_begin(n.kind, s.complete_until)) END AS until
          FROM n LEFT JOIN weir_internal.stream s ON s.stream_name = n.stream AND s.state <> 'deleted') n
    WHERE w.airflow = in_airflow AND w.kind = n.kind AND w.stream_name = n.stream
$$;
COMMENT ON FUNCTION weir_internal.announced_partitions(text, text[], text[], bigint[], jsonb, text[]) IS 'Records that all hours or days of streams that end by a time are in the database of an Airflow, which transactions need no more announcing (an array for each stream), and what was left out.';
