"""One run of retention: decide about every stream for which a decision is due, and truncate it.

The SQL function `decide_retention` has the rules (docs/decisions/0025). Deciding and truncating are
one transaction, which has locked the stream and its groups.
"""

import json
import logging
from collections.abc import Sequence
from functools import partial
from typing import NotRequired, TypedDict

from sqlalchemy import Connection

from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedStream, why_not_active
from weir.controller.queries import Cut
from weir.controller.retention_queue import due_streams, take_due
from weir.controller.truncation import files_below
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.model.names import StreamName
from weir.queries.controller.truncation import Freed
from weir.queries.retention import run as sql
from weir.reader_groups.batches.data_loss import unread_events_lost, warn_of_lost
from weir.reader_groups.locks import lock_stream_and_groups
from weir.retention.receipts import truncate_at

log = logging.getLogger("weir.retention")


class Decided(TypedDict):
    """What was decided about a stream, or the `error` with which that failed.

    `cut`: None truncates nothing. `held_by`, `timed_out`: the subscribers that hold events back,
    and those that have timed out. `lost`: by subscriber how many unread events. `events`, `bytes`,
    `files`: what was truncated, and how many files became garbage. `retryable`: false if another
    try would fail, too."""

    stream: str
    error: NotRequired[str]
    retryable: NotRequired[bool]
    rule: NotRequired[str]
    reason: NotRequired[str]
    cut: NotRequired[Cut | None]
    held_by: NotRequired[list[str]]
    timed_out: NotRequired[list[str]]
    lost: NotRequired[dict[str, int]]
    events: NotRequired[int]
    bytes: NotRequired[int]
    files: NotRequired[int]


def retain(
    database: Database, names: Sequence[StreamName] | None = None, *, dry_run: bool = False
) -> list[Decided]:
    """Decide about each stream for which a decision is due, and truncate it.

    `names`: decide about these streams instead, due or not; about all if it is empty. `dry_run`:
    change nothing, and return what would be decided.

    A stream that fails does not stop the others; one in `names` that does not exist or is sealed
    counts as failed.
    """
    streams = database.transaction(partial(due_streams, names=names))
    reports: list[Decided] = []
    active = {stream for _, stream in streams}
    if others := [name for name in names or () if str(name) not in active]:
        why = database.transaction(partial(why_not_active, names=others))
        reports = [{"stream": one, "error": why[one], "retryable": False} for one in why]
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
) -> Decided | None:
    # With these locks no batch is opened or committed, and no subscriber returns from a time-out.
    stream = lock_stream_and_groups(connection, stream_id=stream_id)
    if stream.state != "active":  # sealed meanwhile
        return None
    # Taken from the queue before anything is read: a later change puts the stream there again.
    if not dry_run and not take_due(connection, stream_id) and only_due:
        return None  # another run has decided meanwhile
    decision = sql.decide(connection, stream_id=stream_id)
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
        "events": freed.events,
        "bytes": freed.bytes,
        "files": freed.files,
    }


def _record(
    connection: Connection, stream: LockedStream, decision: sql.Decision, lost: dict[str, int]
) -> None:
    """Record the decision, unless it truncates nothing for the same reasons as the last one. Delete
    the recorded cuts below the new head, and queue the stream for the next decision."""
    sql.record(
        connection,
        stream_id=stream.stream_id,
        stream=str(stream.name),
        rule=decision.rule,
        reason=decision.reason,
        head=json.dumps(stream.head),
        bound=json.dumps(decision.bound) if decision.bound else None,
        cut=json.dumps(decision.cut) if decision.cut else None,
        held_by=decision.held_by,
        truncated_past=decision.truncated_past,
        timed_out=decision.timed_out,
        lost=json.dumps(lost),
        events=decision.events,
        bytes=decision.bytes,
        next_at=decision.next_at,
    )
