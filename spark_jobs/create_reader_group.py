"""Create a reader group.

**Parameters.** Its name, the streams that it reads, where it begins, and whether it is a
subscriber: from this moment on, retention keeps events until all subscribers have released them.

**On failure.** If anything is invalid, nothing is created.
"""

from typing import Any

from weir.operations.action import READER_GROUPS, Action, Job, Report
from weir.operations.asked import bring
from weir.operations.group_forms import CreateReaderGroup
from weir.operations.runner import main


def run(job: Job, arguments: CreateReaderGroup) -> Report:
    """Create one group."""
    return bring(
        job, arguments.asked, loss=arguments.allow_loss, truncated=arguments.allow_truncated
    )


def said(arguments: CreateReaderGroup, report: dict[str, Any]) -> str:
    """Say what the group reads, from where."""
    streams = ", ".join(sorted(report["start"]))
    return f"reader group {arguments.reader_group} reads {streams}, from {arguments.start}"


ACTION = Action(__file__, CreateReaderGroup, run, said, READER_GROUPS, rehearsed=True)

if __name__ == "__main__":
    raise SystemExit(main(ACTION))
