-- Scaling by load. The rates are those of weir.model.segment_rates, here for all segments of a stream in one
-- statement and for people who have only SQL; a test compares the two. Times are clocks, in microseconds.

-- The median of the gaps in which the moments 1, 2, 4 ... minutes before the last commit lie, each gap once: a few
-- probes of an index, however many commits there are.
CREATE OR REPLACE FUNCTION weir_internal.commit_interval(in_stream_id bigint, in_last bigint) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(
        (SELECT (array_agg(g.till - g.since ORDER BY g.till - g.since))[count(*) / 2 + 1]
         FROM (SELECT DISTINCT b.clock AS since, a.clock AS till
               FROM generate_series(0, 14) AS p (i)
               CROSS JOIN LATERAL weir_internal.commit_before(in_stream_id, in_last - (60000000::bigint << p.i)) b
               CROSS JOIN LATERAL weir_internal.commit_after(in_stream_id, in_last - (60000000::bigint << p.i) - 1) a
               WHERE b.clock IS NOT NULL AND a.clock IS NOT NULL) g),
        (SELECT (max(t.clock) - min(t.clock)) / nullif(count(DISTINCT t.clock) - 1, 0)
         FROM weir_internal.commits_between(in_stream_id, in_last - 60000000, 9223372036854775807) t))
$$;
COMMENT ON FUNCTION weir_internal.commit_interval(bigint, bigint) IS 'The own interval between commits of a stream whose last commit is given, in microseconds; null if there is only one.';

-- A copy that a roll made has the number and the beginning of its original, so it has the commits and the creation
-- of its original too. Only an epoch with another reference epoch has copies in it. A segment may be active
-- for longer than its epoch is known: then it is as old as the oldest epoch that is, and may be a copy.
CREATE OR REPLACE FUNCTION weir_internal.segment_loads(in_stream_id bigint, in_now bigint)
RETURNS TABLE (segment_id bigint, key_low double precision, key_high double precision,
               created_at bigint, commit_interval bigint, last_commit bigint, measured_until bigint,
               rates double precision[], windows bigint[])
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 10
AS $$
    WITH RECURSIVE rhythm AS MATERIALIZED (
        SELECT l.clock AS last, g.gap, greatest(l.clock, in_now - 2 * g.gap) AS until,
               greatest(120000000, 4 * g.gap) AS w2, greatest(300000000, 4 * g.gap) AS w5,
               greatest(600000000, 4 * g.gap) AS w10, greatest(1200000000, 4 * g.gap) AS w20
        FROM (SELECT weir_internal.newest_clock(in_stream_id) AS clock OFFSET 0) l
        CROSS JOIN LATERAL (SELECT weir_internal.commit_interval(in_stream_id, l.clock) AS gap OFFSET 0) g
    ), oldest AS MATERIALIZED (
        SELECT min(e.created_at) AS created_at FROM weir_internal.epoch e WHERE e.stream_id = in_stream_id
    ), copy AS (
        SELECT g.segment_id AS active_id, g.segment_id, g.key_low, g.key_high,
               coalesce(e.created_at, (SELECT o.created_at FROM oldest o)) AS created_at,
               coalesce(e.reference_epoch <> e.epoch, true) AS rolled,
               (SELECT i.clock FROM rhythm r CROSS JOIN LATERAL
                    weir_internal.commit_by(g.stream_id, g.segment_id, r.until - r.w20) i) AS before
        FROM weir_internal.segment_tail t
        JOIN weir_internal.segment g USING (stream_id, segment_id)
        LEFT JOIN weir_internal.epoch e ON e.stream_id = g.stream_id AND e.epoch = g.creation_epoch
        WHERE t.stream_id = in_stream_id
        UNION ALL
        SELECT c.active_id, o.segment_id, c.key_low, c.key_high,
               coalesce(e.created_at, (SELECT o.created_at FROM oldest o)),
               coalesce(e.reference_epoch <> e.epoch, true),
               (SELECT i.clock FROM rhythm r CROSS JOIN LATERAL
                    weir_internal.commit_by(in_stream_id, o.segment_id, r.until - r.w20) i)
        FROM copy c
        CROSS JOIN LATERAL (
            SELECT g.segment_id, g.creation_epoch FROM weir_internal.segment g
            WHERE g.stream_id = in_stream_id AND g.key_low = c.key_low
              AND g.creation_epoch < (c.segment_id >> 32)
              AND (g.segment_id & 4294967295) = (c.segment_id & 4294967295)
            ORDER BY g.creation_epoch DESC LIMIT 1) o
        LEFT JOIN weir_internal.epoch e ON e.stream_id = in_stream_id AND e.epoch = o.creation_epoch
        -- Older copies change nothing, once the copy is older than the windows and the cool-down, and has a
        -- commit before the windows.
        WHERE c.rolled AND (c.before IS NULL
            OR c.created_at > least((SELECT r.until - r.w20 FROM rhythm r), in_now)
                - (SELECT s.scale_cooldown FROM weir_internal.stream s WHERE s.stream_id = in_stream_id)
                  * 1000000)
    ), origin AS MATERIALIZED (
        SELECT c.active_id, c.key_low, c.key_high, min(c.created_at) AS created_at,
               max(c.before) AS before, array_agg(c.segment_id) AS ids
        FROM copy c GROUP BY c.active_id, c.key_low, c.key_high
    ), commits AS (
        SELECT o.active_id, i.clock, i.amount,
               greatest(i.clock - coalesce(
                   lag(i.clock) OVER (PARTITION BY o.active_id ORDER BY i.clock), o.before,
                   o.created_at), 1)::double precision AS spread
        FROM rhythm r CROSS JOIN origin o
        CROSS JOIN LATERAL (
            SELECT t.clock, CASE WHEN s.scaling = 'byte_rate' THEN t.bytes ELSE t.events END AS amount
            FROM unnest(o.ids) AS u (id)
            CROSS JOIN LATERAL weir_internal.commits_to(
                in_stream_id, u.id, r.until - r.w20 + 1, 9223372036854775807) t
            JOIN weir_internal.stream s ON s.stream_id = in_stream_id) i
    ), sums AS MATERIALIZED (
        SELECT c.active_id,
               sum(c.amount * greatest(least(c.clock, r.until) - greatest(c.clock - c.spread, r.until - r.w2), 0)
                   / c.spread) * 1000000 / r.w2 AS r2,
               sum(c.amount * greatest(least(c.clock, r.until) - greatest(c.clock - c.spread, r.until - r.w5), 0)
                   / c.spread) * 1000000 / r.w5 AS r5,
               sum(c.amount * greatest(least(c.clock, r.until) - greatest(c.clock - c.spread, r.until - r.w10), 0)
                   / c.spread) * 1000000 / r.w10 AS r10,
               sum(c.amount * greatest(least(c.clock, r.until) - greatest(c.clock - c.spread, r.until - r.w20), 0)
                   / c.spread) * 1000000 / r.w20 AS r20
        FROM commits c CROSS JOIN rhythm r GROUP BY c.active_id, r.w2, r.w5, r.w10, r.w20
    )
    SELECT o.active_id, o.key_low, o.key_high, o.created_at, r.gap, r.last, r.until,
           CASE WHEN r.gap IS NOT NULL THEN ARRAY[coalesce(s.r2, 0), coalesce(s.r5, 0),
                                                  coalesce(s.r10, 0), coalesce(s.r20, 0)] END,
           CASE WHEN r.gap IS NOT NULL THEN ARRAY[r.w2, r.w5, r.w10, r.w20] END
    FROM origin o CROSS JOIN rhythm r LEFT JOIN sums s USING (active_id)
    ORDER BY o.key_low
$$;
COMMENT ON FUNCTION weir_internal.segment_loads(bigint, bigint) IS 'The active segments of a stream and their rates per second over the four windows that end at measured_until; null rates and windows if the stream has fewer than two commits.';
