-- What the audit asks of losses: of each receipt it computes by itself what each group had not read
-- of that truncation, from where the group was put and what it was given by then.
-- fragments: kept.sql
-- import: from weir.annex.audit.sentences import Found

-- fragment: subscribers
-- What a receipt `t` says of them, where somebody may have written anything.
jsonb_each(CASE WHEN jsonb_typeof(t.subscribers) = 'object' THEN t.subscribers ELSE '{}' END) g
        CROSS JOIN LATERAL (SELECT
            CASE WHEN jsonb_typeof(g.value -> 'group_id') = 'number'
                 THEN (g.value -> 'group_id')::bigint END AS group_id,
            CASE WHEN jsonb_typeof(g.value -> 'lost') = 'number'
                 THEN (g.value -> 'lost')::numeric END AS lost,
            CASE WHEN jsonb_typeof(g.value -> 'lost_so_far') = 'number'
                 THEN (g.value -> 'lost_so_far')::numeric END AS so_far) n

-- name: differ -> many Found
-- Return what receipts say of losses, and is not so. A receipt names each subscriber of that time;
-- of a truncation by hand also the other groups that lost something. `due`: the groups of now that
-- it must know of. `part`: what went and was not read: of a range what lies after where the group
-- was put and before its end, without what it was given by then. A batch that was open at that time
-- begins a range of its own. Offsets that were erased before are no loss; of a file in which the
-- head lies, some may have been erased since.
WITH {kept}, said AS MATERIALIZED (
    SELECT t.stream_id, t.number, g.key AS name, true AS subscribes, n.group_id, n.lost, n.so_far
    FROM truncation t CROSS JOIN LATERAL {subscribers}
    UNION ALL
    SELECT t.stream_id, t.number, l.key, false, p.group_id,
           CASE WHEN jsonb_typeof(l.value) = 'number' THEN l.value::numeric END, NULL
    FROM truncation t CROSS JOIN LATERAL jsonb_each(
        CASE WHEN jsonb_typeof(t.lost) = 'object' THEN t.lost ELSE '{}' END) l
    LEFT JOIN LATERAL (
        SELECT o.group_id FROM placement o WHERE o.stream_id = t.stream_id
          AND o.group_name = l.key AND o.placed_at <= t.truncated_at
        ORDER BY o.group_id DESC LIMIT 1) p ON true
    WHERE NOT t.subscribers ? l.key
), entered AS MATERIALIZED (
    SELECT group_id, stream_id, max(placed_at) AS at FROM placement
    WHERE cause = 'entered' GROUP BY group_id, stream_id
), due AS (
    SELECT t.stream_id, t.number, g.name, gs.group_id,
           g.subscriber AND gs.subscriber_since <= t.truncated_at AS subscribes
    FROM truncation t JOIN reader_group_stream gs USING (stream_id)
    JOIN entered e USING (group_id, stream_id) JOIN reader_group g USING (group_id)
    WHERE e.at <= t.truncated_at AND (t.rule = 'by_hand'
        OR g.subscriber AND gs.subscriber_since <= t.truncated_at)
), asked AS MATERIALIZED (
    SELECT t.stream_id, t.stream_name, t.number, t.truncated_at, t.rule,
           CASE WHEN jsonb_typeof(t.lost -> o.name) = 'number'
                THEN (t.lost -> o.name)::numeric END AS loses, o.*
    FROM (SELECT coalesce(s.stream_id, d.stream_id) AS of_stream,
                 coalesce(s.number, d.number) AS of_number, coalesce(s.name, d.name) AS name,
                 coalesce(s.group_id, d.group_id) AS group_id, s.group_id AS said_id,
                 d.group_id AS due_id, s.subscribes, d.subscribes AS must, s.lost, s.so_far
          FROM said s FULL JOIN due d
          ON s.stream_id = d.stream_id AND s.number = d.number AND s.name = d.name) o
    JOIN truncation t ON t.stream_id = o.of_stream AND t.number = o.of_number
), stayed AS MATERIALIZED (
    SELECT a.*, p.number AS stay, p.cut, p.placed_name, gs.group_id IS NOT NULL AS there,
           gs.end_cut
    FROM asked a LEFT JOIN LATERAL (
        SELECT o.number, o.cut, o.group_name AS placed_name FROM placement o
        WHERE o.group_id = a.group_id AND o.stream_id = a.stream_id
          AND o.placed_at <= a.truncated_at
        ORDER BY o.number DESC LIMIT 1) p ON true
    LEFT JOIN reader_group_stream gs ON gs.group_id = a.group_id AND gs.stream_id = a.stream_id
), point AS MATERIALIZED (
    SELECT DISTINCT group_id, stream_id, stay, 'from' AS side, cut FROM stayed
    UNION
    SELECT group_id, stream_id, stay, 'end', end_cut FROM stayed WHERE end_cut IS NOT NULL
), wanted AS MATERIALIZED (
    SELECT DISTINCT stream_id, segment_id FROM truncated_range
), {passed}, part AS MATERIALIZED (
    SELECT a.group_id, a.stream_id, a.number, a.stay, a.truncated_at, r.segment_id,
           greatest(r.from_offset, coalesce(f.past, 0)) AS first,
           least(r.to_offset, coalesce(e.past, r.to_offset)) AS past,
           f.past IS NOT NULL AND (a.end_cut IS NULL OR e.past IS NOT NULL) AS known
    FROM stayed a JOIN truncated_range r ON r.stream_id = a.stream_id AND r.number = a.number
    LEFT JOIN passed f ON f.group_id = a.group_id AND f.stream_id = a.stream_id
        AND f.stay = a.stay AND f.side = 'from' AND f.segment_id = r.segment_id
    LEFT JOIN passed e ON e.group_id = a.group_id AND e.stream_id = a.stream_id
        AND e.stay = a.stay AND e.side = 'end' AND e.segment_id = r.segment_id
    WHERE a.stay IS NOT NULL
), given AS MATERIALIZED (
    SELECT p.group_id, p.stream_id, p.number, p.segment_id, sum(r.past - r.first) AS events,
           sum(h.holes) AS holes
    FROM part p JOIN delivered_range d ON d.group_id = p.group_id
        AND d.stream_id = p.stream_id AND d.segment_id = p.segment_id
        AND d.placement = p.stay AND d.first_at <= p.truncated_at
        AND d.from_offset < p.past AND d.to_offset > p.first
    CROSS JOIN LATERAL (SELECT p.stream_id, p.segment_id,
        greatest(p.first, d.from_offset) AS first, least(p.past, d.to_offset) AS past) r
    CROSS JOIN LATERAL {holes} h
    WHERE p.past > p.first GROUP BY p.group_id, p.stream_id, p.number, p.segment_id
), lost AS MATERIALIZED (
    SELECT r.group_id, r.stream_id, r.number, bool_and(r.known) AS known,
           sum(r.past - r.first - coalesce(g.events, 0)) FILTER (WHERE r.known) AS sure,
           sum(r.past - r.first - coalesce(g.events, 0)) AS most,
           sum(h.holes - coalesce(g.holes, 0)) AS holes
    FROM part r LEFT JOIN given g USING (group_id, stream_id, number, segment_id)
    CROSS JOIN LATERAL {holes} h
    WHERE r.past > r.first GROUP BY r.group_id, r.stream_id, r.number
), erased AS MATERIALIZED (
    SELECT stream_id, max(erased_at) AS at FROM erasure GROUP BY stream_id
), judged AS MATERIALIZED (
    SELECT a.*, CASE WHEN a.there
               THEN greatest(coalesce(l.sure, 0) - coalesce(l.holes, 0), 0) ELSE 0 END AS least,
           coalesce(l.most, 0) - CASE WHEN e.at > a.truncated_at OR NOT coalesce(l.known, true)
               THEN 0 ELSE coalesce(l.holes, 0) END AS most,
           a.lost + CASE WHEN lag(a.number) OVER before = a.number - 1
                         THEN lag(a.so_far) OVER before ELSE 0 END AS total
    FROM stayed a LEFT JOIN lost l USING (group_id, stream_id, number)
    LEFT JOIN erased e ON e.stream_id = a.stream_id
    WINDOW before AS (PARTITION BY a.stream_id, a.name, a.said_id, a.subscribes
                      ORDER BY a.number)
)
SELECT j.kind, j.stream_name AS stream, j.name AS reader_group, NULL::bigint AS segment,
       CASE WHEN j.kind = 'lost_so_far' THEN j.so_far WHEN j.subscribes THEN j.lost
            ELSE j.loses END AS a,
       CASE WHEN j.kind = 'lost_so_far' THEN j.total
            WHEN coalesce(j.lost, 0) > j.most THEN j.most ELSE j.least END AS b,
       j.number::text AS name
FROM (SELECT o.*, CASE
          WHEN must AND subscribes IS DISTINCT FROM true THEN 'subscriber_not_named'
          WHEN subscribes AND (stay IS NULL OR placed_name <> name OR said_id IS NULL
                  OR must AND said_id <> due_id)
              OR NOT subscribes AND (stay IS NULL OR rule <> 'by_hand')
          THEN 'receipt_of_stranger'
          WHEN coalesce(lost, 0) = 0 AND least > 0 THEN 'lost_without_a_word'
          WHEN subscribes AND (lost IS NULL OR lost NOT BETWEEN least AND most
                  OR lost <> coalesce(loses, 0))
              OR NOT subscribes AND (lost IS NULL OR lost NOT BETWEEN least AND most)
          THEN 'lost_differs'
          WHEN subscribes AND so_far IS DISTINCT FROM total THEN 'lost_so_far'
          END AS kind FROM judged o) j
WHERE j.kind IS NOT NULL ORDER BY j.stream_name, j.number, j.name LIMIT 100

-- name: named -> many Lost
-- Return what subscribers lost, with the reason: the truncations by which they did.
SELECT t.stream_name AS stream, g.key AS reader_group, sum(n.lost) AS events,
       (array_agg(t.rule ORDER BY t.number DESC))[1] AS rule, max(t.truncated_at) AS at
FROM truncation t CROSS JOIN LATERAL {subscribers}
WHERE t.subscribers <> '{}' AND n.lost > 0
GROUP BY t.stream_name, g.key ORDER BY 1, 2
