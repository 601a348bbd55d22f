"""Abort expired transactions, sweep garbage, prune and pack old metadata, and compact files.

The run cleans up what killed appends and consumers left behind: it aborts their transactions,
deletes garbage files after the grace period, and drops their staging tables. It prunes the metadata
of what lies wholly below the head and below the positions of all groups, and of versions of adjunct
stores that have expired (`metadata_history`), old checkpoints that are automatic or were given up
(`checkpoint_history`), and old rows of batches, compactions and `weir.job_runs` (`job_history`).
It publishes what is new of the streams with the setting `publish`, and signs the certificates of
erasures of which no file is left.
It records how full the disks of the warehouse and of the state folder are.
It records what the streams of each owner keep, and prunes what is known of sizes over time.
It forgets that an Airflow watches a stream if no triggerer has said so for 30 days.
Commits that are older than `pack_after` get one row of the time index for some thousand of them, in
which no answer changes.
Then it puts neighbouring small files of streams together, of the stream with the most first, as
far as its budget goes (`compact_bytes`, `compact_time`; `weir.small_files` shows what is left).
Readers see nothing of that.

**On failure.** Everything done so far is kept, and the next run does the rest.
"""

from dataclasses import dataclass
from typing import TypedDict, cast

from weir.adjunct.expiry import prune_versions
from weir.compaction.pack import Packed, pack
from weir.compaction.records import Compacted, prune_compactions
from weir.compaction.run import Budget, checks, compact, say
from weir.controller.announcements import forget
from weir.controller.expiry import Aborted, expire
from weir.controller.ownership import check_warehouse_ownership
from weir.errors import counted
from weir.history.job_runs import prune_runs
from weir.operations.action import UPKEEP, Action, Job, complete
from weir.operations.runner import run_if_main
from weir.operations.steps import UpkeepStep
from weir.reader_groups.batches.history import prune_batches
from weir.reader_groups.checkpoints.periodic import prune_checkpoints
from weir.reader_groups.history import keep_history
from weir.reader_groups.outputs.records import sweep_manifests
from weir.reader_groups.outputs.tables import sweep_staging
from weir.retention.garbage import Swept, sweep
from weir.retention.prune import prune
from weir.seams import hung
from weir.warehouse.room import Room, rooms


@dataclass(frozen=True)
class Upkeep:
    """Abort transactions whose lease has expired, sweep garbage, prune old metadata, and compact
    small files."""


def _sweep(job: Job) -> Swept:
    from weir.spark.base.delete import deleter

    deleted = sweep(
        job.database, job.settings.warehouse, job.settings.grace_period,
        deleter(lambda: job.spark), again_after=job.settings.transaction_max,
        compacted_grace=job.settings.compacted_grace, start_spark=lambda: job.spark,
        output_roots=job.settings.output_roots,
    )  # fmt: skip
    deleted["failed"] += sweep_manifests(job.database)
    return deleted


def _pack(job: Job) -> list[Packed]:
    if not job.settings.pack_after:
        return []
    return pack(job.database, job.settings.pack_after, job.settings.compact_time)


def _compact(job: Job) -> list[Compacted]:
    budget = Budget(job.settings.compact_bytes, job.settings.compact_time)
    if not budget.bytes or not budget.seconds:
        return []
    compacted = compact(
        job.database, job.settings, budget, check=checks(job.installation), holder=job.request_id
    )
    job.say_all([say(one) for one in compacted])
    return compacted


_STEPS = (
    UpkeepStep("aborted", lambda job: expire(job.database, job.settings.transaction_lease)),
    UpkeepStep("deleted", _sweep),
    UpkeepStep("pruned", lambda job: prune(job.database, job.settings.metadata_history)),
    UpkeepStep("dropped", lambda job: sweep_staging(job.database)),
    UpkeepStep(
        "pruned_checkpoints",
        lambda job: prune_checkpoints(job.database, job.settings.checkpoint_history),
    ),
    UpkeepStep("pruned_batches", lambda job: prune_batches(job.database, job.settings.job_history)),
    UpkeepStep(
        "pruned_versions", lambda job: prune_versions(job.database, job.settings.metadata_history)
    ),
    UpkeepStep("pruned_runs", lambda job: prune_runs(job.database, job.settings.job_history)),
    UpkeepStep(
        "pruned_compactions", lambda job: prune_compactions(job.database, job.settings.job_history)
    ),
    UpkeepStep("forgotten", lambda job: forget(job.database)),
    UpkeepStep("disks", lambda job: rooms(job.settings.warehouse, str(job.settings.state))),
    UpkeepStep("pruned_history", lambda job: keep_history(job.database)),
)
_LAST = (UpkeepStep("packed", _pack), UpkeepStep("compacted", _compact))


class UpkeepReport(TypedDict):
    """What each step did; those of annexes are in it under their names, too."""

    aborted: list[Aborted]
    deleted: Swept
    pruned: list[dict[str, object]]
    dropped: object
    pruned_checkpoints: int
    pruned_batches: int
    pruned_versions: int
    pruned_runs: int
    pruned_compactions: int
    forgotten: object
    disks: list[Room]
    pruned_history: int
    packed: list[Packed]
    compacted: list[Compacted]


def run(job: Job, _arguments: Upkeep) -> UpkeepReport:
    """Abort transactions first, because that makes garbage; then sweep, and prune what no question
    needs. Compact last, because it takes longest, and fails if the disk is full. The steps of
    annexes come before that, or before everything."""
    check_warehouse_ownership(job.database, job.settings.warehouse)
    hanging = hung(UpkeepStep)
    first, later = ([one for one in hanging if one.first is when] for when in (True, False))
    done = {step.name: step.run(job) for step in (*first, *_STEPS, *later, *_LAST)}
    lists = [part for part in done.values() if isinstance(part, list)]
    tried = [one for part in lists for one in part if isinstance(one, dict)]
    report = cast(UpkeepReport, done)
    deleted = report["deleted"]
    return complete(report, tried, done=deleted["deleted"], failed=deleted["failed"])


def said(_arguments: Upkeep, report: UpkeepReport) -> str:
    """Say what was done."""
    deleted, done = report["deleted"], [one for one in report["compacted"] if "files_after" in one]
    before, after = (
        sum(one["files_before"] for one in done),
        sum(one["files_after"] for one in done),
    )
    return (
        f"{counted(len(report['aborted']), 'append')} aborted, "
        f"{counted(deleted['deleted'], 'file')} deleted ({deleted['bytes']:,} bytes), {before:,} "
        f"compacted into {after:,}"
    )


ACTION = Action(__file__, Upkeep, run, said, UPKEEP, uses_spark=True)
run_if_main(ACTION, __name__)
