"""Abort the transactions whose lease has run out, and delete dead files."""

import sys
from typing import Any

from weir.arguments import Nothing
from weir.controller.transactions import expire
from weir.errors import Incomplete
from weir.garbage import sweep
from weir.job import Job, main


def run(job: Job, _arguments: Nothing) -> dict[str, Any]:
    """First what makes garbage, then the garbage."""
    from weir.spark.delete import deleter

    aborted = expire(job.database, job.settings.transaction_lease)
    deleted = sweep(
        job.database, job.settings.warehouse, job.settings.grace_period,
        deleter(lambda: job.spark),
    )  # fmt: skip
    report = {"aborted": aborted, "deleted": deleted}
    if deleted["failed"]:
        raise Incomplete(deleted["deleted"], deleted["failed"], report)
    return report


if __name__ == "__main__":
    sys.exit(main("upkeep", run))
