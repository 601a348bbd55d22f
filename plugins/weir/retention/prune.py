"""Prune metadata: delete the rows that describe only what lies below the *floor* of a stream.

The floor is the lower bound of the head, all positions, all ends of groups and all recorded cuts.
Epochs in which an open transaction began are kept as well. Pruning changes no size, because sizes
are prefix sums in the epochs that are kept (docs/retention.md).
"""

import json
from functools import partial
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.cuts import load_cuts
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.model.stream_cut import meet
from weir.reader_groups.locks import lock_stream_and_groups

# The streams that have something old below the head: the segment that was sealed first, the first
# entry of the time index of a segment that the head lies in (unless a file still has events of it),
# or a decision of retention or scaling that is not the newest of its kind, nor the newest that
# truncated, and by which nobody lost an event.
_CANDIDATES = text(
    """SELECT s.stream_id, s.stream_name AS stream FROM stream s
    CROSS JOIN (SELECT clock_timestamp() - :history * interval '1 second' AS old) h
    WHERE s.state <> 'deleted' AND (
        EXISTS (
            SELECT FROM (
                SELECT g.sealed_epoch FROM segment g
                WHERE g.stream_name = s.stream_name AND NOT s.head ? segment_name(g.segment_id)
                  AND g.sealed_epoch <= (
                      SELECT creation_epoch(max(segment_id)) FROM cut_entries(s.head))
                ORDER BY g.sealed_epoch LIMIT 1) g
            WHERE NOT EXISTS (SELECT FROM epoch p WHERE p.stream_id = s.stream_id
                              AND p.epoch = g.sealed_epoch AND p.created_at > time_clock(h.old)))
        OR EXISTS (
            SELECT FROM commits_needed_from(s.stream_id, s.head) e CROSS JOIN LATERAL (
                SELECT * FROM time_index t
                WHERE t.stream_id = s.stream_id AND t.segment_id = e.segment_id
                ORDER BY t.start_offset LIMIT 1) i
            WHERE i.start_offset + i.events < e.event_offset AND i.clock < time_clock(h.old))
        OR EXISTS (
            SELECT FROM commits_needed_from(s.stream_id, s.head) e CROSS JOIN LATERAL (
                SELECT * FROM packed_commits p
                WHERE p.stream_id = s.stream_id AND p.segment_id = e.segment_id
                ORDER BY p.start_offset LIMIT 1) p
            WHERE p.past < e.event_offset AND p.last_clock < time_clock(h.old))
        OR EXISTS (
            SELECT FROM retention_decision d
            WHERE d.stream_id = s.stream_id AND d.decided_at < h.old AND d.lost = '{}'
              AND d.decided_at < (SELECT max(n.decided_at) FROM retention_decision n
                                  WHERE n.stream_id = s.stream_id
                                    AND (d.events = 0 OR n.events > 0)))
        OR EXISTS (
            SELECT FROM scale_decision d
            WHERE d.stream_id = s.stream_id AND d.decided_at < h.old
              AND d.decided_at < (SELECT max(n.decided_at) FROM scale_decision n
                                  WHERE n.stream_id = s.stream_id)))
    ORDER BY s.stream_id"""
)


def prune(database: Database, history: float) -> list[dict[str, Any]]:
    """Delete the rows below the floor of each stream that are older than `history` seconds.

    Returns for each stream from which rows were deleted `stream`, and the number of rows by kind
    (the columns of `prune_below`); and for each stream that failed `stream` and `error`. A failure
    does not stop the other streams.
    """
    streams = database.transaction(lambda c: c.execute(_CANDIDATES, {"history": history}).all())
    reports: list[dict[str, Any]] = []
    for stream_id, stream in streams:
        one = partial(_prune_one, stream_id=stream_id, history=history)
        done, failed = database.one_of_many(f"stream {stream}", partial(commit_once, database, one))
        if failed:
            reports.append({"stream": stream, "error": failed})
        elif done:
            reports.append(done)
    return reports


def _prune_one(connection: Connection, stream_id: int, history: float) -> dict[str, Any]:
    stream = lock_stream_and_groups(connection, stream_id=stream_id)
    # A released cut below the head means the head; a recorded cut below the head means nothing.
    connection.execute(
        text(
            """UPDATE reader_group_stream SET
                released_cut = readable_cut(:s, released_cut, CAST(:head AS jsonb))
            WHERE stream_id = :s AND released_cut IS NOT NULL
              AND NOT at_or_before(:s, CAST(:head AS jsonb), released_cut)"""
        ),
        {"s": stream_id, "head": json.dumps(stream.head)},
    )
    connection.execute(
        text(
            """DELETE FROM stream_cut WHERE stream_id = :s
              AND recorded_at <= (SELECT last_record(:s, CAST(:head AS jsonb)))"""
        ),
        {"s": stream_id, "head": json.dumps(stream.head)},
    )
    rows = connection.execute(
        text(
            """SELECT group_cut(group_id, stream_id) AS cut FROM reader_group_stream
            WHERE stream_id = :s
            UNION ALL SELECT end_cut FROM reader_group_stream
            WHERE stream_id = :s AND end_cut IS NOT NULL
            UNION ALL (SELECT cut FROM stream_cut WHERE stream_id = :s
                       ORDER BY recorded_at LIMIT 1)"""
        ),
        {"s": stream_id},
    ).all()
    floor = meet(
        load_cuts(connection, stream_id, stream.head, *[row.cut for row in rows if row.cut])
    )
    found = connection.execute(
        text("SELECT * FROM prune_below(:s, CAST(:floor AS jsonb), :history)"),
        {"s": stream_id, "floor": json.dumps(floor.to_json()), "history": history},
    ).one()
    counts = {name: count for name, count in found._mapping.items() if count}
    return {"stream": str(stream.name), **counts} if counts else {}
