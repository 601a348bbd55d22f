"""Truncate what all subscribers have released, and sweep garbage.

The run decides about each stream and truncates it in one transaction. `weir.retention_decisions`
has each decision with its reason. The log names the subscribers that have timed out, have lost
events, or soon will (`weir.retention_alerts` has those of all streams). Files are deleted after the
grace period. With `dry_run`, the run only says what it would do.

**On failure.** Everything done so far is kept, and the next run does the rest. If one stream or
group fails, the run continues with the others, names it, and fails at its end.
"""

from dataclasses import dataclass
from typing import Any

from weir.controller.ownership import check_warehouse_ownership
from weir.model.names import (
    READABLE_STREAM_PATTERN,
    stream_name,
)
from weir.operations.action import UPKEEP, Action, Job, complete
from weir.operations.form import (
    argument,
)
from weir.retention.garbage import sweep
from weir.retention.release import read_alerts
from weir.retention.run import retain


@dataclass(frozen=True)
class Retention:
    """Decide what to truncate of each stream, truncate it, and delete garbage files."""

    dry_run: bool = argument(
        "Dry run", "Only say what the run would do, for the given streams or all.", False
    )
    streams: list[str] = argument(
        "Streams", "Decide about these, as scope/stream. Empty: about all that have changed.",
        [], items={"type": "string", "pattern": READABLE_STREAM_PATTERN}, maxItems=20_000,
    )  # fmt: skip


def run(job: Job, arguments: Retention) -> dict[str, Any]:
    """Truncate each stream in a transaction of its own, then sweep."""
    from weir.spark.base.delete import deleter

    if not arguments.dry_run:
        # In a restored database, groups look as if they had been away since the backup.
        check_warehouse_ownership(job.database, job.settings.warehouse)
    named = [stream_name(stream) for stream in arguments.streams]
    # A dry run is asked for by a person, who wants an answer though nothing has changed.
    names = named if named or arguments.dry_run else None
    decisions = retain(job.database, names, dry_run=arguments.dry_run)
    for decision in decisions:
        job.say(f"{decision['stream']}: {decision.get('error') or decision['reason']}")
    alerts = read_alerts(job.database, [decision["stream"] for decision in decisions])
    for alert in alerts:
        job.say(alert)
    deleted = None
    if not arguments.dry_run:
        deleted = sweep(
            job.database, job.settings.warehouse, job.settings.grace_period,
            deleter(lambda: job.spark), again_after=job.settings.transaction_max,
            compacted_grace=job.settings.compacted_grace,
        )  # fmt: skip
    report = {"decisions": decisions, "alerts": alerts, "deleted": deleted}
    return complete(report, decisions, failed=(deleted or {}).get("failed", ()))


ACTION = Action(Retention, run, UPKEEP, schedule="*/30 * * * *", uses_spark=True)
