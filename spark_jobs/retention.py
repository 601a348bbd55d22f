"""Decide for every stream what may be truncated, truncate it, warn, and delete dead files."""

import sys
from typing import Any

from weir.errors import incomplete
from weir.model.names import stream_name
from weir.operations import Retention
from weir.operations.runner import Job, main
from weir.retention.release import read_alerts
from weir.retention.run import retain
from weir.warehouse.garbage import sweep
from weir.warehouse.ownership import check_warehouse_ownership


def run(job: Job, arguments: Retention) -> dict[str, Any]:
    """Every stream in a transaction of its own; then the files whose grace period is over."""
    from weir.spark.delete import deleter

    if not arguments.dry_run:
        # In a restored database groups look as if they had been away since its backup.
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
    failed = [d["error"] for d in decisions if "error" in d]
    done = len(decisions) - len(failed)
    failed += (deleted or {}).get("failed", [])
    if failed:
        raise incomplete(done, failed, report)
    return report


if __name__ == "__main__":
    sys.exit(main("retention", run))
