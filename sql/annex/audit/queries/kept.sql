-- What the head of each stream, and cuts of groups, have passed.

-- fragment: entries
-- Of a row's `cut` the segments, and up to which offset it has passed each.
(SELECT (split_part(e.key, '.', 2)::bigint << 32) | split_part(e.key, '.', 1)::bigint AS segment_id,
            CASE WHEN jsonb_typeof(e.value) = 'number' THEN e.value::bigint END AS past
        FROM jsonb_each(cut) e)

-- fragment: kept
-- Per segment where it ends, and up to which offset the head has passed it: an entry of the head
-- says that of its own segment; of others, it is all if the oldest entry at the same key is newer.
seg AS MATERIALIZED (
    SELECT g.stream_id, g.segment_id, g.key_low, g.key_high,
           coalesce(t.tail_offset, g.events) AS ends
    FROM segment g LEFT JOIN segment_tail t USING (stream_id, segment_id)
), head AS MATERIALIZED (
    SELECT s.stream_id, c.segment_id, c.past, g.key_low, g.key_high
    FROM (SELECT stream_id, head AS cut FROM stream) s CROSS JOIN LATERAL {entries} c
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
)

-- fragment: passed
-- Up to which offset the cut of each `point` has passed each `wanted` segment. One may be pruned:
-- then the order of the ids says it, or nothing.
entry AS MATERIALIZED (
    SELECT p.group_id, p.stream_id, p.stay, p.side, c.segment_id, c.past, g.key_low, g.key_high
    FROM point p CROSS JOIN LATERAL {entries} c LEFT JOIN seg g USING (stream_id, segment_id)
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
)

-- fragment: holes
-- How many holes lie between the offsets `first` and `past` of a row `r`.
(SELECT coalesce(sum(upper(m) - lower(m)), 0) AS holes
    FROM hole h CROSS JOIN LATERAL unnest(h.offsets * int4multirange(int4range(
        greatest(r.first - h.chunk * 65536, 0)::integer,
        least(r.past - h.chunk * 65536, 65536)::integer))) m
    WHERE h.stream_id = r.stream_id AND h.segment_id = r.segment_id
      AND h.chunk BETWEEN r.first / 65536 AND (r.past - 1) / 65536)
