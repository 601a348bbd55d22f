-- Which streams must be evaluated, with the loads of their segments; and decisions to do nothing.

-- fragment: loads_of
WITH due AS MATERIALIZED (
    SELECT s.stream_id, s.stream_name AS stream, s.scaling, s.target_rate, s.scale_factor,
           s.min_segments, s.max_segments, s.scale_cooldown, s.current_epoch, s.last_clock,
           s.scaling_policy AS policy, n.now, coalesce(m.silent_attempts, 0) AS silent_attempts,
           rests(m.begun_at, m.silent_attempts) AS rests
    FROM stream s CROSS JOIN (SELECT now_clock() AS now) n
    LEFT JOIN scale_measurement m USING (stream_id)
    WHERE s.state = 'active' AND

-- fragment: loads
)
SELECT d.*, l.*, r.rule AS last_rule, r.reason AS last_reason
FROM due d CROSS JOIN LATERAL segment_loads(d.stream_id, d.now) l
LEFT JOIN LATERAL (
    SELECT o.rule, o.reason FROM scale_decision o
    WHERE o.stream_id = d.stream_id ORDER BY o.decided_at DESC LIMIT 1) r ON true
ORDER BY d.stream_id, l.key_low

-- name: due -> many Load
-- Return the loads of streams whose decision may be another than the last one.
-- null: target_rate, scale_factor, max_segments, rates, commit_interval, last_commit
-- null: measured_until, last_rule, last_reason
-- type: rates = Any
-- type: windows = Any
{loads_of} s.stream_id IN (SELECT * FROM streams_to_evaluate())
{loads}

-- name: all_by_load -> many Load
-- Return the loads of all streams that scale by load.
-- null: target_rate, scale_factor, max_segments, rates, commit_interval, last_commit
-- null: measured_until, last_rule, last_reason
-- type: rates = Any
-- type: windows = Any
{loads_of} s.scaling <> 'fixed'
{loads}

-- name: of_streams -> many Load
-- Return the loads of streams of these names.
-- null: target_rate, scale_factor, max_segments, rates, commit_interval, last_commit
-- null: measured_until, last_rule, last_reason
-- type: rates = Any
-- type: windows = Any
{loads_of} s.stream_name = ANY(CAST(:names AS text[]))
{loads}

-- name: record_nothing -> none
-- Record decisions to do nothing that differ from the last ones, and what they rest on. Delete the
-- hot keys of segments that are no longer hot.
-- type: :next = Sequence[int | None]
-- type: :intervals = Sequence[int | None]
-- type: :loads = Sequence[str | None]
-- The order at its end makes Postgres compare all decisions before it inserts the first. Otherwise,
-- if it takes the table for empty, it reads for each decision all those that it has just inserted.
WITH given AS (
    SELECT u.*, s.stream_name FROM unnest(CAST(:ids AS bigint[]), CAST(:clocks AS bigint[]),
        CAST(:policies AS text[]), CAST(:next AS bigint[]), CAST(:epochs AS integer[]),
        CAST(:rules AS text[]), CAST(:reasons AS text[]), CAST(:intervals AS bigint[]),
        CAST(:loads AS text[]))
        AS u (stream_id, clock, policy, next_at, epoch, rule, reason, commit_interval, loads)
    JOIN stream s ON s.stream_id = u.stream_id AND s.state = 'active'
), evaluated AS (
    INSERT INTO scale_evaluation (stream_id, clock, policy, next_at)
    SELECT stream_id, clock, policy,
           CAST('epoch' AS timestamptz) + next_at * interval '1 microsecond'
    FROM given ORDER BY stream_id
    ON CONFLICT (stream_id) DO UPDATE SET clock = excluded.clock, policy = excluded.policy,
        next_at = excluded.next_at
), cooled AS (
    DELETE FROM hot_key k USING given g
    WHERE k.stream_id = g.stream_id AND NOT EXISTS (
        SELECT FROM unnest(CAST(:hot AS bigint[]), CAST(:lows AS double precision[]),
            CAST(:highs AS double precision[])) AS h (stream_id, low, high)
        WHERE h.stream_id = k.stream_id AND h.low <= k.key_position AND k.key_position < h.high)
)
INSERT INTO scale_decision (stream_id, stream_name, decided_at, epoch, action, rule, reason,
    policy, commit_interval, loads, changes)
SELECT g.stream_id, g.stream_name, clock_timestamp(), g.epoch, 'none', g.rule, g.reason,
    g.policy, g.commit_interval, CAST(g.loads AS jsonb), '[]'
FROM given g
WHERE g.loads IS NOT NULL AND NOT EXISTS (
    SELECT FROM (SELECT o.action, o.rule, o.reason FROM scale_decision o
                 WHERE o.stream_id = g.stream_id ORDER BY o.decided_at DESC LIMIT 1) l
    WHERE l.action = 'none' AND l.rule = g.rule AND l.reason = g.reason)
ORDER BY g.stream_id
