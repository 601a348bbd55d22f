"""What the audit asks of receipts: each offset below a head has one, and no other."""

from weir.annex.audit.erasures import HOLES
from weir.annex.audit.ledger import KEPT, SEGMENT, covered, once

# The segment of a range may be pruned: then it ended where its last range ends.
_RANGES = f"""WITH {KEPT}, have AS (
        SELECT stream_id, segment_id, min(from_offset) AS lo, max(to_offset) AS hi,
               {covered("from_offset", "to_offset")} AS whole
        FROM truncated_range GROUP BY stream_id, segment_id
    ), wrong AS (
        SELECT coalesce(k.stream_id, h.stream_id) AS stream_id,
               coalesce(k.segment_id, h.segment_id) AS segment_id,
               k.kept_from, h.lo, h.hi, h.whole <> {once("h.lo", "h.hi")} AS broken
        FROM have h FULL JOIN (SELECT * FROM kept WHERE kept_from > 0) k USING (stream_id,
            segment_id)
        LEFT JOIN segment g ON g.stream_id = h.stream_id AND g.segment_id = h.segment_id
        WHERE CASE WHEN h.lo IS NULL THEN true
            ELSE h.lo > 0 OR h.whole <> {once("h.lo", "h.hi")}
                 OR h.hi <> k.kept_from OR k.kept_from IS NULL AND g.stream_id IS NOT NULL END
        LIMIT 100
    )
    SELECT CASE WHEN w.hi > coalesce(w.kept_from, 0) THEN 'receipt_of_what_is_kept'
                WHEN w.lo IS NULL OR w.lo > 0 THEN 'receipt_missing'
                WHEN w.broken AND d.before < d.from_offset THEN 'receipt_missing'
                WHEN w.broken THEN 'receipt_twice'
                ELSE 'receipt_missing' END AS kind,
           s.stream_name AS stream, NULL AS reader_group, {SEGMENT.format("w.segment_id")}
               AS segment,
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
        SELECT * FROM (SELECT r.from_offset, lag(r.to_offset) OVER (ORDER BY r.from_offset)
            AS before
                       FROM truncated_range r WHERE r.stream_id = w.stream_id
                         AND r.segment_id = w.segment_id) r
        WHERE r.before <> r.from_offset ORDER BY r.from_offset LIMIT 1) d
            ON w.broken"""  # noqa: S608

# Offsets whose events were erased before are no events that went. (Of a file in which the head
# lies, some below it may have been erased since.)
_SUMS = f"""SELECT 'receipt_sum' AS kind, t.stream_name AS stream, NULL AS reader_group,
           NULL AS segment, coalesce(r.events, 0) AS a, t.events AS b, t.number::text AS name
    FROM truncation t LEFT JOIN (
        SELECT stream_id, number, sum(to_offset - from_offset) AS events
        FROM truncated_range GROUP BY stream_id, number) r USING (stream_id, number)
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(h.holes), 0) AS holes
        FROM truncated_range q
            CROSS JOIN LATERAL {HOLES.format("q", "q.from_offset", "q.to_offset")} h
        WHERE q.stream_id = t.stream_id AND q.number = t.number) n
    WHERE r.events IS NULL
       OR t.events NOT BETWEEN r.events - n.holes AND r.events - CASE WHEN EXISTS (
        SELECT FROM erasure e WHERE e.stream_id = t.stream_id AND e.erased_at > t.truncated_at)
        THEN 0 ELSE n.holes END
    LIMIT 20"""  # noqa: S608

_NUMBERS = """SELECT CASE WHEN t.number <> t.before + 1 THEN 'receipt_lost' ELSE 'receipt_total' END
           AS kind, t.stream_name AS stream, NULL AS reader_group, NULL AS segment,
           CASE WHEN t.number <> t.before + 1 THEN t.before + 1 ELSE t.events_until END AS a,
           CASE WHEN t.number <> t.before + 1 THEN t.number ELSE t.total + t.events END AS b,
           t.number::text AS name
    FROM (SELECT t.*, lag(number, 1, 0::bigint) OVER of AS before,
                 lag(events_until, 1, 0::bigint) OVER of AS total
          FROM truncation t WINDOW of AS (PARTITION BY stream_id ORDER BY number)) t
    WHERE t.number <> t.before + 1 OR t.events_until <> t.total + t.events LIMIT 20"""

STATEMENTS = [_RANGES, _SUMS, _NUMBERS]
