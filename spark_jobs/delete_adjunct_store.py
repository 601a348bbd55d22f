"""Delete an adjunct store with all its versions.

**Parameters.** The store. Its stream is kept, and no longer waits for it. The files are deleted
after the grace period. With *Dry run*, which is on at first, the run only says what would be lost.
Without it the task shows that, and waits until a person approves it (*Required Actions*).

**On failure.** While an open batch of a consumer is read with the store, nothing is deleted.
"""

from dataclasses import dataclass

from weir.adjunct.stores import StoreDeleted, delete_store
from weir.database.connection import Database
from weir.errors import counted
from weir.operations.action import STREAMS, Action, Job
from weir.operations.approval import Loss, things
from weir.operations.form import dry_run_argument
from weir.operations.runner import run_if_main
from weir.operations.store_settings import store_argument


@dataclass(frozen=True)
class DeleteAdjunctStore:
    """Delete an adjunct store with its versions; its stream is kept."""

    adjunct_store: str = store_argument()
    dry_run: bool = dry_run_argument("Only say what would be deleted.")


def measure(job: Job, arguments: DeleteAdjunctStore) -> Loss | None:
    """Return what the store has."""
    return None if arguments.dry_run else _tried(job.database, arguments)[1]


def _tried(database: Database, arguments: DeleteAdjunctStore) -> tuple[StoreDeleted, Loss]:
    found = delete_store(database, arguments.adjunct_store, dry_run=True, request_id="")
    lines = [
        f"would delete adjunct store {found['adjunct_store']} with "
        f"{counted(found.pop('versions'), 'version')} ({found.pop('bytes'):,} bytes); its stream "
        f"{found['stream']} is kept"
    ]  # versions come and go by themselves: what is approved is the store
    of = things(database, stores=[arguments.adjunct_store])
    return {**found, "dry_run": True}, Loss(lines, {**found, **of})


def run(job: Job, arguments: DeleteAdjunctStore) -> StoreDeleted:
    """Delete one store."""
    return job.tried_or_done(
        arguments.dry_run,
        lambda database: _tried(database, arguments),
        lambda database: delete_store(database, arguments.adjunct_store, request_id=job.request_id),
    )


def said(arguments: DeleteAdjunctStore, _report: StoreDeleted) -> str:
    """Say what was deleted."""
    if arguments.dry_run:
        return f"adjunct store {arguments.adjunct_store} is not deleted: this was a dry run"
    return f"adjunct store {arguments.adjunct_store} is deleted"


ACTION = Action(
    __file__,
    DeleteAdjunctStore,
    run,
    said,
    STREAMS,
    irreversible=True,
    rehearsed=True,
    measure=measure,
)
run_if_main(ACTION, __name__)
