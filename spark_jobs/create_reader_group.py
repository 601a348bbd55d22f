"""Create a reader group.

**Parameters.** Its name, the streams that it reads, where it begins, and whether it is a
subscriber: from this moment on, retention keeps events until all subscribers have released them.

**On failure.** If anything is invalid, nothing is created.
"""

from typing import cast

from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.asked import bring
from weir.operations.group_forms import CreateReaderGroup
from weir.operations.runner import run_if_main
from weir.reader_groups.groups.lifecycle import GroupCreated


def run(job: Job, arguments: CreateReaderGroup) -> GroupCreated:
    """Create one group."""
    done = bring(
        job, arguments.asked, loss=arguments.allow_loss, truncated=arguments.allow_truncated
    )
    return cast(GroupCreated, done)


def said(arguments: CreateReaderGroup, report: GroupCreated) -> str:
    """Say what the group reads, from where."""
    streams = ", ".join(sorted(report["start"]))
    return f"reader group {arguments.reader_group} reads {streams}, from {arguments.start}"


ACTION = Action(__file__, CreateReaderGroup, run, said, READER_GROUPS, rehearsed=True)
run_if_main(ACTION, __name__)
