"""What the audit asks of streams: that commits, files and segments have every offset once. A sum over ranges, a number for each end less one for each beginning, is that of the last end less that of the first beginning if they have all between without gap or overlap, and otherwise only by a collision of hashes. Ends and beginnings cancel at inner offsets, so nothing is sorted. Made by `make queries` from sql/annex/audit/queries/streams.sql."""

from sqlalchemy import Connection, text

from weir.annex.audit.sentences import Found

ALL_COMMITS = text(
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
), held AS MATERIALIZED (
    SELECT coalesce(bool_and(CASE WHEN f.start_offset IS NULL THEN k.ends <= k.kept_from
            ELSE f.start_offset <= k.kept_from OR k.ends <= k.kept_from END), true)
        AND coalesce(sum(hashint8extended(k.ends, hashint8extended(k.segment_id, k.stream_id))::numeric
        - hashint8extended(f.start_offset, hashint8extended(k.segment_id, k.stream_id))), 0) = coalesce((
            SELECT sum(whole) FROM (
                SELECT sum(hashint8extended(past, hashint8extended(segment_id, stream_id)))
    - sum(hashint8extended(start_offset, hashint8extended(segment_id, stream_id))) AS whole
                FROM (SELECT *, start_offset + events AS past FROM time_index) r
                UNION ALL
                SELECT sum(hashint8extended(past, hashint8extended(segment_id, stream_id)))
    - sum(hashint8extended(start_offset, hashint8extended(segment_id, stream_id))) AS whole FROM packed_commits) r), 0) AS held
    FROM kept k LEFT JOIN LATERAL (
        SELECT * FROM (
            (SELECT start_offset FROM time_index r
             WHERE r.stream_id = k.stream_id AND r.segment_id = k.segment_id
             ORDER BY start_offset LIMIT 1)
            UNION ALL
            (SELECT start_offset FROM packed_commits r
             WHERE r.stream_id = k.stream_id AND r.segment_id = k.segment_id
             ORDER BY start_offset LIMIT 1)) o
        ORDER BY start_offset LIMIT 1) f ON true
), looked AS (SELECT k.*, 0::bigint AS since FROM kept k), have AS (
    SELECT stream_id, segment_id, min(lo) AS lo, max(hi) AS hi, NULL::bigint AS first_past, sum(whole) <> hashint8extended(max(hi), 0)::numeric - hashint8extended(min(lo), 0) AS broken
    FROM (SELECT stream_id, segment_id, min(start_offset) AS lo, max(past) AS hi,
    sum(hashint8extended(past, 0)) - sum(hashint8extended(start_offset, 0)) AS whole
          FROM (SELECT *, start_offset + events AS past FROM time_index) r
          GROUP BY stream_id, segment_id
          UNION ALL
          SELECT stream_id, segment_id, min(start_offset) AS lo, max(past) AS hi,
    sum(hashint8extended(past, 0)) - sum(hashint8extended(start_offset, 0)) AS whole FROM packed_commits
          GROUP BY stream_id, segment_id) r
    GROUP BY stream_id, segment_id
), wrong AS (SELECT l.*, h.lo, h.hi, h.first_past, h.broken
    FROM looked l LEFT JOIN have h USING (stream_id, segment_id)
    WHERE CASE WHEN h.lo IS NULL THEN l.ends > l.kept_from
        ELSE h.broken OR h.hi <> l.ends
             OR h.lo > greatest(l.kept_from, l.since) AND l.ends > l.kept_from
             OR h.first_past <= l.kept_from END AND NOT (SELECT held FROM held) LIMIT 100), said AS (
    SELECT w.*, 'commit_' AS word, d.before, d.start_offset
    FROM wrong w LEFT JOIN LATERAL (
        SELECT * FROM (SELECT r.start_offset, lag(r.past) OVER (ORDER BY r.start_offset) AS before
                       FROM (SELECT start_offset, start_offset + events AS past FROM time_index
    WHERE stream_id = w.stream_id AND segment_id = w.segment_id AND start_offset >= w.lo
    UNION ALL
    SELECT start_offset, past FROM packed_commits
    WHERE stream_id = w.stream_id AND segment_id = w.segment_id AND start_offset >= w.lo) r) r
        WHERE r.before <> r.start_offset ORDER BY r.start_offset LIMIT 1) d ON w.broken
)
SELECT w.word || CASE
           WHEN w.lo IS NULL THEN 'missing'
           WHEN w.broken AND w.before < w.start_offset THEN 'missing'
           WHEN w.broken THEN 'twice'
           WHEN w.hi > w.ends THEN 'beyond_tail'
           WHEN w.hi < w.ends THEN 'missing'
           WHEN w.lo > greatest(w.kept_from, w.since) THEN 'missing'
           ELSE 'below_head' END AS kind,
       s.stream_name AS stream, NULL AS reader_group, w.segment_id AS segment,
       CASE WHEN w.lo IS NULL THEN greatest(w.kept_from, least(w.since, w.ends - 1))
            WHEN w.broken THEN least(w.before, w.start_offset)
            WHEN w.hi <> w.ends THEN least(w.hi, w.ends)
            WHEN w.lo > greatest(w.kept_from, w.since) THEN greatest(w.kept_from, w.since)
            ELSE w.lo END AS a,
       CASE WHEN w.lo IS NULL THEN w.ends
            WHEN w.broken THEN greatest(w.before, w.start_offset)
            WHEN w.hi <> w.ends THEN greatest(w.hi, w.ends)
            WHEN w.lo > greatest(w.kept_from, w.since) THEN w.lo
            ELSE w.first_past END AS b, NULL AS name
FROM said w JOIN stream s USING (stream_id)"""
)


def all_commits(connection: Connection) -> list[Found]:
    """Return the segments whose commits do not have each offset once. Each table is summed by itself, so that several processes read it; first over all segments, as mostly nothing is wrong."""
    result = connection.execute(ALL_COMMITS)
    return [Found._make(row) for row in result]


ALL_FILES = text(
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
), held AS MATERIALIZED (
    SELECT coalesce(bool_and(CASE WHEN f.start_offset IS NULL THEN k.ends <= k.kept_from
            ELSE (f.start_offset <= k.kept_from OR k.ends <= k.kept_from)
                 AND f.past > k.kept_from END), true)
        AND coalesce(sum(hashint8extended(k.ends, hashint8extended(k.segment_id, k.stream_id))::numeric
        - hashint8extended(f.start_offset, hashint8extended(k.segment_id, k.stream_id))), 0) = coalesce((
            SELECT sum(hashint8extended(past, hashint8extended(segment_id, stream_id)))
    - sum(hashint8extended(start_offset, hashint8extended(segment_id, stream_id))) AS whole
            FROM (SELECT *, start_offset + events AS past FROM data_file) r), 0) AS held
    FROM kept k LEFT JOIN LATERAL (
        SELECT start_offset, start_offset + events AS past FROM data_file r
        WHERE r.stream_id = k.stream_id AND r.segment_id = k.segment_id
        ORDER BY start_offset LIMIT 1) f ON true
), looked AS (SELECT k.*, 0::bigint AS since FROM kept k), have AS (
    SELECT stream_id, segment_id, lo, hi, first_past,
           whole <> hashint8extended(hi, 0)::numeric - hashint8extended(lo, 0) AS broken
    FROM (SELECT stream_id, segment_id, min(past) AS first_past, min(start_offset) AS lo, max(past) AS hi,
    sum(hashint8extended(past, 0)) - sum(hashint8extended(start_offset, 0)) AS whole
          FROM (SELECT *, start_offset + events AS past FROM data_file) r
          GROUP BY stream_id, segment_id) r
), wrong AS (SELECT l.*, h.lo, h.hi, h.first_past, h.broken
    FROM looked l LEFT JOIN have h USING (stream_id, segment_id)
    WHERE CASE WHEN h.lo IS NULL THEN l.ends > l.kept_from
        ELSE h.broken OR h.hi <> l.ends
             OR h.lo > greatest(l.kept_from, l.since) AND l.ends > l.kept_from
             OR h.first_past <= l.kept_from END AND NOT (SELECT held FROM held) LIMIT 100), said AS (
    SELECT w.*, 'file_' AS word, d.before, d.start_offset
    FROM wrong w LEFT JOIN LATERAL (
        SELECT * FROM (SELECT r.start_offset, lag(r.past) OVER (ORDER BY r.start_offset) AS before
                       FROM (SELECT start_offset, start_offset + events AS past FROM data_file
    WHERE stream_id = w.stream_id AND segment_id = w.segment_id AND start_offset >= w.lo) r) r
        WHERE r.before <> r.start_offset ORDER BY r.start_offset LIMIT 1) d ON w.broken
)
SELECT w.word || CASE
           WHEN w.lo IS NULL THEN 'missing'
           WHEN w.broken AND w.before < w.start_offset THEN 'missing'
           WHEN w.broken THEN 'twice'
           WHEN w.hi > w.ends THEN 'beyond_tail'
           WHEN w.hi < w.ends THEN 'missing'
           WHEN w.lo > greatest(w.kept_from, w.since) THEN 'missing'
           ELSE 'below_head' END AS kind,
       s.stream_name AS stream, NULL AS reader_group, w.segment_id AS segment,
       CASE WHEN w.lo IS NULL THEN greatest(w.kept_from, least(w.since, w.ends - 1))
            WHEN w.broken THEN least(w.before, w.start_offset)
            WHEN w.hi <> w.ends THEN least(w.hi, w.ends)
            WHEN w.lo > greatest(w.kept_from, w.since) THEN greatest(w.kept_from, w.since)
            ELSE w.lo END AS a,
       CASE WHEN w.lo IS NULL THEN w.ends
            WHEN w.broken THEN greatest(w.before, w.start_offset)
            WHEN w.hi <> w.ends THEN greatest(w.hi, w.ends)
            WHEN w.lo > greatest(w.kept_from, w.since) THEN w.lo
            ELSE w.first_past END AS b, NULL AS name
FROM said w JOIN stream s USING (stream_id)"""
)


def all_files(connection: Connection) -> list[Found]:
    """Return the segments whose files do not have each offset once."""
    result = connection.execute(ALL_FILES)
    return [Found._make(row) for row in result]


NEW_COMMITS = text(
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
), proven AS MATERIALIZED (
    SELECT s.stream_id, coalesce(a.clock, -1) AS clock, s.last_clock
    FROM stream s LEFT JOIN audited_stream a USING (stream_id) WHERE s.state <> 'deleted'
), fresh AS (
    SELECT i.stream_id, i.segment_id, min(i.start_offset) AS since
    FROM proven p CROSS JOIN LATERAL (
        SELECT t.stream_id, t.segment_id, t.start_offset FROM time_index t
        WHERE t.stream_id = p.stream_id AND t.clock > p.clock
        UNION ALL
        SELECT c.stream_id, c.segment_id, c.start_offset FROM packed_commits c
        WHERE c.stream_id = p.stream_id AND c.last_clock > p.clock) i
    WHERE p.last_clock > p.clock GROUP BY i.stream_id, i.segment_id
), looked AS MATERIALIZED (
    SELECT k.*, coalesce(f.since, k.ends) AS since
    FROM kept k LEFT JOIN fresh f USING (stream_id, segment_id)
), have AS (
    SELECT stream_id, segment_id, lo, hi, NULL::bigint AS first_past,
           whole <> hashint8extended(hi, 0)::numeric - hashint8extended(lo, 0) AS broken
    FROM (SELECT w.stream_id, w.segment_id, min(start_offset) AS lo, max(past) AS hi,
    sum(hashint8extended(past, 0)) - sum(hashint8extended(start_offset, 0)) AS whole
          FROM (SELECT l.*, coalesce(greatest(
                    (SELECT max(b.start_offset) FROM time_index b WHERE b.stream_id = l.stream_id
                       AND b.segment_id = l.segment_id AND b.start_offset <= l.since),
                    (SELECT max(b.start_offset) FROM packed_commits b
                     WHERE b.stream_id = l.stream_id AND b.segment_id = l.segment_id
                       AND b.start_offset <= l.since)), 0) AS lo
                FROM looked l) w
          CROSS JOIN LATERAL (SELECT start_offset, start_offset + events AS past FROM time_index
    WHERE stream_id = w.stream_id AND segment_id = w.segment_id AND start_offset >= w.lo
    UNION ALL
    SELECT start_offset, past FROM packed_commits
    WHERE stream_id = w.stream_id AND segment_id = w.segment_id AND start_offset >= w.lo) r GROUP BY w.stream_id, w.segment_id) r
), wrong AS (SELECT l.*, h.lo, h.hi, h.first_past, h.broken
    FROM looked l LEFT JOIN have h USING (stream_id, segment_id)
    WHERE CASE WHEN h.lo IS NULL THEN l.ends > l.kept_from
        ELSE h.broken OR h.hi <> l.ends
             OR h.lo > greatest(l.kept_from, l.since) AND l.ends > l.kept_from
             OR h.first_past <= l.kept_from END LIMIT 100), said AS (
    SELECT w.*, 'commit_' AS word, d.before, d.start_offset
    FROM wrong w LEFT JOIN LATERAL (
        SELECT * FROM (SELECT r.start_offset, lag(r.past) OVER (ORDER BY r.start_offset) AS before
                       FROM (SELECT start_offset, start_offset + events AS past FROM time_index
    WHERE stream_id = w.stream_id AND segment_id = w.segment_id AND start_offset >= w.lo
    UNION ALL
    SELECT start_offset, past FROM packed_commits
    WHERE stream_id = w.stream_id AND segment_id = w.segment_id AND start_offset >= w.lo) r) r
        WHERE r.before <> r.start_offset ORDER BY r.start_offset LIMIT 1) d ON w.broken
)
SELECT w.word || CASE
           WHEN w.lo IS NULL THEN 'missing'
           WHEN w.broken AND w.before < w.start_offset THEN 'missing'
           WHEN w.broken THEN 'twice'
           WHEN w.hi > w.ends THEN 'beyond_tail'
           WHEN w.hi < w.ends THEN 'missing'
           WHEN w.lo > greatest(w.kept_from, w.since) THEN 'missing'
           ELSE 'below_head' END AS kind,
       s.stream_name AS stream, NULL AS reader_group, w.segment_id AS segment,
       CASE WHEN w.lo IS NULL THEN greatest(w.kept_from, least(w.since, w.ends - 1))
            WHEN w.broken THEN least(w.before, w.start_offset)
            WHEN w.hi <> w.ends THEN least(w.hi, w.ends)
            WHEN w.lo > greatest(w.kept_from, w.since) THEN greatest(w.kept_from, w.since)
            ELSE w.lo END AS a,
       CASE WHEN w.lo IS NULL THEN w.ends
            WHEN w.broken THEN greatest(w.before, w.start_offset)
            WHEN w.hi <> w.ends THEN greatest(w.hi, w.ends)
            WHEN w.lo > greatest(w.kept_from, w.since) THEN w.lo
            ELSE w.first_past END AS b, NULL AS name
FROM said w JOIN stream s USING (stream_id)"""
)


def new_commits(connection: Connection) -> list[Found]:
    """Return the segments whose commits of late do not have each offset once."""
    result = connection.execute(NEW_COMMITS)
    return [Found._make(row) for row in result]


NEW_FILES = text(
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
), proven AS MATERIALIZED (
    SELECT s.stream_id, coalesce(a.clock, -1) AS clock, s.last_clock
    FROM stream s LEFT JOIN audited_stream a USING (stream_id) WHERE s.state <> 'deleted'
), fresh AS (
    SELECT i.stream_id, i.segment_id, min(i.start_offset) AS since
    FROM proven p CROSS JOIN LATERAL (
        SELECT t.stream_id, t.segment_id, t.start_offset FROM time_index t
        WHERE t.stream_id = p.stream_id AND t.clock > p.clock
        UNION ALL
        SELECT c.stream_id, c.segment_id, c.start_offset FROM packed_commits c
        WHERE c.stream_id = p.stream_id AND c.last_clock > p.clock) i
    WHERE p.last_clock > p.clock GROUP BY i.stream_id, i.segment_id
), looked AS MATERIALIZED (
    SELECT k.*, coalesce(f.since, k.ends) AS since
    FROM kept k LEFT JOIN fresh f USING (stream_id, segment_id)
), have AS (
    SELECT stream_id, segment_id, lo, hi, first_past,
           whole <> hashint8extended(hi, 0)::numeric - hashint8extended(lo, 0) AS broken
    FROM (SELECT w.stream_id, w.segment_id, min(past) AS first_past, min(start_offset) AS lo, max(past) AS hi,
    sum(hashint8extended(past, 0)) - sum(hashint8extended(start_offset, 0)) AS whole
          FROM (SELECT l.*, coalesce((
                    SELECT max(b.start_offset) FROM data_file b WHERE b.stream_id = l.stream_id
                      AND b.segment_id = l.segment_id AND b.start_offset <= l.since), 0) AS lo
                FROM looked l) w
          CROSS JOIN LATERAL (SELECT start_offset, start_offset + events AS past FROM data_file
    WHERE stream_id = w.stream_id AND segment_id = w.segment_id AND start_offset >= w.lo) r GROUP BY w.stream_id, w.segment_id) r
), wrong AS (SELECT l.*, h.lo, h.hi, h.first_past, h.broken
    FROM looked l LEFT JOIN have h USING (stream_id, segment_id)
    WHERE CASE WHEN h.lo IS NULL THEN l.ends > l.kept_from
        ELSE h.broken OR h.hi <> l.ends
             OR h.lo > greatest(l.kept_from, l.since) AND l.ends > l.kept_from
             OR h.first_past <= l.kept_from END LIMIT 100), said AS (
    SELECT w.*, 'file_' AS word, d.before, d.start_offset
    FROM wrong w LEFT JOIN LATERAL (
        SELECT * FROM (SELECT r.start_offset, lag(r.past) OVER (ORDER BY r.start_offset) AS before
                       FROM (SELECT start_offset, start_offset + events AS past FROM data_file
    WHERE stream_id = w.stream_id AND segment_id = w.segment_id AND start_offset >= w.lo) r) r
        WHERE r.before <> r.start_offset ORDER BY r.start_offset LIMIT 1) d ON w.broken
)
SELECT w.word || CASE
           WHEN w.lo IS NULL THEN 'missing'
           WHEN w.broken AND w.before < w.start_offset THEN 'missing'
           WHEN w.broken THEN 'twice'
           WHEN w.hi > w.ends THEN 'beyond_tail'
           WHEN w.hi < w.ends THEN 'missing'
           WHEN w.lo > greatest(w.kept_from, w.since) THEN 'missing'
           ELSE 'below_head' END AS kind,
       s.stream_name AS stream, NULL AS reader_group, w.segment_id AS segment,
       CASE WHEN w.lo IS NULL THEN greatest(w.kept_from, least(w.since, w.ends - 1))
            WHEN w.broken THEN least(w.before, w.start_offset)
            WHEN w.hi <> w.ends THEN least(w.hi, w.ends)
            WHEN w.lo > greatest(w.kept_from, w.since) THEN greatest(w.kept_from, w.since)
            ELSE w.lo END AS a,
       CASE WHEN w.lo IS NULL THEN w.ends
            WHEN w.broken THEN greatest(w.before, w.start_offset)
            WHEN w.hi <> w.ends THEN greatest(w.hi, w.ends)
            WHEN w.lo > greatest(w.kept_from, w.since) THEN w.lo
            ELSE w.first_past END AS b, NULL AS name
FROM said w JOIN stream s USING (stream_id)"""
)


def new_files(connection: Connection) -> list[Found]:
    """Return the segments whose files of late do not have each offset once."""
    result = connection.execute(NEW_FILES)
    return [Found._make(row) for row in result]


ALL_APPENDS = text(
    """WITH truncated AS NOT MATERIALIZED (
    SELECT s.stream_id, coalesce(max(t.clock), -1) AS clock
    FROM stream s LEFT JOIN truncation t USING (stream_id)
    WHERE s.state <> 'deleted' GROUP BY s.stream_id
), held AS MATERIALIZED (
    SELECT coalesce((
        SELECT sum(weight) FROM (
            SELECT sum((hashint8extended(e.transaction_number, hashint8extended(e.clock, b.stream_id))
                & 2147483647) * e.events) AS weight FROM time_index e JOIN truncated b ON b.stream_id = e.stream_id
            WHERE e.clock > b.clock
            UNION ALL
            SELECT sum((hashint8extended(e.transaction_number, hashint8extended(e.clock, b.stream_id))
                & 2147483647) * e.events) AS weight
            FROM packed_commits c CROSS JOIN LATERAL (SELECT n.number AS transaction_number, n.clock,
            coalesce(lead(n.first) OVER (ORDER BY n.first), c.past) - n.first AS events
        FROM unnest(c.offsets, c.clocks, c.transaction_numbers) AS n (first, clock, number)) e
            JOIN truncated b ON b.stream_id = c.stream_id WHERE e.clock > b.clock) e), 0)
    = coalesce((
        SELECT sum((hashint8extended(e.transaction_number, hashint8extended(e.clock, b.stream_id))
                & 2147483647) * e.events) AS weight FROM transaction e JOIN truncated b ON b.stream_id = e.stream_id
        WHERE e.state = 'committed' AND e.clock > b.clock), 0) AS held
), entry AS (
    SELECT stream_id, sum(events) AS events, sum(weight) AS weight
    FROM (SELECT b.stream_id, sum(e.events) AS events, sum((hashint8extended(e.transaction_number, e.clock) & 16777215)
               * e.events) AS weight
          FROM time_index e JOIN truncated b ON b.stream_id = e.stream_id
          WHERE e.clock > b.clock GROUP BY b.stream_id
          UNION ALL
          SELECT b.stream_id, sum(e.events) AS events, sum((hashint8extended(e.transaction_number, e.clock) & 16777215)
               * e.events) AS weight
          FROM packed_commits c CROSS JOIN LATERAL (SELECT n.number AS transaction_number, n.clock,
            coalesce(lead(n.first) OVER (ORDER BY n.first), c.past) - n.first AS events
        FROM unnest(c.offsets, c.clocks, c.transaction_numbers) AS n (first, clock, number)) e
          JOIN truncated b ON b.stream_id = c.stream_id
          WHERE e.clock > b.clock GROUP BY b.stream_id) e
    GROUP BY stream_id
), append AS (
    SELECT b.stream_id, sum(e.events) AS events, sum((hashint8extended(e.transaction_number, e.clock) & 16777215)
               * e.events) AS weight
    FROM transaction e JOIN truncated b ON b.stream_id = e.stream_id
    WHERE e.state = 'committed' AND e.clock > b.clock GROUP BY b.stream_id
), wrong AS (SELECT b.stream_id, b.clock FROM truncated b LEFT JOIN entry e USING (stream_id)
    LEFT JOIN append x USING (stream_id)
    WHERE (coalesce(e.weight, 0) <> coalesce(x.weight, 0)
        OR coalesce(e.events, 0) <> coalesce(x.events, 0)) AND NOT (SELECT held FROM held) LIMIT 20)
SELECT CASE WHEN d.recorded IS NULL THEN 'commit_unknown' ELSE 'commit_not_whole' END AS kind,
       s.stream_name AS stream, NULL AS reader_group, NULL::bigint AS segment,
       d.found AS a, d.recorded AS b, d.transaction_number::text AS name
FROM wrong w JOIN stream s USING (stream_id) CROSS JOIN LATERAL (
    SELECT transaction_number, coalesce(e.events, 0) AS found, x.events AS recorded
    FROM (SELECT transaction_number, clock, sum(events) AS events
          FROM (SELECT t.transaction_number, t.clock, t.events FROM time_index t
                WHERE t.stream_id = w.stream_id
                UNION ALL
                SELECT e.* FROM packed_commits c CROSS JOIN LATERAL (SELECT n.number AS transaction_number, n.clock,
            coalesce(lead(n.first) OVER (ORDER BY n.first), c.past) - n.first AS events
        FROM unnest(c.offsets, c.clocks, c.transaction_numbers) AS n (first, clock, number)) e
                WHERE c.stream_id = w.stream_id) e
          WHERE e.clock > w.clock GROUP BY transaction_number, clock) e
    FULL JOIN (SELECT transaction_number, clock, events FROM transaction
               WHERE stream_id = w.stream_id AND state = 'committed' AND clock > w.clock) x
        USING (transaction_number, clock)
    WHERE coalesce(e.events, 0) <> coalesce(x.events, -1) ORDER BY 1 LIMIT 5) d"""
)


def all_appends(connection: Connection) -> list[Found]:
    """Return appends that do not have what they say, since the last truncation: before it, entries may be pruned."""
    result = connection.execute(ALL_APPENDS)
    return [Found._make(row) for row in result]


NEW_APPENDS = text(
    """WITH truncated AS NOT MATERIALIZED (
    SELECT s.stream_id, greatest(coalesce(max(t.clock), -1), coalesce(max(a.clock), -1)) AS clock
    FROM stream s LEFT JOIN truncation t USING (stream_id)
    LEFT JOIN audited_stream a USING (stream_id)
    WHERE s.state <> 'deleted' AND s.last_clock > coalesce(a.clock, -1) GROUP BY s.stream_id
), entry AS (
    SELECT b.stream_id, sum(e.events) AS events, sum((hashint8extended(e.transaction_number, e.clock) & 16777215)
               * e.events) AS weight
    FROM truncated b CROSS JOIN LATERAL (
        SELECT t.transaction_number, t.clock, t.events FROM time_index t
        WHERE t.stream_id = b.stream_id AND t.clock > b.clock
        UNION ALL
        SELECT e.* FROM packed_commits c CROSS JOIN LATERAL (SELECT n.number AS transaction_number, n.clock,
            coalesce(lead(n.first) OVER (ORDER BY n.first), c.past) - n.first AS events
        FROM unnest(c.offsets, c.clocks, c.transaction_numbers) AS n (first, clock, number)) e
        WHERE c.stream_id = b.stream_id AND c.last_clock > b.clock) e
    WHERE e.clock > b.clock GROUP BY b.stream_id
), append AS (
    SELECT b.stream_id, sum(e.events) AS events, sum((hashint8extended(e.transaction_number, e.clock) & 16777215)
               * e.events) AS weight
    FROM truncated b JOIN stream s USING (stream_id) CROSS JOIN LATERAL (
        SELECT * FROM transaction x WHERE x.stream_name = s.stream_name
          AND ('epoch'::timestamp + x.clock * interval '1 microsecond') AT TIME ZONE 'UTC'
              >= ('epoch'::timestamp + (b.clock - 1) * interval '1 microsecond')
                 AT TIME ZONE 'UTC'
          AND x.clock > b.clock OFFSET 0) e
    WHERE e.stream_id = b.stream_id AND e.state = 'committed' GROUP BY b.stream_id
), wrong AS (SELECT b.stream_id, b.clock FROM truncated b LEFT JOIN entry e USING (stream_id)
    LEFT JOIN append x USING (stream_id)
    WHERE (coalesce(e.weight, 0) <> coalesce(x.weight, 0)
        OR coalesce(e.events, 0) <> coalesce(x.events, 0)) LIMIT 20)
SELECT CASE WHEN d.recorded IS NULL THEN 'commit_unknown' ELSE 'commit_not_whole' END AS kind,
       s.stream_name AS stream, NULL AS reader_group, NULL::bigint AS segment,
       d.found AS a, d.recorded AS b, d.transaction_number::text AS name
FROM wrong w JOIN stream s USING (stream_id) CROSS JOIN LATERAL (
    SELECT transaction_number, coalesce(e.events, 0) AS found, x.events AS recorded
    FROM (SELECT transaction_number, clock, sum(events) AS events
          FROM (SELECT t.transaction_number, t.clock, t.events FROM time_index t
                WHERE t.stream_id = w.stream_id
                UNION ALL
                SELECT e.* FROM packed_commits c CROSS JOIN LATERAL (SELECT n.number AS transaction_number, n.clock,
            coalesce(lead(n.first) OVER (ORDER BY n.first), c.past) - n.first AS events
        FROM unnest(c.offsets, c.clocks, c.transaction_numbers) AS n (first, clock, number)) e
                WHERE c.stream_id = w.stream_id) e
          WHERE e.clock > w.clock GROUP BY transaction_number, clock) e
    FULL JOIN (SELECT transaction_number, clock, events FROM transaction
               WHERE stream_id = w.stream_id AND state = 'committed' AND clock > w.clock) x
        USING (transaction_number, clock)
    WHERE coalesce(e.events, 0) <> coalesce(x.events, -1) ORDER BY 1 LIMIT 5) d"""
)


def new_appends(connection: Connection) -> list[Found]:
    """Return appends of late that do not have what they say."""
    result = connection.execute(NEW_APPENDS)
    return [Found._make(row) for row in result]


CLOCKS_IN_ORDER = text(
    """WITH proven AS MATERIALIZED (
    SELECT s.stream_id, s.stream_name, s.last_clock, coalesce(a.clock, -1) AS clock
    FROM stream s LEFT JOIN audited_stream a USING (stream_id)
    WHERE s.state <> 'deleted' AND s.last_clock > coalesce(a.clock, -1))
SELECT 'clock_not_later' AS kind, w.stream_name AS stream, NULL AS reader_group,
       w.segment_id AS segment, w.start_offset AS a, w.clock AS b, NULL AS name
FROM (SELECT t.*, p.stream_name, p.last_clock, lag(t.clock) OVER (
          PARTITION BY t.stream_id, t.segment_id ORDER BY t.start_offset) AS before
      FROM proven p CROSS JOIN LATERAL (
          SELECT i.stream_id, i.segment_id, i.start_offset, i.clock FROM time_index i
          WHERE i.stream_id = p.stream_id AND i.clock > p.clock OFFSET 0) t) w
WHERE w.clock <= w.before OR w.clock > w.last_clock LIMIT 20"""
)


def clocks_in_order(connection: Connection) -> list[Found]:
    """Return commits whose clock is not later than the one before in their segment, or is later than the stream. Of what is proven this is not asked again: it is the only question for which all rows would be sorted."""
    result = connection.execute(CLOCKS_IN_ORDER)
    return [Found._make(row) for row in result]


TILES = text(
    """SELECT 'keys_without_segment' AS kind, s.stream_name AS stream, NULL AS reader_group,
       w.segment_id AS segment, NULL::bigint AS a, NULL::bigint AS b,
       coalesce(w.before, 0)::text AS name
FROM (SELECT t.stream_id, t.segment_id, g.key_low, g.key_high,
             lag(g.key_high) OVER ends AS before, lead(g.key_low) OVER ends AS after
      FROM segment_tail t JOIN segment g USING (stream_id, segment_id)
      WINDOW ends AS (PARTITION BY t.stream_id ORDER BY g.key_low)) w
JOIN stream s USING (stream_id)
WHERE w.key_low <> coalesce(w.before, 0) OR w.after IS NULL AND w.key_high <> 1 LIMIT 20"""
)


def tiles(connection: Connection) -> list[Found]:
    """Return the active segments that do not begin where the one before ends, or end too early."""
    result = connection.execute(TILES)
    return [Found._make(row) for row in result]


STATES = text(
    """SELECT 'stream_kept' AS kind, s.stream_name AS stream, NULL AS reader_group,
       NULL::bigint AS segment, count(*) AS a, NULL::bigint AS b, NULL AS name
FROM stream s JOIN segment g USING (stream_id) WHERE s.state = 'deleted' GROUP BY s.stream_name
UNION ALL
SELECT 'proven_beyond', s.stream_name, NULL, NULL, a.clock, s.last_clock, NULL
FROM audited_stream a JOIN stream s USING (stream_id)
WHERE s.state <> 'deleted' AND a.clock > s.last_clock LIMIT 20"""
)


def states(connection: Connection) -> list[Found]:
    """Return rows by which an audit would look at less."""
    result = connection.execute(STATES)
    return [Found._make(row) for row in result]


GARBAGE = text(
    """WITH file AS (
    SELECT s.stream_name, g.path FROM data_file f JOIN stream s USING (stream_id)
    JOIN garbage g ON g.root = '' AND g.path = f.path
    UNION ALL
    SELECT s.stream_name, g.path
    FROM (SELECT stream_id, regexp_replace(path, '[^/]+$', '') AS folder
          FROM data_file GROUP BY 1, 2) f
    JOIN stream s USING (stream_id)
    JOIN garbage g ON g.root = '' AND starts_with(f.folder, g.path)
        AND right(g.path, 1) = '/' AND split_part(g.path, '/', 1) = split_part(f.folder, '/', 1)
    UNION ALL
    SELECT o.name, g.path FROM adjunct_file a JOIN adjunct_store o USING (store_id)
    JOIN garbage g ON g.root = '' AND (g.path = a.path
        OR right(g.path, 1) = '/' AND starts_with(a.path, g.path))
    UNION ALL
    SELECT o.group_name, g.path FROM parquet_output o
    JOIN garbage g ON g.root = o.root AND g.path = o.path
)
SELECT 'garbage_is_needed' AS kind, f.stream_name AS stream, NULL AS reader_group,
       NULL::bigint AS segment, NULL::bigint AS a, NULL::bigint AS b, f.path AS name
FROM file f GROUP BY f.stream_name, f.path LIMIT 20"""
)


def garbage(connection: Connection) -> list[Found]:
    """Return garbage, which may be deleted, that is needed: a file, or a folder, of a stream, a store or an output. A file lies in a folder of the stream's."""
    result = connection.execute(GARBAGE)
    return [Found._make(row) for row in result]
