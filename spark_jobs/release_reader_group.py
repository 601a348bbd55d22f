"""Let retention truncate what a subscriber no longer needs.

**Parameters.** A reader group whose release is manual, and a starting point: retention no longer
keeps the events before it for this group. The default is the position of the group.

**On failure.** If the starting point is invalid, or behind what the group released before, nothing
is released.
"""

from dataclasses import dataclass

from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.form import (
    STARTING_POINT,
    STARTING_POINTS,
    argument,
    reader_group_argument,
)
from weir.operations.group_settings import WRITTEN
from weir.operations.runner import run_if_main
from weir.retention.release import Released, release


@dataclass(frozen=True)
class ReleaseReaderGroup:
    """Let retention truncate what a subscriber no longer needs."""

    reader_group: str = reader_group_argument()
    at: str = argument(
        "At", f"Release what is before: position (now), checkpoint NAME, {STARTING_POINT}.",
        "position", **WRITTEN,
        examples=["position", "checkpoint NAME", *STARTING_POINTS],
    )  # fmt: skip
    generation: int = argument(
        "Generation", "Refuse the release if the group has another generation. -1: any.",
        -1, minimum=-1, maximum=2**31 - 1,
        section="More",
    )  # fmt: skip


def run(job: Job, arguments: ReleaseReaderGroup) -> Released:
    """Release one group's events before a position."""
    return release(
        job.database,
        arguments.reader_group,
        arguments.at,
        generation=None if arguments.generation < 0 else arguments.generation,
        request_id=job.request_id,
    )


def said(arguments: ReleaseReaderGroup, _report: Released) -> str:
    """Say what was released."""
    return f"reader group {arguments.reader_group} has released what lies before {arguments.at}"


ACTION = Action(
    __file__, ReleaseReaderGroup, run, said, READER_GROUPS, irreversible=True, rehearsed=True
)
run_if_main(ACTION, __name__)
