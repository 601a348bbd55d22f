"""Abort transactions whose lease has expired, sweep garbage, and prune old metadata.

The run cleans up what killed appends and consumers left behind: it aborts their transactions,
deletes garbage files after the grace period, and drops their staging tables. It prunes the metadata
of what lies wholly below the head and below the positions of all groups, and of versions of adjunct
stores that have expired (`metadata_history`), old checkpoints that are automatic or were given up
(`checkpoint_history`), and old rows of batches and of `weir.job_runs` (`job_history`).

**On failure.** Everything done so far is kept, and the next run does the rest.
"""

from dataclasses import dataclass
from typing import Any

from weir.adjunct.expiry import prune_versions
from weir.controller.expiry import expire
from weir.controller.ownership import check_warehouse_ownership
from weir.history.job_runs import prune_runs
from weir.operations.action import UPKEEP, Action, Job, complete
from weir.reader_groups.batches.history import prune_batches
from weir.reader_groups.checkpoints.periodic import prune_checkpoints
from weir.reader_groups.outputs.records import sweep_manifests
from weir.reader_groups.outputs.tables import sweep_staging
from weir.retention.garbage import sweep
from weir.retention.prune import prune


@dataclass(frozen=True)
class Upkeep:
    """Abort transactions whose lease has expired, sweep garbage, and prune old metadata."""


def run(job: Job, _arguments: Upkeep) -> dict[str, Any]:
    """Abort transactions first, because that makes garbage; then sweep, and prune what no question
    needs."""
    from weir.spark.base.delete import deleter

    check_warehouse_ownership(job.database, job.settings.warehouse)
    aborted = expire(job.database, job.settings.transaction_lease)
    deleted = sweep(
        job.database, job.settings.warehouse, job.settings.grace_period,
        deleter(lambda: job.spark), again_after=job.settings.transaction_max,
    )  # fmt: skip
    pruned = prune(job.database, job.settings.metadata_history)
    dropped = sweep_staging(job.database)
    report = {
        "aborted": aborted,
        "deleted": deleted,
        "pruned": pruned,
        "pruned_checkpoints": prune_checkpoints(job.database, job.settings.checkpoint_history),
        "pruned_batches": prune_batches(job.database, job.settings.job_history),
        "pruned_versions": prune_versions(job.database, job.settings.metadata_history),
        "pruned_runs": prune_runs(job.database, job.settings.job_history),
        "dropped": dropped,
    }
    failed = deleted["failed"] + sweep_manifests(job.database)
    return complete(report, aborted + pruned, done=deleted["deleted"], failed=failed)


ACTION = Action(Upkeep, run, UPKEEP, schedule="17 * * * *")
