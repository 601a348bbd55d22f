"""Receipts of truncations. Made by `make queries` from sql/queries/retention/receipts.sql."""

from sqlalchemy import Connection, text

WRITE = text(
    """WITH took AS MATERIALIZED (
    SELECT * FROM (
        SELECT g.segment_id,
               passed_until(o.keys, o.owners, o.offsets, g.key_low, g.segment_id) AS first,
               least(coalesce(g.events, t.tail_offset), passed_until(
                   n.keys, n.owners, n.offsets, g.key_low, g.segment_id)) AS past
        FROM front(:stream_id, CAST(:old AS jsonb)) o CROSS JOIN front(:stream_id, CAST(:cut AS jsonb)) n
        CROSS JOIN segment g LEFT JOIN segment_tail t USING (stream_id, segment_id)
        WHERE g.stream_id = :stream_id
          AND g.segment_id >= (SELECT min(segment_id) FROM cut_entries(CAST(:old AS jsonb)))
          AND g.segment_id <= (SELECT max(segment_id) FROM cut_entries(CAST(:cut AS jsonb)))
        ) g
    WHERE past > first
), read AS (
    SELECT b.group_id, array_agg(b.batch_id ORDER BY b.batch_id) AS batches,
           array_agg(b.reader_id ORDER BY b.batch_id) AS runs
    FROM took t CROSS JOIN LATERAL (VALUES (t.first), (t.past - 1)) e (at)
    CROSS JOIN LATERAL readers_of(:stream_id, t.segment_id, e.at, e.at + 1) r
    JOIN reader_batch b ON b.group_id = r.a AND b.batch_id = r.b
    GROUP BY b.group_id
), before AS (
    SELECT number, events_until, subscribers FROM truncation
    WHERE stream_id = :stream_id ORDER BY number DESC LIMIT 1
), made AS (
    INSERT INTO truncation (stream_id, stream_name, number, clock, rule, reason, head, events,
                            bytes, files, events_until, request_id, lost, subscribers)
    SELECT :stream_id, :stream, 1 + coalesce((SELECT number FROM before), 0), s.last_clock, :rule,
           :reason, CAST(:cut AS jsonb), :events, :bytes, :files,
           :events + coalesce((SELECT events_until FROM before), 0), :request_id,
           CAST(:lost AS jsonb), coalesce((
        SELECT jsonb_object_agg(g.name, jsonb_build_object(
            'group_id', g.group_id, 'released_at', gs.released_at, 'released', gs.released_cut
                = join_cuts(:stream_id, gs.released_cut, CAST(:cut AS jsonb)),
            'batches', CASE WHEN r.batches IS NOT NULL
                THEN jsonb_build_array(r.batches[1], r.batches[cardinality(r.batches)]) END,
            'runs', CASE WHEN r.runs IS NOT NULL
                THEN jsonb_build_array(r.runs[1], r.runs[cardinality(r.runs)]) END,
            'lost', l.lost, 'lost_so_far', l.lost + coalesce((
                SELECT (b.subscribers -> g.name ->> 'lost_so_far')::bigint FROM before b
                WHERE b.subscribers -> g.name -> 'group_id' = to_jsonb(g.group_id)), 0)))
        FROM reader_group_stream gs JOIN reader_group g USING (group_id)
        LEFT JOIN read r USING (group_id)
        CROSS JOIN LATERAL (SELECT coalesce(
            (CAST(:lost AS jsonb) ->> g.name)::bigint, 0) AS lost) l
        WHERE gs.stream_id = :stream_id AND g.subscriber), '{}')
    FROM stream s WHERE s.stream_id = :stream_id AND EXISTS (SELECT FROM took)
    RETURNING number
)
INSERT INTO truncated_range (stream_id, segment_id, from_offset, to_offset, number)
SELECT :stream_id, t.segment_id, t.first, t.past, m.number FROM took t CROSS JOIN made m"""
)


def write(
    connection: Connection,
    *,
    stream_id: int,
    old: str,
    cut: str,
    stream: str,
    rule: str,
    reason: str,
    events: int,
    bytes: int,
    files: int,
    request_id: str | None,
    lost: str,
) -> None:
    """Write the receipt of a truncation of a stream from one head to another. Of the batches that read what went, it has the first and the last, by the first and the last offset of each segment: however many there were, it costs the same."""
    result = connection.execute(
        WRITE,
        {
            "stream_id": stream_id,
            "old": old,
            "cut": cut,
            "stream": stream,
            "rule": rule,
            "reason": reason,
            "events": events,
            "bytes": bytes,
            "files": files,
            "request_id": request_id,
            "lost": lost,
        },
    )
    result.close()
