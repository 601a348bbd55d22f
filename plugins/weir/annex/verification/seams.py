"""Where verification hangs on the core: it proves cuts once they are recorded, looks at new files
before a compaction commits them, counts what is damaged, and lets a sweep keep what is not what was
recorded of it."""

from sqlalchemy import Connection

from weir.annex.verification.footers import look_here
from weir.annex.verification.footers_in_tasks import looker
from weir.annex.verification.kept import forget_kept, keep
from weir.annex.verification.new_files import checking
from weir.annex.verification.prove import must_be_right, prove, said_of
from weir.compaction.run import NewFiles
from weir.installation.extras import has_spark
from weir.operations.action import Job
from weir.operations.shown import MOST, Part, Table, counted
from weir.operations.steps import CutStep, Metric
from weir.queries.annex.verification import tables as sql
from weir.retention.garbage import Guard


def _verified(connection: Connection, stream: str, after: str) -> Part:
    found = sql.verified(connection, stream=stream, after=after, most=MOST + 1)
    return Part(found[:MOST], found[MOST - 1].stream if len(found) > MOST else "")


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
DAMAGE = Table(
    "damage", "Damage",
    "What verification has found that is not as recorded, and what to do about it.",
    "Nothing that is not as recorded was found.",
    counted(lambda c, stream, passed: sql.damage(c, stream=stream, passed=passed, most=MOST + 1)),
)  # fmt: skip
VERIFIED = Table(
    "verified", "Verification",
    "When the files of each stream were last compared with what was recorded of them.",
    "There is no stream.", _verified,
)  # fmt: skip
