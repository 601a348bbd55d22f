"""Record the tail of each stream that has moved.

The recorded cuts are the retention set. One statement records all streams.

**On failure.** Everything done so far is kept, and the next run does the rest.
"""

from dataclasses import dataclass
from typing import Any

from weir.errors import counted
from weir.operations.action import UPKEEP, Action, Job
from weir.operations.runner import main
from weir.retention.capture import capture


@dataclass(frozen=True)
class StreamCuts:
    """Record the tail of each stream that has moved."""


def run(job: Job, _arguments: StreamCuts) -> dict[str, Any]:
    """Record all tails in one statement."""
    return {"captured": capture(job.database)}


def said(_arguments: StreamCuts, report: dict[str, Any]) -> str:
    """Say how many streams have grown."""
    return f"the tails of {counted(len(report['captured']), 'stream')} are recorded"


ACTION = Action(__file__, StreamCuts, run, said, UPKEEP)

if __name__ == "__main__":
    raise SystemExit(main(ACTION))
