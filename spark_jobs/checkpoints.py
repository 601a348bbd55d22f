"""Expire readers' leases, make a checkpoint of each group that has moved, and report its lag."""

import sys
from typing import Any

from weir.controller.ownership import check_warehouse_ownership
from weir.operations import Checkpoints
from weir.operations.runner import Job, complete, main
from weir.reader_groups.checkpoints.periodic import checkpoint_all
from weir.reader_groups.groups.lag import read_lag
from weir.reader_groups.groups.readers import expire


def run(job: Job, _arguments: Checkpoints) -> dict[str, Any]:
    """Checkpoint many groups in each transaction. Groups that have not moved are not read."""
    # In a restored database, groups have not read what they had read, and would release it anew.
    check_warehouse_ownership(job.database, job.settings.warehouse)
    expired = expire(job.database, job.settings.reader_lease)
    made, failed = checkpoint_all(job.database)
    report = {
        "expired_readers": expired,
        "checkpoints": made,
        "lag": read_lag(job.database, [one["reader_group"] for one in made]),
    }
    return complete(report, expired, done=len(made), failed=failed)


if __name__ == "__main__":
    sys.exit(main("checkpoints", run))
