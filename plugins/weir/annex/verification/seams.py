"""Where verification hangs on the core: it proves cuts once they are recorded, looks at new files
before a compaction commits them, counts what is damaged, and lets a sweep keep what is not what was
recorded of it."""

from weir.annex.verification.footers import look_here
from weir.annex.verification.footers_in_tasks import looker
from weir.annex.verification.kept import forget_kept, keep
from weir.annex.verification.new_files import checking
from weir.annex.verification.prove import must_be_right, prove, said_of
from weir.compaction.run import NewFiles
from weir.installation.extras import has_spark
from weir.operations.action import Job
from weir.operations.steps import CutStep, Metric
from weir.retention.garbage import Guard


def _prove(job: Job, report: dict[str, object]) -> None:
    proven = prove(job.installation, looker(lambda: job.spark) if has_spark() else look_here)
    report["proven"] = proven.report()
    must_be_right(proven, report)


GUARD = Guard(keep, forget_kept)
METRIC = Metric(
    "weir_damaged_files",
    "Damage that verification has found and nobody has mended (weir.damage)",
)
NEW_FILES = NewFiles(checking)
CUTS = CutStep(_prove, lambda report: said_of(report["proven"]))
