"""What the audit asks of losses: of each receipt it computes by itself what each group had not read
of that truncation, from where the group was put and what it was given by then."""

from weir.annex.audit.erasures import HOLES
from weir.annex.audit.ledger import KEPT, passed

# Somebody may have written anything there.
_NUMBER = "CASE WHEN jsonb_typeof({0}) = 'number' THEN ({0})::numeric END"
_OBJECT = "CASE WHEN jsonb_typeof({0}) = 'object' THEN {0} ELSE '{{}}' END"

# A receipt names each subscriber of that time; of a truncation by hand also the other groups that
# lost something. `due`: the groups of now that it must know of.
_ASKED = f"""said AS MATERIALIZED (
        SELECT t.stream_id, t.number, g.key AS name, true AS subscribes,
               {_NUMBER.format("g.value -> 'group_id'")}::bigint AS group_id,
               {_NUMBER.format("g.value -> 'lost'")} AS lost,
               {_NUMBER.format("g.value -> 'lost_so_far'")} AS so_far
        FROM truncation t CROSS JOIN LATERAL jsonb_each({_OBJECT.format("t.subscribers")}) g
        UNION ALL
        SELECT t.stream_id, t.number, l.key, false, p.group_id, {_NUMBER.format("l.value")}, NULL
        FROM truncation t CROSS JOIN LATERAL jsonb_each({_OBJECT.format("t.lost")}) l
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
               {_NUMBER.format("t.lost -> o.name")} AS loses, o.*
        FROM (SELECT coalesce(s.stream_id, d.stream_id) AS of_stream,
                     coalesce(s.number, d.number) AS of_number,
                     coalesce(s.name, d.name) AS name,
                     coalesce(s.group_id, d.group_id) AS group_id, s.group_id AS said_id,
                     d.group_id AS due_id,
                     s.subscribes, d.subscribes AS must, s.lost, s.so_far
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
        LEFT JOIN reader_group_stream gs ON gs.group_id = a.group_id
            AND gs.stream_id = a.stream_id
    )"""  # noqa: S608 - constants

# Where groups were put at the time of a receipt, and where they end.
_PASSED = passed(
    """SELECT DISTINCT group_id, stream_id, stay, 'from' AS side, cut FROM stayed
        UNION
        SELECT group_id, stream_id, stay, 'end', end_cut FROM stayed WHERE end_cut IS NOT NULL""",
    "SELECT DISTINCT stream_id, segment_id FROM truncated_range",
)

# What went and was not read: of a range what lies after where the group was put and before its end,
# without what it was given by then. A batch that was open at that time begins a range of its own.
# Offsets that were erased before are no loss; of a file in which the head lies, some may have been
# erased since.
_LOST = f"""part AS MATERIALIZED (
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
        SELECT p.group_id, p.stream_id, p.number, p.segment_id, sum(o.past - o.first) AS events,
               sum(h.holes) AS holes
        FROM part p JOIN delivered_range d ON d.group_id = p.group_id
            AND d.stream_id = p.stream_id AND d.segment_id = p.segment_id
            AND d.placement = p.stay AND d.first_at <= p.truncated_at
            AND d.from_offset < p.past AND d.to_offset > p.first
        CROSS JOIN LATERAL (SELECT p.stream_id, p.segment_id,
            greatest(p.first, d.from_offset) AS first, least(p.past, d.to_offset) AS past) o
        CROSS JOIN LATERAL {HOLES.format("o", "o.first", "o.past")} h
        WHERE p.past > p.first GROUP BY p.group_id, p.stream_id, p.number, p.segment_id
    ), lost AS MATERIALIZED (
        SELECT p.group_id, p.stream_id, p.number, bool_and(p.known) AS known,
               sum(p.past - p.first - coalesce(g.events, 0)) FILTER (WHERE p.known) AS sure,
               sum(p.past - p.first - coalesce(g.events, 0)) AS most,
               sum(h.holes - coalesce(g.holes, 0)) AS holes
        FROM part p LEFT JOIN given g USING (group_id, stream_id, number, segment_id)
        CROSS JOIN LATERAL {HOLES.format("p", "p.first", "p.past")} h
        WHERE p.past > p.first GROUP BY p.group_id, p.stream_id, p.number
    ), erased AS MATERIALIZED (
        SELECT stream_id, max(erased_at) AS at FROM erasure GROUP BY stream_id
    ), judged AS MATERIALIZED (
        SELECT a.*, CASE WHEN a.there
                   THEN greatest(coalesce(l.sure, 0) - coalesce(l.holes, 0), 0) ELSE 0 END AS least,
               coalesce(l.most, 0) - CASE WHEN e.at > a.truncated_at OR NOT coalesce(l.known, true)
                   THEN 0 ELSE coalesce(l.holes, 0) END AS most,
               lag(a.so_far) OVER before AS before, lag(a.number) OVER before AS last
        FROM stayed a LEFT JOIN lost l USING (group_id, stream_id, number)
        LEFT JOIN erased e ON e.stream_id = a.stream_id
        WINDOW before AS (PARTITION BY a.stream_id, a.name, a.said_id, a.subscribes
                          ORDER BY a.number)
    )"""  # noqa: S608 - constants

_LOSSES = f"""WITH {KEPT}, {_ASKED}, {_PASSED}, {_LOST}
    SELECT j.kind, j.stream_name AS stream, j.name AS reader_group, NULL AS segment,
           CASE WHEN j.kind = 'lost_so_far' THEN j.so_far WHEN j.subscribes THEN j.lost
                ELSE j.loses END AS a,
           CASE WHEN j.kind = 'lost_so_far'
                THEN j.lost + CASE WHEN j.last = j.number - 1 THEN j.before ELSE 0 END
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
              WHEN subscribes AND so_far IS DISTINCT FROM
                  lost + CASE WHEN last = number - 1 THEN before ELSE 0 END THEN 'lost_so_far'
              END AS kind FROM judged o) j
    WHERE j.kind IS NOT NULL ORDER BY j.stream_name, j.number, j.name LIMIT 100"""  # noqa: S608

STATEMENTS = [_LOSSES]

# What subscribers lost, with the reason: the truncations by which they did.
LOST = f"""SELECT t.stream_name AS stream, g.key AS reader_group,
           sum({_NUMBER.format("g.value -> 'lost'")}) AS events,
           (array_agg(t.rule ORDER BY t.number DESC))[1] AS rule, max(t.truncated_at) AS at
    FROM truncation t CROSS JOIN LATERAL jsonb_each({_OBJECT.format("t.subscribers")}) g
    WHERE t.subscribers <> '{{}}' AND {_NUMBER.format("g.value -> 'lost'")} > 0
    GROUP BY t.stream_name, g.key ORDER BY 1, 2"""  # noqa: S608 - constants
