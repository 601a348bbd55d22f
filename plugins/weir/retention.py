"""Retention: which cut a stream may be truncated at, and why (PDP-47, by consumption).

`decide` is pure. Deciding and truncating are one transaction under the stream's lock.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.cuts import load_cuts
from weir.controller.locks import lock_streams
from weir.controller.truncation import Freed, move_head
from weir.errors import WeirError
from weir.storage import Database
from weir.stream_cut import StreamCut, join, meet


@dataclass(frozen=True)
class Decision:
    """What to do with a stream: the cut to truncate at (None: nothing), the rule, and why."""

    cut: StreamCut | None
    rule: str
    reason: str
    bound: StreamCut | None
    held_by: tuple[str, ...]


def decide(
    head: StreamCut, subscribers: Mapping[str, StreamCut], *, by_consumption: bool
) -> Decision:
    """The decision for one stream. `subscribers`: what each has released.

    Without a subscriber and without a limit nothing is ever truncated. A subscriber's cut behind
    the head counts as the head. The bound is the exact, order-free meet (semantics 11.3).
    """
    if not by_consumption:
        return Decision(None, "no_rule", "the stream has no retention rule", None, ())
    if not subscribers:
        return Decision(
            None,
            "no_rule",
            "no subscriber reads the stream, so nothing counts as consumed",
            None,
            (),
        )
    released = {name: join(cut, head) for name, cut in subscribers.items()}
    bound = meet(released.values())
    # Those without whom the bound would lie further on.
    held_by = tuple(
        name
        for name in sorted(released)
        if len(released) == 1
        or meet([cut for other, cut in released.items() if other != name]) != bound
    ) or tuple(sorted(released))
    if bound == head:
        return Decision(
            None,
            "nothing_consumed",
            f"nothing beyond the head is consumed by all subscribers; held by {', '.join(held_by)}",
            bound,
            held_by,
        )
    return Decision(
        bound,
        "consumed",
        f"all subscribers are past it; held by {', '.join(held_by)}",
        bound,
        held_by,
    )


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


def capture(database: Database) -> list[dict[str, Any]]:
    """Record the tail cut of every stream that moved since its last record (the retention set)."""
    rows = database.transaction(
        lambda c: c.execute(
            text(
                """INSERT INTO stream_cut (stream_id, recorded_at, clock, cut, events, bytes)
                SELECT s.stream_id, clock_timestamp(), s.last_clock, c.cut, z.events, z.bytes
                FROM stream s
                CROSS JOIN LATERAL (SELECT tail_cut(s.stream_id) AS cut) c
                CROSS JOIN LATERAL size_till(s.stream_id, c.cut) z
                LEFT JOIN LATERAL (SELECT l.cut, l.recorded_at FROM stream_cut l
                    WHERE l.stream_id = s.stream_id ORDER BY l.recorded_at DESC LIMIT 1) l ON true
                WHERE s.state = 'active' AND l.cut IS DISTINCT FROM c.cut
                  AND (l.recorded_at IS NULL OR clock_timestamp() > l.recorded_at)
                RETURNING stream_id, cut, events, bytes"""
            )
        ).all()
    )
    return [
        {"stream_id": r.stream_id, "cut": r.cut, "events": r.events, "bytes": r.bytes} for r in rows
    ]
