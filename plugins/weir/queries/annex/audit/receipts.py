"""What the audit asks of receipts: each offset below a head has one, and no other. Made by `make queries` from sql/annex/audit/queries/receipts.sql."""

from sqlalchemy import Connection, text

from weir.annex.audit.sentences import Found

RANGES = text(
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
), summed AS (
    SELECT stream_id, segment_id, min(from_offset) AS lo, max(to_offset) AS hi,
           sum(hashint8extended(to_offset, 0)) - sum(hashint8extended(from_offset, 0)) AS whole
    FROM truncated_range GROUP BY stream_id, segment_id
), have AS (
    SELECT *, whole <> hashint8extended(hi, 0)::numeric - hashint8extended(lo, 0) AS broken
    FROM summed
), wrong AS (
    SELECT coalesce(k.stream_id, h.stream_id) AS stream_id,
           coalesce(k.segment_id, h.segment_id) AS segment_id, k.kept_from, h.lo, h.hi, h.broken
    FROM have h
    FULL JOIN (SELECT * FROM kept WHERE kept_from > 0) k USING (stream_id, segment_id)
    LEFT JOIN segment g ON g.stream_id = h.stream_id AND g.segment_id = h.segment_id
    WHERE CASE WHEN h.lo IS NULL THEN true
        ELSE h.lo > 0 OR h.broken
             OR h.hi <> k.kept_from OR k.kept_from IS NULL AND g.stream_id IS NOT NULL END
    LIMIT 100
)
SELECT CASE WHEN w.hi > coalesce(w.kept_from, 0) THEN 'receipt_of_what_is_kept'
            WHEN w.lo IS NULL OR w.lo > 0 THEN 'receipt_missing'
            WHEN w.broken AND d.before < d.from_offset THEN 'receipt_missing'
            WHEN w.broken THEN 'receipt_twice'
            ELSE 'receipt_missing' END AS kind,
       s.stream_name AS stream, NULL AS reader_group, w.segment_id AS segment,
       CASE WHEN w.hi > coalesce(w.kept_from, 0) THEN coalesce(w.kept_from, 0)
            WHEN w.lo IS NULL OR w.lo > 0 THEN 0
            WHEN w.broken THEN least(d.before, d.from_offset)
            ELSE least(w.hi, coalesce(w.kept_from, 0)) END AS a,
       CASE WHEN w.hi > coalesce(w.kept_from, 0) THEN w.hi
            WHEN w.lo IS NULL THEN w.kept_from WHEN w.lo > 0 THEN w.lo
            WHEN w.broken THEN greatest(d.before, d.from_offset)
            ELSE greatest(w.hi, w.kept_from) END AS b, NULL AS name
FROM wrong w JOIN stream s USING (stream_id)
LEFT JOIN LATERAL (
    SELECT * FROM (
        SELECT r.from_offset, lag(r.to_offset) OVER (ORDER BY r.from_offset) AS before
        FROM truncated_range r
        WHERE r.stream_id = w.stream_id AND r.segment_id = w.segment_id) r
    WHERE r.before <> r.from_offset ORDER BY r.from_offset LIMIT 1) d ON w.broken"""
)


def ranges(connection: Connection) -> list[Found]:
    """Return the segments of which not each offset below the head has one receipt. The segment of a range may be pruned: then it ended where its last range ends."""
    result = connection.execute(RANGES)
    return [Found._make(row) for row in result]


SUMS = text(
    """SELECT 'receipt_sum' AS kind, t.stream_name AS stream, NULL AS reader_group,
       NULL::bigint AS segment, coalesce(r.events, 0) AS a, t.events AS b,
       t.number::text AS name
FROM truncation t LEFT JOIN (
    SELECT stream_id, number, sum(to_offset - from_offset) AS events
    FROM truncated_range GROUP BY stream_id, number) r USING (stream_id, number)
CROSS JOIN LATERAL (
    SELECT coalesce(sum(h.holes), 0) AS holes
    FROM (SELECT q.stream_id, q.segment_id, q.from_offset AS first, q.to_offset AS past
          FROM truncated_range q WHERE q.stream_id = t.stream_id AND q.number = t.number) r
    CROSS JOIN LATERAL (SELECT coalesce(sum(upper(m) - lower(m)), 0) AS holes
    FROM hole h CROSS JOIN LATERAL unnest(h.offsets * int4multirange(int4range(
        greatest(r.first - h.chunk * 65536, 0)::integer,
        least(r.past - h.chunk * 65536, 65536)::integer))) m
    WHERE h.stream_id = r.stream_id AND h.segment_id = r.segment_id
      AND h.chunk BETWEEN r.first / 65536 AND (r.past - 1) / 65536) h) n
WHERE r.events IS NULL
   OR t.events NOT BETWEEN r.events - n.holes AND r.events - CASE WHEN EXISTS (
        SELECT FROM erasure e WHERE e.stream_id = t.stream_id AND e.erased_at > t.truncated_at)
        THEN 0 ELSE n.holes END
LIMIT 20"""
)


def sums(connection: Connection) -> list[Found]:
    """Return the receipts whose events are not those of their ranges. Offsets whose events were erased before are no events that went. (Of a file in which the head lies, some below it may have been erased since.)"""
    result = connection.execute(SUMS)
    return [Found._make(row) for row in result]


NUMBERS = text(
    """SELECT CASE WHEN t.number <> t.before + 1 THEN 'receipt_lost' ELSE 'receipt_total' END AS kind,
       t.stream_name AS stream, NULL AS reader_group, NULL::bigint AS segment,
       CASE WHEN t.number <> t.before + 1 THEN t.before + 1 ELSE t.events_until END AS a,
       CASE WHEN t.number <> t.before + 1 THEN t.number ELSE t.total + t.events END AS b,
       t.number::text AS name
FROM (SELECT t.*, lag(number, 1, 0::bigint) OVER of AS before,
             lag(events_until, 1, 0::bigint) OVER of AS total
      FROM truncation t WINDOW of AS (PARTITION BY stream_id ORDER BY number)) t
WHERE t.number <> t.before + 1 OR t.events_until <> t.total + t.events LIMIT 20"""
)


def numbers(connection: Connection) -> list[Found]:
    """Return the receipts before which one is missing, or whose total is not that of all."""
    result = connection.execute(NUMBERS)
    return [Found._make(row) for row in result]
