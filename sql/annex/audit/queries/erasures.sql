-- What the audit asks of erasures: each offset without a row is a hole that an erasure declares.
-- fragments: kept.sql
-- import: from weir.annex.audit.sentences import Found

-- name: sums -> many Found
-- Return the holes that are said to be more or less than they are, or lie beside their chunk.
SELECT 'hole_sum' AS kind, s.stream_name AS stream, NULL AS reader_group,
       h.segment_id AS segment, h.chunk * 65536 AS a, h.events AS b, NULL AS name
FROM hole h JOIN stream s USING (stream_id)
WHERE h.events <> (SELECT coalesce(sum(upper(m) - lower(m)), 0) FROM unnest(h.offsets) m)
   OR lower(h.offsets) < 0 OR upper(h.offsets) > 65536 LIMIT 20

-- fragment: not_declared
SELECT 'hole_not_declared' AS kind, s.stream_name AS stream, NULL AS reader_group,
       NULL::bigint AS segment, n.holes AS a, r.erased AS b, r.path AS name
FROM r JOIN stream s USING (stream_id) CROSS JOIN LATERAL {holes} n
WHERE n.holes <> r.erased LIMIT 100

-- name: all_files -> many Found
-- Return the files without so many rows as holes are declared in them.
WITH r AS MATERIALIZED (
    SELECT stream_id, segment_id, start_offset AS first, start_offset + events AS past, erased, path
    FROM data_file
    WHERE erased > 0 OR stream_id = ANY (ARRAY(SELECT DISTINCT stream_id FROM hole)))
{not_declared}

-- name: files_of_holes -> many Found
-- Return the same of the streams that have holes.
WITH r AS MATERIALIZED (
    SELECT d.stream_id, d.segment_id, d.start_offset AS first, d.start_offset + d.events AS past,
           d.erased, d.path
    FROM (SELECT DISTINCT stream_id FROM hole) h
    CROSS JOIN LATERAL (
        SELECT * FROM data_file o WHERE o.stream_id = h.stream_id OFFSET 0) d)
{not_declared}

-- name: made_by_erasures -> many Found
-- Return the segments that have another number of holes than erasures made in them.
SELECT 'hole_without_erasure' AS kind, s.stream_name AS stream, NULL AS reader_group,
       coalesce(h.segment_id, e.segment_id) AS segment, coalesce(h.events, 0) AS a,
       coalesce(e.events, 0) AS b, NULL AS name
FROM (SELECT stream_id, segment_id, sum(events) AS events
      FROM hole GROUP BY stream_id, segment_id) h
FULL JOIN (
    SELECT e.stream_id,
           (split_part(g.key, '.', 2)::bigint << 32) | split_part(g.key, '.', 1)::bigint
               AS segment_id, sum(g.value::bigint) AS events
    FROM erasure e CROSS JOIN LATERAL jsonb_each_text(e.segments) g
    GROUP BY 1, 2) e USING (stream_id, segment_id)
JOIN stream s ON s.stream_id = coalesce(h.stream_id, e.stream_id) AND s.state <> 'deleted'
WHERE h.events IS DISTINCT FROM e.events LIMIT 20

-- name: requests -> many Found
-- Return the erasures whose request, with its certificate, is gone.
SELECT 'certificate_lost' AS kind, e.stream_name AS stream, NULL AS reader_group,
       NULL::bigint AS segment, e.erasure_number AS a, NULL::bigint AS b,
       e.asked ->> 'request' AS name
FROM erasure e LEFT JOIN erasure_request r ON r.request_id = e.asked ->> 'request'
WHERE e.asked ? 'request' AND r.request_id IS NULL LIMIT 20
