"""One run of retention: decide about every stream for which a decision is due, and truncate it.

The SQL function `decide_retention` has the rules (docs/decisions/0025). Deciding and truncating are
one transaction, which has locked the stream and its groups.
"""

import json
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedStream, why_not_active
from weir.controller.retention_queue import due_streams, queueing, take_due
from weir.controller.truncation import files_below
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.model.names import StreamName
from weir.queries.controller.truncation import Freed
from weir.reader_groups.batches.data_loss import unread_events_lost, warn_of_lost
from weir.reader_groups.locks import lock_stream_and_groups
from weir.retention.receipts import truncate_at

log = logging.getLogger("weir.retention")

# When to decide again: at once after a truncation, as there may be more to delete; otherwise at the
# time when something becomes old enough, if there is one.
_AGAIN = queueing(
    """stream WHERE stream_id = :s
       AND (CAST(:cut AS jsonb) IS NOT NULL OR CAST(:next_at AS timestamptz) IS NOT NULL)""",
    """CASE WHEN CAST(:cut AS jsonb) IS NULL
       THEN CAST(:next_at AS timestamptz) ELSE clock_timestamp() END""",
)
_DECIDE = text("SELECT * FROM decide_retention(:s)")


def retain(
    database: Database, names: Sequence[StreamName] | None = None, *, dry_run: bool = False
) -> list[dict[str, Any]]:
    """Decide about each stream for which a decision is due, and truncate it.

    `names`: decide about these streams instead, due or not; about all if it is empty. `dry_run`:
    change nothing, and return what would be decided.

    Returns for each stream the decision: `stream`, `rule`, `reason`, `cut` (None: truncates
    nothing), `held_by` and `timed_out` (the subscribers that hold events back, and those that have
    timed out), `lost` (by subscriber how many unread events), the `events` and `bytes` that were
    truncated, and `files` (how many became garbage).

    Of a stream that failed it returns `stream` and `error`, and continues with the others; a stream
    in `names` that does not exist or is sealed counts as failed.
    """
    streams = database.transaction(partial(due_streams, names=names))
    reports = []
    active = {stream for _, stream in streams}
    if others := [name for name in names or () if str(name) not in active]:
        reports = database.transaction(partial(why_not_active, names=others))
    for stream_id, stream in streams:
        one = partial(_retain_one, stream_id=stream_id, dry_run=dry_run, only_due=names is None)
        done, failed = database.one_of_many(f"stream {stream}", partial(commit_once, database, one))
        if failed:
            reports.append({"stream": stream, "error": failed})
        elif done is not None:
            reports.append(done)
    return reports


def _retain_one(
    connection: Connection, stream_id: int, dry_run: bool, only_due: bool
) -> dict[str, Any] | None:
    # With these locks no batch is opened or committed, and no subscriber returns from a time-out.
    stream = lock_stream_and_groups(connection, stream_id=stream_id)
    if stream.state != "active":  # sealed meanwhile
        return None
    # Taken from the queue before anything is read: a later change puts the stream there again.
    if not dry_run and not take_due(connection, stream_id) and only_due:
        return None  # another run has decided meanwhile
    decision = connection.execute(_DECIDE, {"s": stream_id}).one()
    freed, lost, others = Freed(0, 0, 0), {}, {}
    if decision.cut is not None:
        [cut] = load_cuts(connection, stream_id, decision.cut)
        lost = unread_events_lost(connection, stream, cut)
        others = unread_events_lost(connection, stream, cut, subscribers=False)
        if dry_run:
            files = files_below(connection, stream, cut)
            freed = Freed(decision.events, decision.bytes, files)
        else:
            freed = truncate_at(
                connection, stream, cut, rule=decision.rule, reason=decision.reason, lost=lost
            )
    if not dry_run:
        _record(connection, stream, decision, lost)
    for name in decision.timed_out:
        log.warning("subscriber %s of stream %s has timed out and holds nothing back any more",
                    name, stream.name)  # fmt: skip
    warn_of_lost(stream, lost, decision.reason)
    for name, events in others.items():
        log.warning("reader group %s, which is no subscriber, loses %s unread events of stream %s",
                    name, f"{events:,}", stream.name)  # fmt: skip
    return {
        "stream": str(stream.name),
        "rule": decision.rule,
        "reason": decision.reason,
        "cut": decision.cut,
        "held_by": decision.held_by,
        "timed_out": decision.timed_out,
        "lost": lost,
        **freed._asdict(),
    }


def _record(
    connection: Connection, stream: LockedStream, decision: Any, lost: dict[str, int]
) -> None:
    """Record the decision, unless it truncates nothing for the same reasons as the last one. Delete
    the recorded cuts below the new head, and queue the stream for the next decision."""
    connection.execute(
        text(
            f"""WITH made AS (
                INSERT INTO retention_decision (stream_id, stream_name, decided_at, rule, reason,
                    head, bound, cut, held_by, truncated_past, timed_out, lost, events, bytes)
                SELECT :s, :stream, clock_timestamp(), :rule, :reason, CAST(:head AS jsonb),
                    CAST(:bound AS jsonb), CAST(:cut AS jsonb), CAST(:held_by AS text[]),
                    CAST(:truncated_past AS text[]), CAST(:timed_out AS text[]),
                    CAST(:lost AS jsonb), :events, :bytes
                WHERE CAST(:cut AS jsonb) IS NOT NULL OR NOT EXISTS (
                    SELECT FROM (SELECT rule, reason, bound, held_by, timed_out
                                 FROM retention_decision
                                 WHERE stream_id = :s ORDER BY decided_at DESC LIMIT 1) l
                    WHERE l.rule = :rule AND l.reason = :reason
                      AND l.held_by = CAST(:held_by AS text[])
                      AND l.timed_out = CAST(:timed_out AS text[])
                      AND l.bound IS NOT DISTINCT FROM CAST(:bound AS jsonb))
            ), passed AS (
                DELETE FROM stream_cut WHERE stream_id = :s
                  AND recorded_at <= (SELECT last_record(:s, CAST(:cut AS jsonb)))
            ), again AS (
                {_AGAIN}
            )
            UPDATE stream SET retained_at = clock_timestamp() WHERE stream_id = :s"""  # noqa: S608 - a constant
        ),
        {
            "s": stream.stream_id,
            "stream": str(stream.name),
            "rule": decision.rule,
            "reason": decision.reason,
            "head": json.dumps(stream.head),
            "bound": decision.bound and json.dumps(decision.bound),
            "cut": decision.cut and json.dumps(decision.cut),
            "held_by": decision.held_by,
            "truncated_past": decision.truncated_past,
            "timed_out": decision.timed_out,
            "lost": json.dumps(lost),
            "events": decision.events,
            "bytes": decision.bytes,
            "next_at": decision.next_at,
        },
    )
