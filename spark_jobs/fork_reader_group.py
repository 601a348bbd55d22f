"""Create a reader group that begins where another one is or was.

**Parameters.** The existing group, the new name, and where to begin: at the group's position, at
one of its checkpoints, or at any other starting point. Use it to replay or to debug; the existing
group does not change. The new group has its streams, its end and its settings, but not its pins,
and is a subscriber unless you say otherwise.

**On failure.** One transaction. A starting point whose events were truncated is refused, with the
number of missing events.
"""

from dataclasses import dataclass

from weir.model.names import READER_GROUP_PATTERN
from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.form import (
    LONGEST_CUT,
    STARTING_POINT,
    STARTING_POINTS,
    argument,
    loss_argument,
    reader_group_argument,
    truncated_argument,
)
from weir.operations.group_settings import SETTINGS
from weir.operations.runner import run_if_main
from weir.reader_groups.groups.lifecycle import GroupCreated, fork_reader_group


@dataclass(frozen=True)
class ForkReaderGroup:
    """Create a reader group that begins where another one is or was."""

    reader_group: str = reader_group_argument("The group to fork; it does not change.")
    new_reader_group: str = argument(
        "New reader group", "The name of the new group.", pattern=READER_GROUP_PATTERN
    )
    at: str = argument(
        "At", f"checkpoint NAME (of the first group), {STARTING_POINT}. Empty: its position now.",
        "", maxLength=LONGEST_CUT,
        examples=["position", "checkpoint NAME", *STARTING_POINTS],
    )  # fmt: skip
    subscriber: bool = SETTINGS["subscriber"].created()
    allow_loss: bool = loss_argument()
    allow_truncated: bool = truncated_argument()


def run(job: Job, arguments: ForkReaderGroup) -> GroupCreated:
    """Fork one group."""
    made = fork_reader_group(
        job.database,
        arguments.reader_group,
        arguments.new_reader_group,
        at=arguments.at,
        subscriber=arguments.subscriber,
        allow_loss=arguments.allow_loss,
        allow_truncated=arguments.allow_truncated,
        request_id=job.request_id,
    )
    job.say_all([*made["missing"], *made["reads"], *made["deletes"]])
    return made


def said(arguments: ForkReaderGroup, _report: GroupCreated) -> str:
    """Say which groups there are now."""
    new, old = arguments.new_reader_group, arguments.reader_group
    at = arguments.at or "the positions"
    return f"reader group {new} reads on from {at} of reader group {old}"


ACTION = Action(__file__, ForkReaderGroup, run, said, READER_GROUPS, rehearsed=True)
run_if_main(ACTION, __name__)
