"""Move a reader group to a starting point.

**Parameters.** The starting point: a checkpoint, a time, a cut, the head, the tail, or the group's
own start. Going back over committed events repeats outputs, so you must allow it. Open batches are
abandoned.

**On failure.** One transaction. A starting point whose events were truncated is refused, with the
number of missing events.
"""

from dataclasses import dataclass
from typing import Any

from weir.controller.ownership import check_warehouse_ownership
from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.form import (
    STARTING_POINT,
    STARTING_POINTS,
    argument,
    loss_argument,
    reader_group_argument,
    truncated_argument,
)
from weir.operations.group_settings import WRITTEN
from weir.reader_groups.groups.reset import reset_reader_group


@dataclass(frozen=True)
class ResetReaderGroup:
    """Move a reader group to a starting point."""

    reader_group: str = reader_group_argument()
    to: str = argument(
        "To",
        f"Where it continues: start (where it began), checkpoint NAME, {STARTING_POINT}.",
        **WRITTEN,
        examples=["start", "checkpoint NAME", *STARTING_POINTS],
    )
    allow_repeat: bool = argument(
        "Repeat", "Go back even if the group reads committed events again.", False
    )
    allow_loss: bool = loss_argument()
    allow_truncated: bool = truncated_argument("Retention")


def run(job: Job, arguments: ResetReaderGroup) -> dict[str, Any]:
    """Reset one group."""
    check_warehouse_ownership(job.database, job.settings.warehouse)
    done = reset_reader_group(
        job.database,
        arguments.reader_group,
        arguments.to,
        allow_repeat=arguments.allow_repeat,
        allow_loss=arguments.allow_loss,
        allow_truncated=arguments.allow_truncated,
        request_id=job.request_id,
    )
    job.say_all([*done["missing"], *done["reads"], *done["deletes"]])
    return done


ACTION = Action(ResetReaderGroup, run, READER_GROUPS)
