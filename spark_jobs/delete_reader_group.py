"""Delete a reader group with its positions, batches and checkpoints.

**Parameters.** The group. Its results are kept. It no longer holds any events back. With *Dry
run*, which is on at first, the run only says what would be lost. Without it the task shows that,
and waits until a person approves it (*Required Actions*). You cannot undo this.

**On failure.** One transaction: everything or nothing.
"""

from dataclasses import dataclass

from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.errors import counted
from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.approval import Loss, things
from weir.operations.form import dry_run_argument, reader_group_argument
from weir.operations.runner import run_if_main
from weir.reader_groups.groups.lifecycle import GroupDeleted, delete_reader_group


@dataclass(frozen=True)
class DeleteReaderGroup:
    """Delete a reader group with its positions, batches and checkpoints; its outputs are kept."""

    reader_group: str = reader_group_argument()
    dry_run: bool = dry_run_argument("Only say what would be deleted, and what that releases.")


def measure(job: Job, arguments: DeleteReaderGroup) -> Loss | None:
    """Return what the group has, and what its deletion releases."""
    return None if arguments.dry_run else _tried(job.database, arguments)[1]


def _tried(database: Database, arguments: DeleteReaderGroup) -> tuple[GroupDeleted, Loss]:
    found = delete_reader_group(database, arguments.reader_group, dry_run=True, request_id="")
    released = found.pop("deletes")  # which grows with what is appended meanwhile
    lines = [
        f"would delete reader group {arguments.reader_group} with its positions in "
        f"{', '.join(sorted(found['position'])) or 'no stream'} and "
        f"{counted(found['checkpoints'], 'checkpoint')} (open batches: {found['batches']}), which "
        "can't be undone"
    ]
    of = things(database, streams=found["position"], groups=[arguments.reader_group])
    return {**found, "dry_run": True}, Loss([*lines, *released], {**found, **of})


def run(job: Job, arguments: DeleteReaderGroup) -> GroupDeleted:
    """Delete one group."""
    if not arguments.dry_run:
        check_warehouse_ownership(job.database, job.settings.warehouse)
    return job.tried_or_done(
        arguments.dry_run,
        lambda database: _tried(database, arguments),
        lambda database: delete_reader_group(
            database, arguments.reader_group, request_id=job.request_id
        ),
    )


def said(arguments: DeleteReaderGroup, _report: GroupDeleted) -> str:
    """Say what was deleted."""
    if arguments.dry_run:
        return f"reader group {arguments.reader_group} is not deleted: this was a dry run"
    return f"reader group {arguments.reader_group} is deleted"


ACTION = Action(
    __file__,
    DeleteReaderGroup,
    run,
    said,
    READER_GROUPS,
    irreversible=True,
    rehearsed=True,
    measure=measure,
)
run_if_main(ACTION, __name__)
