"""Delete a reader group."""

import sys
from typing import Any

from weir.controller.ownership import check_warehouse_ownership
from weir.operations import DeleteReaderGroup
from weir.operations.runner import Job, main
from weir.reader_groups.groups.lifecycle import delete_reader_group


def run(job: Job, arguments: DeleteReaderGroup) -> dict[str, Any]:
    """Delete one group."""
    check_warehouse_ownership(job.database, job.settings.warehouse)
    return delete_reader_group(job.database, arguments.reader_group, request_id=job.request_id)


if __name__ == "__main__":
    sys.exit(main("delete_reader_group", run))
