"""Record the tail of each stream that has moved, and prove it: compare new files with the record.

The recorded cuts are the retention set. One statement records all streams. Then one Spark job reads
the footer of each file that was committed since the cut before, and compares its size, rows and
ranks and the hash of its end with what was recorded. The run that finds what differs fails, and
says where it is listed. `weir.retention_set` says when each cut was proven (`proven_at`): all files
before it were looked at, and no damage of the stream was known. A stream with damage has cuts, too;
they are proven once it is mended. A run looks at about 20,000 files, of the streams with the fewest
first; the next one goes on there.
A run with new files then reads a part of all files (`verify_bytes`), so that what is in them is
compared in turn, each stream at most once an hour. A run without new files reads nothing, and
starts no Spark.

**On failure.** Everything done so far is kept, and the next run does the rest.
"""

from dataclasses import dataclass
from typing import NotRequired, TypedDict, cast

from weir.errors import counted
from weir.operations.action import UPKEEP, Action, Job
from weir.operations.runner import run_if_main
from weir.operations.steps import CutStep
from weir.retention.capture import Captured, capture
from weir.seams import hung


@dataclass(frozen=True)
class StreamCuts:
    """Record the tail of each stream that has moved, and compare new files with what was recorded
    of them."""


class StreamCutsReport(TypedDict):
    """Which tails were recorded, and what of the files before them is proven."""

    captured: list[Captured]
    proven: NotRequired[dict[str, object]]


def run(job: Job, _arguments: StreamCuts) -> StreamCutsReport:
    """Record all tails in one statement, then look at the files before them."""
    report: dict[str, object] = {"captured": capture(job.database)}
    for step in hung(CutStep):
        step.run(job, report)
    return cast(StreamCutsReport, report)


def said(_arguments: StreamCuts, report: StreamCutsReport) -> str:
    """Say how many streams have grown, and how many files were looked at."""
    tails = f"the tails of {counted(len(report['captured']), 'stream')} are recorded"
    return "; ".join([tails, *(step.said(report) for step in hung(CutStep))])


ACTION = Action(__file__, StreamCuts, run, said, UPKEEP, uses_spark=True)
run_if_main(ACTION, __name__)
