"""One run of retention: decide for every stream, and truncate.

Deciding and truncating are one transaction under the stream's lock.
"""

import json
from functools import partial
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.cuts import load_cuts
from weir.controller.locks import lock_streams
from weir.controller.truncation import Freed, move_head
from weir.errors import WeirError
from weir.retention.decision import Decision, decide
from weir.storage import Database
from weir.stream_cut import StreamCut


def retain(database: Database, *, dry_run: bool = False) -> list[dict[str, Any]]:
    """Decide for every stream, and truncate; one stream that fails does not stop the others.

    Returns per stream the decision, what was freed, or the sentence of the failure.
    """
    streams = database.transaction(
        lambda c: c.execute(
            text(
                """SELECT stream_id, scope || '/' || name FROM stream
                WHERE state = 'active' ORDER BY stream_id"""
            )
        ).all()
    )
    reports = []
    for stream_id, stream in streams:
        try:
            reports.append(
                database.transaction(partial(_retain_one, stream_id=stream_id, dry_run=dry_run))
            )
        except WeirError as error:
            reports.append({"stream": stream, "error": str(error)})
    return reports


def _retain_one(connection: Connection, stream_id: int, dry_run: bool) -> dict[str, Any]:
    stream = lock_streams(connection, ids=[stream_id])[0]
    rows = connection.execute(
        text(
            """SELECT g.name, gs.published_cut FROM reader_group_stream gs
            JOIN reader_group g USING (group_id)
            WHERE gs.stream_id = :s AND g.subscriber ORDER BY g.name"""
        ),
        {"s": stream_id},
    ).all()
    head, *cuts = load_cuts(connection, stream_id, stream.head, *[r.published_cut for r in rows])
    subscribers = {row.name: cut for row, cut in zip(rows, cuts, strict=True)}
    decision = decide(head, subscribers, by_consumption=stream.configuration.retain_by_consumption)
    freed = Freed(0, 0, 0)
    if not dry_run:
        if decision.cut is not None:
            freed = move_head(connection, stream, decision.cut)
        _record(connection, stream_id, head, decision, freed)
    return {
        "stream": str(stream.name),
        "rule": decision.rule,
        "reason": decision.reason,
        "cut": decision.cut.to_json() if decision.cut else None,
        **freed.__dict__,
    }


def _record(
    connection: Connection, stream_id: int, head: StreamCut, decision: Decision, freed: Freed
) -> None:
    """Record the decision, unless it only says again that there is nothing to do, and why."""
    connection.execute(
        text(
            """INSERT INTO retention_decision (stream_id, decided_at, rule, reason, head, bound,
                                               cut, held_by, events, bytes)
            SELECT :s, clock_timestamp(), :rule, :reason, CAST(:head AS jsonb),
                   CAST(:bound AS jsonb), CAST(:cut AS jsonb), CAST(:held_by AS text[]), :events,
                   :bytes
            WHERE CAST(:cut AS jsonb) IS NOT NULL OR NOT EXISTS (
                SELECT FROM (SELECT rule, reason, bound FROM retention_decision
                             WHERE stream_id = :s ORDER BY decided_at DESC LIMIT 1) l
                WHERE l.rule = :rule AND l.reason = :reason
                  AND l.bound IS NOT DISTINCT FROM CAST(:bound AS jsonb))"""
        ),
        {
            "s": stream_id,
            "rule": decision.rule,
            "reason": decision.reason,
            "head": json.dumps(head.to_json()),
            "bound": json.dumps(decision.bound.to_json()) if decision.bound else None,
            "cut": json.dumps(decision.cut.to_json()) if decision.cut else None,
            "held_by": list(decision.held_by),
            "events": freed.events,
            "bytes": freed.bytes,
        },
    )
