"""Change the configuration of a reader group.

**Parameters.** Fields left empty are not changed. You can change whether the group is a subscriber
(then it is protected from its position on), how it releases events and when it times out, what it
does about a gap, which streams it reads (new ones from *Start*), whether its batches are aligned
and how far a reader may be ahead, how many checkpoints may wait, and which keys are pinned to which
readers.

**On failure.** One transaction: everything or nothing. Give the generation to refuse the change if
somebody else has changed the group in the meantime.
"""

from typing import Any

from weir.errors import InvalidInput
from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.group_forms import UpdateReaderGroup
from weir.operations.runner import main
from weir.reader_groups.groups.update import update_reader_group


def run(job: Job, arguments: UpdateReaderGroup) -> dict[str, Any]:
    """Update one group."""
    changes = arguments.changes
    if not changes:
        raise InvalidInput("nothing_to_change", "no setting is given; give at least one.")
    if arguments.generation >= 0:
        changes["generation"] = arguments.generation
    done = update_reader_group(
        job.database, arguments.reader_group, **changes, allow_loss=arguments.allow_loss,
        allow_truncated=arguments.allow_truncated, request_id=job.request_id,
    )  # fmt: skip
    job.say_all([*done["missing"], *done["reads"], *done["deletes"]])
    return done


def said(arguments: UpdateReaderGroup, _report: dict[str, Any]) -> str:
    """Say what was changed."""
    return f"reader group {arguments.reader_group} is changed: {', '.join(arguments.changes)}"


ACTION = Action(__file__, UpdateReaderGroup, run, said, READER_GROUPS, rehearsed=True)

if __name__ == "__main__":
    raise SystemExit(main(ACTION))
