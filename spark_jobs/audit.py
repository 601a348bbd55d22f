"""Prove from the ledger that every event was delivered once, is kept, or is lost for a reason.

**Parameters.** `everything`: look at all that the ledger has; else at what came since the last
audit that proved it, and at all ends, positions and receipts. `files`: look at the files, too.

The audit reads the rows that Weir keeps in Postgres, and shares no code with what wrote them. It
changes nothing but its own result: `weir.audits`, and `weir.counter_examples`, which says in a
sentence each what is not as it must be.

**On failure.** Something changed the ledger that is not Weir, a backup was restored without
`weir_recover`, or Weir has a defect. Keep the database as it is, and report the sentence.
"""

from dataclasses import dataclass

from weir.annex.audit.files import looking_at
from weir.annex.audit.run import AuditReport, audit
from weir.errors import counted
from weir.operations.action import UPKEEP, Action, Job
from weir.operations.form import argument
from weir.operations.runner import run_if_main
from weir.warehouse.filesystem import filesystem


@dataclass(frozen=True)
class Audit:
    """Prove from the ledger that every event was delivered once, is kept, or is lost for a
    reason."""

    everything: bool = argument(
        "Everything",
        "Look at all that the ledger has. Off: at what came since the last audit that proved it.",
        False,
    )
    files: bool = argument(
        "Files", "Look at all files of the warehouse, too: that they are there, with their rows.",
        False,
    )  # fmt: skip


def run(job: Job, arguments: Audit) -> AuditReport:
    """Audit the ledger; fail with the first counter-example if it is refuted."""
    look = None
    if arguments.files:
        look = looking_at(*filesystem(job.settings.warehouse), say=job.say)
    done = audit(job.database, everything=arguments.everything, look=look)
    for lost in done.lost:
        job.say(
            f"subscriber {lost['reader_group']} lost {counted(lost['events'], 'event')} of stream "
            f"{lost['stream']}, the last of them at {lost['at']} by {lost['rule']}"
        )
    for found in done.counter_examples:
        job.say(found.what)
    if (error := done.error()) is not None:
        raise error
    return done.report()


def said(_arguments: Audit, report: AuditReport) -> str:
    """Say what is proven."""
    streams, groups = (
        counted(report["streams"], "stream"),
        counted(report["groups"], "reader group"),
    )
    return f"the ledger of {streams} and {groups} is proven"


ACTION = Action(__file__, Audit, run, said, UPKEEP)
run_if_main(ACTION, __name__)
