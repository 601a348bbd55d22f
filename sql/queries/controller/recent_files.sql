-- Which files have the recent events of parts of the key space.
-- import: from weir.model.schema import Field

-- name: recent_files -> many RecentFilesRow
-- Return the files of each stream that has any, as lists in the order of `RecentFile`.
-- null: fields
-- type: fields = list[Field]
-- type: files = list[list[Any]]
WITH part AS (
    SELECT * FROM jsonb_to_recordset(CAST(:parts AS jsonb))
        AS p (stream_id bigint, key_low float8, key_high float8, since bigint)),
recent AS MATERIALIZED (
    SELECT p.stream_id, i.segment_id, p.since, min(i.start_offset) AS first,
        max(i.start_offset + i.events) AS past
    FROM (SELECT stream_id, min(since) AS since FROM part GROUP BY stream_id) p
    CROSS JOIN LATERAL commits_between(p.stream_id, p.since + 1, 9223372036854775807) i
    GROUP BY p.stream_id, i.segment_id, p.since),
touched AS (
    SELECT r.*, s.key_low, s.key_high
    FROM recent r JOIN segment s USING (stream_id, segment_id)
    WHERE EXISTS (SELECT FROM part p WHERE p.stream_id = r.stream_id
        AND p.key_low < s.key_high AND s.key_low < p.key_high)),
found AS (
    SELECT t.stream_id, jsonb_agg(jsonb_build_array(f.path, f.segment_id, t.key_low,
        t.key_high, r.events, (f.bytes * r.events / f.events)::bigint, f.first_seq,
        CASE WHEN r.events < f.events THEN t.since END)
        ORDER BY f.segment_id, f.start_offset) AS files
    FROM touched t CROSS JOIN LATERAL (
        SELECT * FROM data_file d
        WHERE d.stream_id = t.stream_id AND d.segment_id = t.segment_id
          AND d.start_offset < t.past AND d.start_offset >= coalesce((
              SELECT max(n.start_offset) FROM data_file n
              WHERE n.stream_id = t.stream_id AND n.segment_id = t.segment_id
                AND n.start_offset <= t.first), 0)) f
    CROSS JOIN LATERAL (SELECT f.start_offset + f.events
        - greatest(f.start_offset, t.first) AS events) r
    GROUP BY t.stream_id)
SELECT stream_id, stream_name AS stream, routing_key, on_missing_key, (
    SELECT c.fields FROM stream_schema c WHERE c.stream_id = s.stream_id
    ORDER BY c.version DESC LIMIT 1) AS fields, f.files
FROM found f JOIN stream s USING (stream_id) ORDER BY stream_id
