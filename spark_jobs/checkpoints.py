"""Make a checkpoint of each reader group that has moved.

The run also frees the segments of readers whose lease has expired, releases what subscribers have
read, and reports the lag of the groups that have moved (the view `weir.lag` has the lag of all
groups).

**On failure.** Everything done so far is kept, and the next run does the rest. If one stream or
group fails, the run continues with the others, names it, and fails at its end.
"""

from dataclasses import dataclass
from typing import TypedDict

from weir.controller.ownership import check_warehouse_ownership
from weir.errors import counted
from weir.operations.action import UPKEEP, Action, Job, complete
from weir.operations.runner import run_if_main
from weir.reader_groups.checkpoints.periodic import checkpoint_all
from weir.reader_groups.checkpoints.records import Checkpointed
from weir.reader_groups.groups.lag import read_lag
from weir.reader_groups.groups.readers import expire
from weir.reader_groups.history import record_groups


@dataclass(frozen=True)
class Checkpoints:
    """Make a checkpoint of each reader group that has moved, and report its lag. Before that, the
    segments of readers whose lease has expired are freed.
    """


class CheckpointsReport(TypedDict):
    """What was recorded of reader groups, which readers had gone, and how far the groups are."""

    expired_readers: list[dict[str, str]]
    checkpoints: list[Checkpointed]
    lag: list[dict[str, object]]


def run(job: Job, _arguments: Checkpoints) -> CheckpointsReport:
    """Checkpoint many groups in each transaction. Groups that have not moved are not read."""
    # In a restored database, groups have not read what they had read, and would release it anew.
    check_warehouse_ownership(job.database, job.settings.warehouse)
    expired = expire(job.database, job.settings.reader_lease)
    made, failed = checkpoint_all(job.database)
    groups = [one["reader_group"] for one in made]
    record_groups(job.database, groups)
    report: CheckpointsReport = {
        "expired_readers": expired,
        "checkpoints": made,
        "lag": [one._asdict() for one in read_lag(job.database, groups)],
    }
    return complete(report, expired, done=len(made), failed=failed)


def said(_arguments: Checkpoints, report: CheckpointsReport) -> str:
    """Say how many groups have moved."""
    made = counted(len(report["checkpoints"]), "reader group")
    gone = len(report["expired_readers"])
    return f"{made} checkpointed" + (f", {counted(gone, 'reader')} expired" if gone else "")


ACTION = Action(__file__, Checkpoints, run, said, UPKEEP)
run_if_main(ACTION, __name__)
