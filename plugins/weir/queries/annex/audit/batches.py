"""What the audit asks of batches: they follow one another without gap or overlap, are what their groups were given, and each of their outputs counts once. Batches are kept for `job_history`. Made by `make queries` from sql/annex/audit/queries/batches.sql."""

from datetime import datetime

from sqlalchemy import Connection, text

from weir.annex.audit.sentences import Found

ALL_INPUTS = text(
    """WITH range AS (SELECT * FROM batch_input), input AS (
    SELECT i.*, d.from_offset AS first, d.to_offset AS past, d.first_batch
    FROM range i LEFT JOIN delivered_range d
        ON d.group_id = i.group_id AND d.stream_id = i.stream_id AND d.segment_id = i.segment_id
        AND i.batch_id BETWEEN d.first_batch AND d.last_batch
        AND i.from_offset >= d.from_offset AND i.from_offset < d.to_offset
), summed AS (
    SELECT group_id, stream_id, segment_id, first, past, first_batch,
           min(from_offset) AS lo, max(to_offset) AS hi, min(batch_id) AS batch_id,
           sum(to_offset - from_offset) AS size,
           sum(hashint8extended(to_offset, 0)) - sum(hashint8extended(from_offset, 0)) AS whole
    FROM input GROUP BY group_id, stream_id, segment_id, first, past, first_batch
), have AS (
    SELECT *, whole <> hashint8extended(hi, 0)::numeric - hashint8extended(lo, 0) AS broken
    FROM summed
)
SELECT CASE WHEN h.first IS NULL THEN 'batch_not_delivered'
            WHEN h.size > h.hi - h.lo THEN 'batches_overlap' ELSE 'batch_missing' END AS kind,
       s.stream_name AS stream, g.name AS reader_group, h.segment_id AS segment,
       CASE WHEN h.hi < h.past AND NOT h.broken THEN h.hi
            WHEN h.batch_id = h.first_batch AND h.lo > h.first THEN h.first ELSE h.lo END AS a,
       CASE WHEN h.hi < h.past AND NOT h.broken THEN h.past
            WHEN h.batch_id = h.first_batch AND h.lo > h.first THEN h.lo ELSE h.hi END AS b,
       h.batch_id::text AS name
FROM have h JOIN stream s USING (stream_id) JOIN reader_group g USING (group_id)
WHERE s.state <> 'deleted' AND (
    h.first IS NULL OR h.broken OR h.size <> h.hi - h.lo
    OR h.hi <> h.past OR h.batch_id = h.first_batch AND h.lo <> h.first)
LIMIT 100"""
)


def all_inputs(connection: Connection) -> list[Found]:
    """Return what batches read that their groups were not given, or were given otherwise."""
    result = connection.execute(ALL_INPUTS)
    return [Found._make(row) for row in result]


NEW_INPUTS = text(
    """WITH range AS (
    SELECT r.group_id, r.batch_id, i.* FROM (SELECT r.* FROM reader_group g CROSS JOIN LATERAL (
        SELECT * FROM reader_batch b WHERE b.group_name = g.name
          AND b.committed_at > CAST(:since AS timestamptz)) r
     WHERE r.group_id = g.group_id AND r.state = 'committed') r CROSS JOIN LATERAL (SELECT i.stream AS stream_id, i.segment AS segment_id, i."from" AS from_offset,
            i."to" AS to_offset
     FROM jsonb_to_recordset(r.bounds) AS i (stream bigint, segment bigint, "from" bigint,
        "to" bigint)
     WHERE i."to" > i."from") i
), input AS (
    SELECT i.*, d.from_offset AS first, d.to_offset AS past, d.first_batch
    FROM range i LEFT JOIN delivered_range d
        ON d.group_id = i.group_id AND d.stream_id = i.stream_id AND d.segment_id = i.segment_id
        AND i.batch_id BETWEEN d.first_batch AND d.last_batch
        AND i.from_offset >= d.from_offset AND i.from_offset < d.to_offset
), summed AS (
    SELECT group_id, stream_id, segment_id, first, past, first_batch,
           min(from_offset) AS lo, max(to_offset) AS hi, min(batch_id) AS batch_id,
           sum(to_offset - from_offset) AS size,
           sum(hashint8extended(to_offset, 0)) - sum(hashint8extended(from_offset, 0)) AS whole
    FROM input GROUP BY group_id, stream_id, segment_id, first, past, first_batch
), have AS (
    SELECT *, whole <> hashint8extended(hi, 0)::numeric - hashint8extended(lo, 0) AS broken
    FROM summed
)
SELECT CASE WHEN h.first IS NULL THEN 'batch_not_delivered'
            WHEN h.size > h.hi - h.lo THEN 'batches_overlap' ELSE 'batch_missing' END AS kind,
       s.stream_name AS stream, g.name AS reader_group, h.segment_id AS segment,
       CASE WHEN h.hi < h.past AND NOT h.broken THEN h.hi
            WHEN h.batch_id = h.first_batch AND h.lo > h.first THEN h.first ELSE h.lo END AS a,
       CASE WHEN h.hi < h.past AND NOT h.broken THEN h.past
            WHEN h.batch_id = h.first_batch AND h.lo > h.first THEN h.lo ELSE h.hi END AS b,
       h.batch_id::text AS name
FROM have h JOIN stream s USING (stream_id) JOIN reader_group g USING (group_id)
WHERE s.state <> 'deleted' AND (
    h.first IS NULL OR h.broken OR h.size <> h.hi - h.lo
    OR h.hi <> h.past OR h.batch_id = h.first_batch AND h.lo <> h.first)
LIMIT 100"""
)


def new_inputs(connection: Connection, *, since: datetime) -> list[Found]:
    """Return the same of the batches of late, by what they say themselves."""
    result = connection.execute(NEW_INPUTS, {"since": since})
    return [Found._make(row) for row in result]


GONE = text(
    """SELECT DISTINCT 'batch_gone' AS kind, s.stream_name AS stream, g.name AS reader_group,
       d.segment_id AS segment, d.from_offset AS a, d.to_offset AS b, e.batch_id::text AS name
FROM delivered_range d JOIN reader_group g USING (group_id)
JOIN stream s ON s.stream_id = d.stream_id AND s.state <> 'deleted'
CROSS JOIN LATERAL (VALUES (d.first_batch, d.first_at), (d.last_batch, d.last_at))
    AS e (batch_id, at)
LEFT JOIN reader_batch r ON r.group_id = d.group_id AND r.batch_id = e.batch_id
    AND r.state = 'committed'
CROSS JOIN installation n
WHERE r.group_id IS NULL AND e.at >= coalesce(n.batches_pruned, '-infinity')
LIMIT 20"""
)


def gone(connection: Connection) -> list[Found]:
    """Return the batches that began and ended what a group was given, unless they may have been pruned."""
    result = connection.execute(GONE)
    return [Found._make(row) for row in result]


INPUTS_AS_BOUNDS = text(
    """SELECT 'batch_input_differs' AS kind, NULL AS stream, g.name AS reader_group,
       NULL::bigint AS segment, coalesce(a.n, 0) AS a, coalesce(b.n, 0) AS b, NULL AS name
FROM reader_group g
LEFT JOIN (SELECT group_id, count(*) AS n, sum(hashint8extended(batch_id, hashint8extended(stream_id, hashint8extended(segment_id,
               hashint8extended(from_offset, to_offset))))) AS whole
           FROM batch_input GROUP BY group_id) a USING (group_id)
LEFT JOIN (SELECT r.group_id, count(*) AS n, sum(hashint8extended(batch_id, hashint8extended(stream_id, hashint8extended(segment_id,
               hashint8extended(from_offset, to_offset))))) AS whole
           FROM reader_batch r CROSS JOIN LATERAL (SELECT i.stream AS stream_id, i.segment AS segment_id, i."from" AS from_offset,
            i."to" AS to_offset
     FROM jsonb_to_recordset(r.bounds) AS i (stream bigint, segment bigint, "from" bigint,
        "to" bigint)
     WHERE i."to" > i."from") i
           WHERE r.state = 'committed' GROUP BY r.group_id) b USING (group_id)
WHERE a.whole IS DISTINCT FROM b.whole LIMIT 20"""
)


def inputs_as_bounds(connection: Connection) -> list[Found]:
    """Return the groups whose ranges by batch and whose batches differ, in either direction: by a sum per group that differs if any row does."""
    result = connection.execute(INPUTS_AS_BOUNDS)
    return [Found._make(row) for row in result]


ALL_OUTPUTS = text(
    """WITH named AS (
    SELECT r.group_id, r.group_name, r.batch_id, o
    FROM reader_batch r CROSS JOIN LATERAL jsonb_array_elements(r.outputs) o
    WHERE r.state = 'committed'
), folder AS (
    SELECT p.* FROM reader_group g JOIN parquet_output p ON p.group_name = g.name
        AND p.group_id = g.group_id
)
SELECT 'output_twice' AS kind, NULL AS stream, f.group_name AS reader_group,
       NULL::bigint AS segment, f.batch_id AS a, count(*) AS b, f.output AS name
FROM folder f GROUP BY f.group_name, f.output, f.batch_id HAVING count(*) > 1
UNION ALL
SELECT 'output_missing', NULL, n.group_name, NULL, n.batch_id, NULL, n.o ->> 'path'
FROM named n LEFT JOIN folder f ON f.group_id = n.group_id AND f.batch_id = n.batch_id
    AND f.output = n.o ->> 'output' AND f.path = n.o ->> 'path'
WHERE n.o ->> 'kind' = 'parquet' AND f.path IS NULL
UNION ALL
SELECT 'output_unknown', NULL, f.group_name, NULL, f.batch_id, NULL, f.path
FROM folder f JOIN reader_batch r ON r.group_id = f.group_id AND r.batch_id = f.batch_id
WHERE r.state <> 'committed' OR NOT EXISTS (
    SELECT FROM jsonb_array_elements(r.outputs) o WHERE o ->> 'path' = f.path)
UNION ALL
SELECT 'append_missing', s.stream_name, n.group_name, NULL, n.batch_id, NULL,
       n.o ->> 'transaction_number'
FROM named n JOIN stream s ON s.stream_id = (n.o ->> 'stream_id')::bigint
    AND s.state <> 'deleted'
LEFT JOIN transaction t ON t.stream_id = s.stream_id
    AND t.transaction_number = (n.o ->> 'transaction_number')::bigint
WHERE n.o ->> 'kind' = 'stream' AND t.state IS DISTINCT FROM 'committed'
UNION ALL
SELECT 'output_number', NULL, f.group_name, NULL, min(f.number), max(f.number), f.output
FROM folder f GROUP BY f.group_name, f.output
HAVING max(f.number) - min(f.number) + 1 <> count(*)
LIMIT 100"""
)


def all_outputs(connection: Connection) -> list[Found]:
    """Return the outputs that batches name and that do not count once, or the other way round."""
    result = connection.execute(ALL_OUTPUTS)
    return [Found._make(row) for row in result]


NEW_OUTPUTS = text(
    """WITH named AS (
    SELECT r.group_id, r.group_name, r.batch_id, o
    FROM (SELECT r.* FROM reader_group g CROSS JOIN LATERAL (
        SELECT * FROM reader_batch b WHERE b.group_name = g.name
          AND b.committed_at > CAST(:since AS timestamptz)) r
     WHERE r.group_id = g.group_id AND r.state = 'committed') r CROSS JOIN LATERAL jsonb_array_elements(r.outputs) o
), folder AS (
    SELECT p.* FROM reader_group g JOIN parquet_output p ON p.group_name = g.name
        AND p.group_id = g.group_id AND p.committed_at > CAST(:since AS timestamptz)
)
SELECT 'output_twice' AS kind, NULL AS stream, f.group_name AS reader_group,
       NULL::bigint AS segment, f.batch_id AS a, count(*) AS b, f.output AS name
FROM folder f GROUP BY f.group_name, f.output, f.batch_id HAVING count(*) > 1
UNION ALL
SELECT 'output_missing', NULL, n.group_name, NULL, n.batch_id, NULL, n.o ->> 'path'
FROM named n LEFT JOIN folder f ON f.group_id = n.group_id AND f.batch_id = n.batch_id
    AND f.output = n.o ->> 'output' AND f.path = n.o ->> 'path'
WHERE n.o ->> 'kind' = 'parquet' AND f.path IS NULL
UNION ALL
SELECT 'output_unknown', NULL, f.group_name, NULL, f.batch_id, NULL, f.path
FROM folder f JOIN reader_batch r ON r.group_id = f.group_id AND r.batch_id = f.batch_id
WHERE r.state <> 'committed' OR NOT EXISTS (
    SELECT FROM jsonb_array_elements(r.outputs) o WHERE o ->> 'path' = f.path)
UNION ALL
SELECT 'append_missing', s.stream_name, n.group_name, NULL, n.batch_id, NULL,
       n.o ->> 'transaction_number'
FROM named n JOIN stream s ON s.stream_id = (n.o ->> 'stream_id')::bigint
    AND s.state <> 'deleted'
LEFT JOIN transaction t ON t.stream_id = s.stream_id
    AND t.transaction_number = (n.o ->> 'transaction_number')::bigint
WHERE n.o ->> 'kind' = 'stream' AND t.state IS DISTINCT FROM 'committed'
UNION ALL
SELECT 'output_number', NULL, f.group_name, NULL, min(f.number), max(f.number), f.output
FROM folder f GROUP BY f.group_name, f.output
HAVING max(f.number) - min(f.number) + 1 <> count(*)
LIMIT 100"""
)


def new_outputs(connection: Connection, *, since: datetime) -> list[Found]:
    """Return the same of the batches of late."""
    result = connection.execute(NEW_OUTPUTS, {"since": since})
    return [Found._make(row) for row in result]


ALL_APPENDS = text(
    """WITH t AS MATERIALIZED (SELECT t.* FROM transaction t WHERE t.state = 'committed' AND starts_with(t.writer_id, 'group ')
          AND t.batch_id ~ '\\A[0-9]{1,18}\\.[0-9]{1,18}\\Z')
SELECT 'append_unknown' AS kind, t.stream_name AS stream, r.group_name AS reader_group,
       NULL::bigint AS segment, r.batch_id AS a, NULL::bigint AS b,
       t.transaction_number::text AS name
FROM t JOIN reader_batch r ON r.group_id = split_part(t.batch_id, '.', 1)::bigint
    AND r.batch_id = split_part(t.batch_id, '.', 2)::bigint
WHERE r.state <> 'committed' OR NOT r.outputs @> jsonb_build_array(jsonb_build_object(
    'kind', 'stream', 'stream_id', t.stream_id, 'transaction_number', t.transaction_number))
LIMIT 20"""
)


def all_appends(connection: Connection) -> list[Found]:
    """Return appends that say of which group and batch they are, and that this batch does not name."""
    result = connection.execute(ALL_APPENDS)
    return [Found._make(row) for row in result]


NEW_APPENDS = text(
    """WITH t AS MATERIALIZED (
    SELECT t.* FROM stream s JOIN audited_stream a USING (stream_id)
    CROSS JOIN LATERAL (
        SELECT * FROM transaction x WHERE x.stream_name = s.stream_name
          AND ('epoch'::timestamp + x.clock * interval '1 microsecond') AT TIME ZONE 'UTC'
              >= ('epoch'::timestamp + a.clock * interval '1 microsecond') AT TIME ZONE 'UTC'
          AND x.clock > a.clock OFFSET 0) t
    WHERE t.stream_id = s.stream_id AND s.state <> 'deleted' AND s.last_clock > a.clock
        AND t.state = 'committed' AND starts_with(t.writer_id, 'group ')
          AND t.batch_id ~ '\\A[0-9]{1,18}\\.[0-9]{1,18}\\Z')
SELECT 'append_unknown' AS kind, t.stream_name AS stream, r.group_name AS reader_group,
       NULL::bigint AS segment, r.batch_id AS a, NULL::bigint AS b,
       t.transaction_number::text AS name
FROM t JOIN reader_batch r ON r.group_id = split_part(t.batch_id, '.', 1)::bigint
    AND r.batch_id = split_part(t.batch_id, '.', 2)::bigint
WHERE r.state <> 'committed' OR NOT r.outputs @> jsonb_build_array(jsonb_build_object(
    'kind', 'stream', 'stream_id', t.stream_id, 'transaction_number', t.transaction_number))
LIMIT 20"""
)


def new_appends(connection: Connection) -> list[Found]:
    """Return the same of the appends of late."""
    result = connection.execute(NEW_APPENDS)
    return [Found._make(row) for row in result]
