"""Delete an adjunct store with its versions."""

import sys
from typing import Any

from weir.adjunct.stores import delete_store
from weir.operations import DeleteAdjunctStore
from weir.operations.runner import Job, main


def run(job: Job, arguments: DeleteAdjunctStore) -> dict[str, Any]:
    """Delete one store."""
    return delete_store(job.database, arguments.adjunct_store, request_id=job.request_id)


if __name__ == "__main__":
    sys.exit(main("delete_adjunct_store", run))
