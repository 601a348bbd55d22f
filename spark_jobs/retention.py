"""Truncate what all subscribers have released, and sweep garbage.

The run decides about each stream and truncates it in one transaction. `weir.retention_decisions`
has each decision with its reason. The log names the subscribers that have timed out, have lost
events, or soon will (`weir.retention_alerts` has those of all streams). Files are deleted after the
grace period, if their footers are what was recorded; what differs is kept, and fails the run that
finds it. With `dry_run`, the run only says what it would do.

**On failure.** Everything done so far is kept, and the next run does the rest. If one stream or
group fails, the run continues with the others, names it, and fails at its end.
"""

from dataclasses import dataclass
from typing import TypedDict

from weir.controller.ownership import check_warehouse_ownership
from weir.errors import counted
from weir.model.names import stream_name
from weir.operations.action import UPKEEP, Action, Job, complete
from weir.operations.form import argument, streams_argument
from weir.operations.runner import run_if_main
from weir.retention.garbage import Swept, sweep
from weir.retention.release import read_alerts
from weir.retention.run import Decided, retain


@dataclass(frozen=True)
class Retention:
    """Decide what to truncate of each stream, truncate it, and delete garbage files."""

    dry_run: bool = argument(
        "Dry run", "Only say what the run would do, for the given streams or all.", False
    )
    streams: list[str] = streams_argument(
        "Decide about these, as scope/stream. Empty: about all that have changed."
    )


class RetentionReport(TypedDict):
    """What retention did. `deleted`: not of a dry run."""

    decisions: list[Decided]
    alerts: list[str]
    deleted: Swept | None


def run(job: Job, arguments: Retention) -> RetentionReport:
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
    deleted: Swept | None = None
    if not arguments.dry_run:
        deleted = sweep(
            job.database, job.settings.warehouse, job.settings.grace_period,
            deleter(lambda: job.spark), again_after=job.settings.transaction_max,
            compacted_grace=job.settings.compacted_grace, start_spark=lambda: job.spark,
            output_roots=job.settings.output_roots,
        )  # fmt: skip
    report = RetentionReport(decisions=decisions, alerts=alerts, deleted=deleted)
    return complete(report, decisions, failed=deleted["failed"] if deleted else ())


def said(arguments: Retention, report: RetentionReport) -> str:
    """Say how much went."""
    cut = [one for one in report["decisions"] if one.get("cut") is not None]
    events = counted(sum(one["events"] for one in cut), "event")
    done = "would be" if arguments.dry_run else "are"
    line = f"{events} of {counted(len(cut), 'stream')} {done} truncated"
    if (deleted := report["deleted"]) is not None:
        line += f"; {counted(deleted['deleted'], 'file')} deleted ({deleted['bytes']:,} bytes)"
    alerts = len(report["alerts"])
    return line + (f"; {counted(alerts, 'alert')}: see weir.retention_alerts" if alerts else "")


ACTION = Action(__file__, Retention, run, said, UPKEEP, uses_spark=True)
run_if_main(ACTION, __name__)
