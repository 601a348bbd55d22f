"""Delete an adjunct store with all its versions.

**Parameters.** The store. Its stream is kept, and no longer waits for it. The files are deleted
after the grace period.

**On failure.** While an open batch of a consumer is read with the store, nothing is deleted.
"""

from dataclasses import dataclass
from typing import Any

from weir.adjunct.stores import delete_store
from weir.operations.action import STREAMS, Action, Job
from weir.operations.store_settings import store_argument


@dataclass(frozen=True)
class DeleteAdjunctStore:
    """Delete an adjunct store with its versions; its stream is kept."""

    adjunct_store: str = store_argument()


def run(job: Job, arguments: DeleteAdjunctStore) -> dict[str, Any]:
    """Delete one store."""
    return delete_store(job.database, arguments.adjunct_store, request_id=job.request_id)


ACTION = Action(DeleteAdjunctStore, run, STREAMS, irreversible=True)
