"""What the audit asks of erasures: each offset without a row is a hole that an erasure declares."""

from weir.annex.audit.ledger import SEGMENT

# How many holes lie between two offsets of a segment.
HOLES = """(SELECT coalesce(sum(upper(m) - lower(m)), 0) AS holes
            FROM hole h CROSS JOIN LATERAL unnest(h.offsets * int4multirange(int4range(
                greatest({1} - h.chunk * 65536, 0)::integer,
                least({2} - h.chunk * 65536, 65536)::integer))) m
            WHERE h.stream_id = {0}.stream_id AND h.segment_id = {0}.segment_id
              AND h.chunk BETWEEN {1} / 65536 AND ({2} - 1) / 65536)"""

_SUM = f"""SELECT 'hole_sum' AS kind, s.stream_name AS stream, NULL AS reader_group,
           {SEGMENT.format("h.segment_id")} AS segment, h.chunk * 65536 AS a, h.events AS b, NULL
               AS name
    FROM hole h JOIN stream s USING (stream_id)
    WHERE h.events <> (SELECT coalesce(sum(upper(m) - lower(m)), 0) FROM unnest(h.offsets) m)
       OR lower(h.offsets) < 0 OR upper(h.offsets) > 65536 LIMIT 20"""  # noqa: S608

_WRONG = f"""WITH f AS MATERIALIZED ({{0}})
    SELECT 'hole_not_declared' AS kind, s.stream_name AS stream, NULL AS reader_group,
           NULL AS segment, n.holes AS a, f.erased AS b, f.path AS name
    FROM f JOIN stream s USING (stream_id)
    CROSS JOIN LATERAL {HOLES.format("f", "f.start_offset", "(f.start_offset + f.events)")} n
    WHERE n.holes <> f.erased LIMIT 100"""  # noqa: S608
_FILES_ALL = _WRONG.format(
    """SELECT stream_id, segment_id, start_offset, events, erased, path FROM data_file
        WHERE erased > 0 OR stream_id = ANY (ARRAY(SELECT DISTINCT stream_id FROM hole))"""
)
_FILES_OF_HOLES = _WRONG.format(
    """SELECT d.* FROM (SELECT DISTINCT stream_id FROM hole) h
        CROSS JOIN LATERAL (
            SELECT * FROM data_file o WHERE o.stream_id = h.stream_id OFFSET 0) d"""
)

_ERASURES = f"""SELECT 'hole_without_erasure' AS kind, s.stream_name AS stream, NULL
    AS reader_group,
           {SEGMENT.format("coalesce(h.segment_id, e.segment_id)")} AS segment, coalesce(h.events,
               0) AS a, coalesce(e.events, 0) AS b,
           NULL AS name
    FROM (SELECT stream_id, segment_id, sum(events) AS events FROM hole GROUP BY stream_id,
        segment_id) h
    FULL JOIN (
        SELECT e.stream_id,
               (split_part(g.key, '.', 2)::bigint << 32) | split_part(g.key, '.', 1)::bigint
                   AS segment_id, sum(g.value::bigint) AS events
        FROM erasure e CROSS JOIN LATERAL jsonb_each_text(e.segments) g
        GROUP BY 1, 2) e USING (stream_id, segment_id)
    JOIN stream s ON s.stream_id = coalesce(h.stream_id, e.stream_id) AND s.state <> 'deleted'
    WHERE h.events IS DISTINCT FROM e.events LIMIT 20"""  # noqa: S608

_REQUESTS = """SELECT 'certificate_lost' AS kind, e.stream_name AS stream, NULL AS reader_group,
           NULL AS segment, e.erasure_number AS a, NULL::bigint AS b, e.asked ->> 'request' AS name
    FROM erasure e LEFT JOIN erasure_request r ON r.request_id = e.asked ->> 'request'
    WHERE e.asked ? 'request' AND r.request_id IS NULL LIMIT 20"""


def of_erasures(everything: bool) -> list[str]:
    """Return the statements about erasures; without `everything`, of streams that have any."""
    return [_SUM, _FILES_ALL if everything else _FILES_OF_HOLES, _ERASURES, _REQUESTS]
