"""Decide for every stream what may be truncated, truncate it, and delete dead files."""

import sys
from typing import Any

from weir.arguments import Retention
from weir.garbage import sweep
from weir.job import Job, main
from weir.retention import retain


def run(job: Job, arguments: Retention) -> dict[str, Any]:
    """Every stream in a transaction of its own; then the files whose grace period is over."""
    decisions = retain(job.database, dry_run=arguments.dry_run)
    for decision in decisions:
        job.say(f"{decision['stream']}: {decision.get('error') or decision['reason']}")
    deleted = None
    if not arguments.dry_run:
        deleted = sweep(job.database, job.settings.warehouse, job.settings.grace_period)
    return {"decisions": decisions, "deleted": deleted}


if __name__ == "__main__":
    sys.exit(main("retention", run))
