"""Decide about streams. Made by `make queries` from sql/queries/retention/run.sql."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

DECIDE = text("""SELECT * FROM decide_retention(:stream_id)""")


class Decision(NamedTuple):
    """A row of `decide`."""

    rule: str
    reason: str
    cut: dict[str, int | str] | None
    bound: dict[str, int | str] | None
    events: int
    bytes: int
    held_by: list[str]
    truncated_past: list[str]
    timed_out: list[str]
    next_at: datetime | None


def decide(connection: Connection, *, stream_id: int) -> Decision:
    """Return what retention decides about an active stream."""
    result = connection.execute(DECIDE, {"stream_id": stream_id})
    row = result.one()
    return Decision._make(row)


RECORD = text(
    """WITH made AS (
    INSERT INTO retention_decision (stream_id, stream_name, decided_at, rule, reason,
        head, bound, cut, held_by, truncated_past, timed_out, lost, events, bytes)
    SELECT :stream_id, :stream, clock_timestamp(), :rule, :reason, CAST(:head AS jsonb),
        CAST(:bound AS jsonb), CAST(:cut AS jsonb), CAST(:held_by AS text[]),
        CAST(:truncated_past AS text[]), CAST(:timed_out AS text[]),
        CAST(:lost AS jsonb), :events, :bytes
    WHERE CAST(:cut AS jsonb) IS NOT NULL OR NOT EXISTS (
        SELECT FROM (SELECT rule, reason, bound, held_by, timed_out
                     FROM retention_decision
                     WHERE stream_id = :stream_id ORDER BY decided_at DESC LIMIT 1) l
        WHERE l.rule = :rule AND l.reason = :reason
          AND l.held_by = CAST(:held_by AS text[])
          AND l.timed_out = CAST(:timed_out AS text[])
          AND l.bound IS NOT DISTINCT FROM CAST(:bound AS jsonb))
), passed AS (
    DELETE FROM stream_cut WHERE stream_id = :stream_id
      AND recorded_at <= (SELECT last_record(:stream_id, CAST(:cut AS jsonb)))
), again AS (
    INSERT INTO retention_queue (stream_id, due_at)
    SELECT stream_id, CASE WHEN CAST(:cut AS jsonb) IS NULL
        THEN CAST(:next_at AS timestamptz) ELSE clock_timestamp() END
    FROM stream WHERE stream_id = :stream_id
      AND (CAST(:cut AS jsonb) IS NOT NULL OR CAST(:next_at AS timestamptz) IS NOT NULL)
)
UPDATE stream SET retained_at = clock_timestamp() WHERE stream_id = :stream_id"""
)


def record(
    connection: Connection,
    *,
    stream_id: int,
    stream: str,
    rule: str,
    reason: str,
    head: str,
    bound: str | None,
    cut: str | None,
    held_by: Sequence[str],
    truncated_past: Sequence[str],
    timed_out: Sequence[str],
    lost: str,
    events: int,
    bytes: int,
    next_at: datetime | None,
) -> None:
    """Record a decision, unless it truncates nothing for the same reasons as the last one. Delete the recorded cuts below the new head, and queue the stream for the next decision: at once after a truncation, as there may be more to delete; otherwise at the time when something becomes old enough, if there is one."""
    result = connection.execute(
        RECORD,
        {
            "stream_id": stream_id,
            "stream": stream,
            "rule": rule,
            "reason": reason,
            "head": head,
            "bound": bound,
            "cut": cut,
            "held_by": list(held_by),
            "truncated_past": list(truncated_past),
            "timed_out": list(timed_out),
            "lost": lost,
            "events": events,
            "bytes": bytes,
            "next_at": next_at,
        },
    )
    result.close()
