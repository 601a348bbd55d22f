"""Change the configuration of a reader group.

**Parameters.** Fields left empty are not changed. You can change whether the group is a subscriber
(then it is protected from its position on), how it releases events and when it times out, what it
does about a gap, which streams it reads (new ones from *Start*), whether its batches are aligned
and how far a reader may be ahead, how many checkpoints may wait, and which keys are pinned to which
readers.

**On failure.** One transaction: everything or nothing. Give the generation to refuse the change if
somebody else has changed the group in the meantime.
"""

from typing import cast

from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.asked import bring
from weir.operations.group_forms import UpdateReaderGroup
from weir.operations.runner import run_if_main
from weir.reader_groups.groups.update import GroupUpdated


def run(job: Job, arguments: UpdateReaderGroup) -> GroupUpdated:
    """Update one group."""
    done = bring(
        job, arguments.asked, loss=arguments.allow_loss, truncated=arguments.allow_truncated
    )
    return cast(GroupUpdated, done)


def said(arguments: UpdateReaderGroup, _report: GroupUpdated) -> str:
    """Say what was changed."""
    return f"reader group {arguments.reader_group} is changed: {', '.join(arguments.asked.changed)}"


ACTION = Action(__file__, UpdateReaderGroup, run, said, READER_GROUPS, rehearsed=True)
run_if_main(ACTION, __name__)
