-- What the audit asks of files.

-- name: every -> many LedgerFile
-- Return each file, how many rows it must have, and the holes that are declared in it.
-- row: What the ledger says of a file.
-- null: firsts, pasts
SELECT s.stream_name AS stream, f.path, f.bytes, f.events - f.erased AS events,
    f.segment_id, f.start_offset, f.events AS offsets, h.firsts, h.pasts
FROM data_file f JOIN stream s USING (stream_id)
CROSS JOIN LATERAL (
    SELECT array_agg(o.chunk * 65536 + lower(m)) AS firsts,
           array_agg(o.chunk * 65536 + upper(m)) AS pasts
    FROM hole o CROSS JOIN LATERAL unnest(o.offsets * int4multirange(int4range(
        greatest(f.start_offset - o.chunk * 65536, 0)::integer,
        least(f.start_offset + f.events - o.chunk * 65536, 65536)::integer))) m
    WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id AND o.chunk BETWEEN
        f.start_offset / 65536 AND (f.start_offset + f.events - 1) / 65536) h
ORDER BY f.path
