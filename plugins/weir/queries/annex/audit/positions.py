"""What the audit asks of positions: each group has one at every key, in order, where its placements and checkpoints say that it is or was. Made by `make queries` from sql/annex/audit/queries/positions.sql."""

from datetime import datetime

from sqlalchemy import Connection, text

from weir.annex.audit.sentences import Found

FRONT = text(
    """SELECT 'keys_without_position' AS kind, s.stream_name AS stream, g.name AS reader_group,
       w.segment_id AS segment, NULL::bigint AS a, NULL::bigint AS b,
       w.before::text AS name
FROM (SELECT p.group_id, p.stream_id, p.segment_id, t.key_low, t.key_high,
             coalesce(max(t.key_high) OVER (
                 of ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before,
             max(t.key_high) OVER of AS reached, lead(p.segment_id) OVER of IS NULL AS last
      FROM reader_group_segment p JOIN segment t USING (stream_id, segment_id)
      WINDOW of AS (PARTITION BY p.group_id, p.stream_id ORDER BY t.key_low, p.segment_id)) w
JOIN stream s USING (stream_id) JOIN reader_group g USING (group_id)
WHERE w.key_low > w.before OR w.last AND w.reached < 1
UNION ALL
SELECT 'no_position', s.stream_name, g.name, NULL, NULL, NULL, NULL
FROM reader_group g LEFT JOIN reader_group_stream gs USING (group_id)
LEFT JOIN stream s USING (stream_id)
WHERE gs.group_id IS NULL OR s.state <> 'deleted' AND NOT EXISTS (
    SELECT FROM reader_group_segment p
    WHERE p.group_id = gs.group_id AND p.stream_id = gs.stream_id)
LIMIT 100"""
)


def front(connection: Connection) -> list[Found]:
    """Return the keys at which a group has no position."""
    result = connection.execute(FRONT)
    return [Found._make(row) for row in result]


STATES = text(
    """SELECT CASE WHEN p.state = 'completed' THEN 'completed_before_end'
            WHEN p.state = 'future' THEN 'waits_for_nothing' ELSE 'waits_for_nobody' END
           AS kind, s.stream_name AS stream, g.name AS reader_group,
       p.segment_id AS segment, p.next_offset AS a,
       coalesce(l.tail_offset, t.events) AS b, NULL AS name
FROM reader_group_segment p JOIN segment t USING (stream_id, segment_id)
LEFT JOIN segment_tail l USING (stream_id, segment_id)
JOIN stream s USING (stream_id) JOIN reader_group g USING (group_id)
WHERE s.state <> 'deleted' AND (p.state = 'completed' AND (s.state = 'active'
        OR p.next_offset IS DISTINCT FROM coalesce(l.tail_offset, t.events))
    OR (p.state = 'future') <> EXISTS (
        SELECT FROM reader_group_segment o JOIN segment u USING (stream_id, segment_id)
        WHERE o.group_id = p.group_id AND o.stream_id = p.stream_id
          AND o.segment_id < p.segment_id AND u.key_low < t.key_high
          AND t.key_low < u.key_high))
LIMIT 100"""
)


def states(connection: Connection) -> list[Found]:
    """Return the positions whose state is not as it must be. A segment waits as long as the group has an older one at some of its keys, and only so long. A completed one is the end of a stream to which nothing more comes."""
    result = connection.execute(STATES)
    return [Found._make(row) for row in result]


PLACEMENTS = text(
    """SELECT 'placement_missing' AS kind, s.stream_name AS stream, g.name AS reader_group,
       NULL::bigint AS segment, NULL::bigint AS a, NULL::bigint AS b, NULL AS name
FROM reader_group_stream gs JOIN stream s USING (stream_id) JOIN reader_group g USING (group_id)
LEFT JOIN (SELECT group_id, stream_id, count(*) AS n, max(number) AS last
           FROM placement GROUP BY group_id, stream_id) p USING (group_id, stream_id)
LEFT JOIN (SELECT group_id, stream_id, max(placement) AS last
           FROM delivered_range GROUP BY group_id, stream_id) d USING (group_id, stream_id)
WHERE s.state <> 'deleted'
    AND (p.n IS DISTINCT FROM p.last OR p.n IS NULL OR d.last > p.last)
UNION ALL
SELECT 'placement_differs', s.stream_name, g.name, NULL, p.number, NULL, NULL
FROM (SELECT p.*, lag(p.placed_at) OVER of AS before,
             bool_or(p.cause = 'entered') OVER (PARTITION BY p.group_id, p.stream_id
                 ORDER BY p.number ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS left
      FROM placement p WINDOW of AS (PARTITION BY p.group_id, p.stream_id ORDER BY p.number)) p
JOIN reader_group_stream gs USING (group_id, stream_id) JOIN stream s USING (stream_id)
JOIN reader_group g USING (group_id)
WHERE s.state <> 'deleted' AND (p.placed_at < p.before OR p.group_name <> g.name
    OR (p.cause = 'entered') <> (p.left_at IS NULL) OR p.number = 1 AND p.cause <> 'entered'
    OR p.cause = 'entered' AND p.left IS NOT TRUE AND p.cut <> gs.start_cut)
LIMIT 100"""
)


def placements(connection: Connection) -> list[Found]:
    """Return where a group was put, unless it is numbered without gap, in order of time, from where it entered the stream."""
    result = connection.execute(PLACEMENTS)
    return [Found._make(row) for row in result]


STORES = text(
    """SELECT 'store_position' AS kind, s.stream_name AS stream, a.name AS reader_group,
       NULL::bigint AS segment, NULL::bigint AS a, NULL::bigint AS b, v.version::text AS name
FROM adjunct_store a JOIN stream s USING (stream_id)
JOIN adjunct_version v ON v.store_id = a.store_id AND v.state = 'published'
    AND v.superseded_at IS NULL
JOIN (SELECT DISTINCT ON (group_id, stream_id) * FROM placement
      ORDER BY group_id, stream_id, number DESC) p
    ON p.group_id = a.group_id AND p.stream_id = a.stream_id
WHERE s.state <> 'deleted' AND p.cause = 'moved' AND p.cut <> v.cut LIMIT 20"""
)


def stores(connection: Connection) -> list[Found]:
    """Return the stores that are elsewhere: a store has no batches, so its position is the cut that its newest version is made of."""
    result = connection.execute(STORES)
    return [Found._make(row) for row in result]


CHECKPOINTS = text(
    """WITH seg AS MATERIALIZED (
    SELECT g.stream_id, g.segment_id, g.key_low, g.key_high,
           coalesce(t.tail_offset, g.events) AS ends
    FROM segment g LEFT JOIN segment_tail t USING (stream_id, segment_id)
), head AS MATERIALIZED (
    SELECT s.stream_id, c.segment_id, c.past, g.key_low, g.key_high
    FROM (SELECT stream_id, head AS cut FROM stream) s CROSS JOIN LATERAL (SELECT (split_part(e.key, '.', 2)::bigint << 32) | split_part(e.key, '.', 1)::bigint AS segment_id,
            CASE WHEN jsonb_typeof(e.value) = 'number' THEN e.value::bigint END AS past
        FROM jsonb_each(cut) e) c
    JOIN segment g ON g.stream_id = s.stream_id AND g.segment_id = c.segment_id
), owner AS (
    SELECT g.stream_id, g.segment_id, min(o.segment_id) AS segment
    FROM (SELECT stream_id, max(segment_id) AS segment_id FROM head GROUP BY stream_id) n
    JOIN seg g ON g.stream_id = n.stream_id AND g.segment_id < n.segment_id
    JOIN head o ON o.stream_id = g.stream_id AND o.key_low <= g.key_low AND g.key_low < o.key_high
    GROUP BY g.stream_id, g.segment_id
), kept AS MATERIALIZED (
    SELECT g.stream_id, g.segment_id, g.ends,
           CASE WHEN h.segment_id IS NOT NULL THEN coalesce(h.past, 0)
                WHEN o.segment > g.segment_id THEN g.ends ELSE 0 END AS kept_from
    FROM seg g LEFT JOIN head h USING (stream_id, segment_id)
    LEFT JOIN owner o USING (stream_id, segment_id)
), made AS MATERIALIZED (
    SELECT c.group_id, c.name, c.created_at, g.name AS group_name, s.stream_name,
           CASE WHEN c.waits_for = '{}' THEN c.created_at ELSE 'infinity' END AS until,
           s.stream_id, p.number AS stay, p.cut AS since,
           CASE WHEN jsonb_typeof(c.cuts -> s.stream_id::text) = 'object'
                THEN c.cuts -> s.stream_id::text ELSE '{}' END AS cut
    FROM checkpoint c JOIN reader_group g USING (group_id)
    JOIN (SELECT group_id, stream_id, min(placed_at) AS at FROM placement
          WHERE cause = 'entered' GROUP BY group_id, stream_id) e USING (group_id)
    JOIN stream s ON s.stream_id = e.stream_id AND s.state <> 'deleted'
    JOIN reader_group_stream gs ON gs.group_id = c.group_id AND gs.stream_id = s.stream_id
    JOIN LATERAL (
        SELECT o.number, o.cut FROM placement o
        WHERE o.group_id = c.group_id AND o.stream_id = s.stream_id
          AND o.placed_at <= c.created_at ORDER BY o.number DESC LIMIT 1) p ON true
    WHERE c.state = 'complete' AND e.at <= c.created_at
      AND c.created_at > coalesce(CAST(:since AS timestamptz), '-infinity') AND (
        SELECT max(o.placed_at) FROM placement o WHERE o.group_id = c.group_id
          AND o.stream_id = s.stream_id AND o.cause = 'entered') <= c.created_at
), part AS MATERIALIZED (
    SELECT m.*, c.segment_id, c.past, g.key_low, g.key_high
    FROM made m CROSS JOIN LATERAL (SELECT (split_part(e.key, '.', 2)::bigint << 32) | split_part(e.key, '.', 1)::bigint AS segment_id,
            CASE WHEN jsonb_typeof(e.value) = 'number' THEN e.value::bigint END AS past
        FROM jsonb_each(cut) e) c
    LEFT JOIN seg g ON g.stream_id = m.stream_id AND g.segment_id = c.segment_id
), point AS MATERIALIZED (
    SELECT DISTINCT group_id, stream_id, stay, 'from' AS side, since AS cut FROM made
), wanted AS MATERIALIZED (
    SELECT DISTINCT p.stream_id, p.segment_id FROM part p
    UNION
    SELECT p.stream_id, g.segment_id FROM part p JOIN segment g ON g.stream_id = p.stream_id
        AND g.sealed_epoch = p.segment_id >> 32
), entry AS MATERIALIZED (
    SELECT p.group_id, p.stream_id, p.stay, p.side, c.segment_id, c.past, g.key_low, g.key_high
    FROM point p CROSS JOIN LATERAL (SELECT (split_part(e.key, '.', 2)::bigint << 32) | split_part(e.key, '.', 1)::bigint AS segment_id,
            CASE WHEN jsonb_typeof(e.value) = 'number' THEN e.value::bigint END AS past
        FROM jsonb_each(cut) e) c LEFT JOIN seg g USING (stream_id, segment_id)
), side AS MATERIALIZED (
    SELECT group_id, stream_id, stay, side, min(segment_id) AS first, max(segment_id) AS last,
           bool_and(key_low IS NOT NULL) AS known
    FROM entry GROUP BY group_id, stream_id, stay, side
), passed AS MATERIALIZED (
    SELECT i.group_id, i.stream_id, i.stay, i.side, r.segment_id,
           CASE WHEN e.segment_id IS NOT NULL THEN coalesce(e.past, 0)
                WHEN r.segment_id < i.first THEN 9223372036854775807
                WHEN r.segment_id > i.last THEN 0
                WHEN i.known AND g.key_low IS NOT NULL THEN (
                    SELECT CASE WHEN min(o.segment_id) > r.segment_id
                        THEN 9223372036854775807 ELSE 0 END
                    FROM entry o WHERE o.group_id = i.group_id AND o.stream_id = i.stream_id
                      AND o.stay = i.stay AND o.side = i.side
                      AND o.key_low <= g.key_low AND g.key_low < o.key_high) END AS past
    FROM side i JOIN wanted r USING (stream_id)
    LEFT JOIN seg g USING (stream_id, segment_id)
    LEFT JOIN entry e USING (group_id, stream_id, stay, side, segment_id)
), target AS (
    SELECT p.group_id, p.name, p.stream_id, p.stay, p.created_at, p.until, p.segment_id,
           coalesce(p.past, 0) AS past FROM part p
    UNION ALL
    SELECT p.group_id, p.name, p.stream_id, p.stay, p.created_at, p.until, g.segment_id, k.ends
    FROM part p JOIN segment g ON g.stream_id = p.stream_id
        AND g.sealed_epoch = p.segment_id >> 32
        AND g.key_low < p.key_high AND p.key_low < g.key_high
    JOIN seg k ON k.stream_id = g.stream_id AND k.segment_id = g.segment_id
    WHERE p.past IS NOT NULL
), input AS MATERIALIZED (
    SELECT i.*, b.committed_at FROM reader_batch b JOIN batch_input i USING (group_id, batch_id)
    WHERE b.state = 'committed'
      AND b.committed_at > coalesce(CAST(:since AS timestamptz), '-infinity')
), given AS (
    SELECT t.group_id, t.name, t.stream_id, t.segment_id, t.past, d.to_offset,
           CASE WHEN d.last_at <= t.created_at THEN d.to_offset
                ELSE greatest(max(i.to_offset) FILTER (WHERE i.committed_at <= t.created_at),
                     CASE WHEN d.first_at <= t.created_at THEN d.from_offset + 1 END) END AS lo,
           CASE WHEN d.first_at <= t.until THEN least(d.to_offset, min(i.from_offset) FILTER (
                WHERE i.committed_at > t.until)) END AS hi
    FROM target t JOIN delivered_range d ON d.group_id = t.group_id
        AND d.stream_id = t.stream_id AND d.segment_id = t.segment_id AND d.placement = t.stay
    LEFT JOIN input i ON i.group_id = d.group_id AND i.stream_id = d.stream_id
        AND i.segment_id = d.segment_id AND i.batch_id BETWEEN d.first_batch AND d.last_batch
        AND i.from_offset >= d.from_offset AND i.to_offset <= d.to_offset
    GROUP BY t.group_id, t.name, t.stream_id, t.segment_id, t.past, t.created_at, t.until,
        d.from_offset, d.to_offset, d.first_at, d.last_at
), span AS (
    SELECT group_id, name, stream_id, segment_id, past, max(lo) AS lo, max(hi) AS hi
    FROM given GROUP BY group_id, name, stream_id, segment_id, past
), wrong AS (
    SELECT t.group_id, t.name, t.stream_id, t.segment_id, t.past
    FROM target t JOIN passed f ON f.group_id = t.group_id AND f.stream_id = t.stream_id
        AND f.stay = t.stay AND f.segment_id = t.segment_id
    LEFT JOIN seg k ON k.stream_id = t.stream_id AND k.segment_id = t.segment_id
    LEFT JOIN span d ON d.group_id = t.group_id AND d.name = t.name
        AND d.stream_id = t.stream_id AND d.segment_id = t.segment_id AND d.past = t.past
    WHERE f.past IS NOT NULL AND k.ends IS NOT NULL
      AND t.past NOT BETWEEN greatest(least(f.past, k.ends), d.lo)
          AND greatest(least(f.past, k.ends), d.hi)
    UNION ALL
    SELECT w.group_id, w.name, w.stream_id, w.segment_id, 0
    FROM (SELECT p.*, coalesce(max(p.key_high) OVER (
                     of ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before,
                 max(p.key_high) OVER of AS reached, lead(p.segment_id) OVER of IS NULL AS last,
                 bool_and(p.key_low IS NOT NULL) OVER (
                     PARTITION BY p.group_id, p.stream_id, p.name) AS known
          FROM part p
          WINDOW of AS (PARTITION BY p.group_id, p.stream_id, p.name
                        ORDER BY p.key_low, p.segment_id)) w
    WHERE w.known AND (w.key_low > w.before OR w.last AND w.reached < 1
        OR w.past IS NULL AND NOT EXISTS (
            SELECT FROM part o WHERE o.group_id = w.group_id AND o.stream_id = w.stream_id
              AND o.name = w.name AND o.segment_id < w.segment_id
              AND o.key_low < w.key_high AND w.key_low < o.key_high))
    UNION ALL
    SELECT m.group_id, m.name, m.stream_id, NULL, 0 FROM made m WHERE m.cut = '{}'
)
SELECT DISTINCT 'checkpoint_moved' AS kind, s.stream_name AS stream, g.name AS reader_group,
       w.segment_id AS segment, w.past AS a, NULL::bigint AS b, w.name
FROM wrong w JOIN stream s USING (stream_id) JOIN reader_group g USING (group_id)
LIMIT 100"""
)


def checkpoints(connection: Connection, *, since: datetime | None) -> list[Found]:
    """Return the checkpoints that are not the position of their group at that time: of each segment what it was given by then. While batches are kept they say it, else the ends of ranges say between which offsets it was. All that comes before one of its segments was given, too. Without `since`, of all."""
    result = connection.execute(CHECKPOINTS, {"since": since})
    return [Found._make(row) for row in result]
