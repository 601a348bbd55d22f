"""Take a reader out of a group by hand."""

import sys
from typing import Any

from weir.controller.ownership import check_warehouse_ownership
from weir.operations import ReaderOffline
from weir.operations.runner import Job, main
from weir.reader_groups.groups.readers import reader_offline


def run(job: Job, arguments: ReaderOffline) -> dict[str, Any]:
    """Take one reader offline."""
    check_warehouse_ownership(job.database, job.settings.warehouse)
    return reader_offline(
        job.database,
        arguments.reader_group,
        arguments.reader,
        arguments.position,
        request_id=job.request_id,
    )


if __name__ == "__main__":
    sys.exit(main("reader_offline", run))
