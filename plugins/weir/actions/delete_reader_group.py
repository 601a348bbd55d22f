"""Delete a reader group with its positions, batches and checkpoints.

**Parameters.** The group. Its results are kept. It no longer holds any events back. You cannot undo
this.

**On failure.** One transaction: everything or nothing.
"""

from dataclasses import dataclass
from typing import Any

from weir.controller.ownership import check_warehouse_ownership
from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.form import (
    reader_group_argument,
)
from weir.reader_groups.groups.lifecycle import delete_reader_group


@dataclass(frozen=True)
class DeleteReaderGroup:
    """Delete a reader group with its positions, batches and checkpoints; its outputs are kept."""

    reader_group: str = reader_group_argument()


def run(job: Job, arguments: DeleteReaderGroup) -> dict[str, Any]:
    """Delete one group."""
    check_warehouse_ownership(job.database, job.settings.warehouse)
    return delete_reader_group(job.database, arguments.reader_group, request_id=job.request_id)


ACTION = Action(DeleteReaderGroup, run, READER_GROUPS, irreversible=True)
