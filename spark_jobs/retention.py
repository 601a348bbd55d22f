"""Decide for each stream where to truncate it, truncate it, warn, and sweep garbage."""

import sys
from typing import Any

from weir.controller.ownership import check_warehouse_ownership
from weir.model.names import stream_name
from weir.operations import Retention
from weir.operations.runner import Job, complete, main
from weir.retention.garbage import sweep
from weir.retention.release import read_alerts
from weir.retention.run import retain


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
        )  # fmt: skip
    report = {"decisions": decisions, "alerts": alerts, "deleted": deleted}
    return complete(report, decisions, failed=(deleted or {}).get("failed", ()))


if __name__ == "__main__":
    sys.exit(main("retention", run))
