"""Expire readers' leases, checkpoint the groups that have moved, publish, measure lag, warn."""

import sys
from typing import Any

from weir.arguments import Nothing
from weir.errors import Incomplete
from weir.job import Job, main
from weir.reader_groups.checkpoints import checkpoint_all, forget_old, read_lag
from weir.reader_groups.readers import expire
from weir.retention.subscribers import read_alerts


def run(job: Job, _arguments: Nothing) -> dict[str, Any]:
    """Every group in a transaction of its own."""
    expired = expire(job.database, job.settings.reader_lease)
    made, failed = checkpoint_all(job.database)
    forgotten = forget_old(job.database, job.settings.checkpoint_history)
    alerts = read_alerts(job.database)
    for alert in alerts:
        job.say(alert)
    report = {
        "expired_readers": expired,
        "checkpoints": made,
        "forgotten": forgotten,
        "lag": read_lag(job.database),
        "alerts": alerts,
    }
    if failed:
        raise Incomplete(len(made), failed, report)
    return report


if __name__ == "__main__":
    sys.exit(main("checkpoints", run))
