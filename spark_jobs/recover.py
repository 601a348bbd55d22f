"""Reconcile a database that was restored, moved or failed over with its warehouse.

**Parameters.** What to do with the files that the database does not know because they were written
after the backup. *report* changes nothing: run it first. With *keep* and *delete*, every stream
continues in new segments, with transaction numbers and clocks beyond everything that was given out
before, and open appends are forgotten: begin them again.

A restored database does not know what was erased since its backup, so erased persons are back. With
the certificates that were kept elsewhere (*Erased*), the report says which are to be erased again.

**On failure.** Everything done so far is kept; run it again. Until it has succeeded, Weir appends
and deletes nothing.
"""

from dataclasses import dataclass

from weir.annex.recovery.recover import BeforeRecovery, ErasedSince, RecoverReport, recover
from weir.compaction.run import checks
from weir.errors import counted
from weir.operations.action import UPKEEP, Action, Job
from weir.operations.form import argument
from weir.operations.runner import run_if_main
from weir.seams import hung


@dataclass(frozen=True)
class Recover:
    """Reconcile a restored database with its warehouse: report the files that it does not know, and
    let it continue beyond everything that was given out before.
    """

    unknown_files: str = argument(
        "Unknown files",
        "report: only list them, and change nothing; keep: leave them where they are; delete: "
        "delete them after the grace period.",
        "report", enum=["report", "keep", "delete"],
    )  # fmt: skip
    second_name: bool = argument(
        "Second name",
        "The warehouse is in the same folder as before, under another name, such as another mount: "
        "both names stay right. Off: it was moved, or copied together with its database, and the "
        "old place is refused from then on.",
        False,
    )
    erased: list[str] = argument(
        "Erased",
        "Certificates of erasures that were kept elsewhere, each the text of a certificate.json on "
        "one line (in a terminal: files). The report says which of them the database does not "
        "know, so that they are to be erased again.",
        [], items={"type": "string", "maxLength": 10_000_000}, maxItems=10_000, section="More",
    )  # fmt: skip


def run(job: Job, arguments: Recover) -> RecoverReport:
    """Compare the database with its warehouse. Unless only a report is wanted, reconcile them, so
    that jobs may run again."""
    erased: ErasedSince = {"unknown_since": None, "then": []}
    for annex in hung(BeforeRecovery):
        erased |= annex.look(job.database, job.settings.warehouse, arguments.erased)
    report = recover(
        job.database,
        job.settings.warehouse,
        unknown_files=arguments.unknown_files,
        second_name=arguments.second_name,
        check=checks(job.installation),
        request_id=job.request_id,
    )
    for line in erased["then"]:
        job.say(line)
    return {**report, "erased": erased}


def said(_arguments: Recover, report: RecoverReport) -> str:
    """Say how database and warehouse differ."""
    known = "was restored or moved" if report["restored"] or report["moved"] else "is its own"
    back = ""
    if report["erased"]["unknown_since"]:
        back = "; what was erased after its backup is not known here, and is to be erased again"
    return (
        f"the database {known}; {counted(report['unknown_files'], 'unknown file')}, "
        f"{report['missing_files']:,} missing, of which {report['found']:,} are found{back}"
    )


ACTION = Action(__file__, Recover, run, said, UPKEEP, irreversible=True)
run_if_main(ACTION, __name__)
