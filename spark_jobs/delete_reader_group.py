"""Delete a reader group."""

import sys
from typing import Any

from weir.arguments import DeleteReaderGroup
from weir.garbage import installation
from weir.job import Job, main
from weir.reader_groups.changes import delete_reader_group
from weir.warehouse import claim


def run(job: Job, arguments: DeleteReaderGroup) -> dict[str, Any]:
    """Delete one group."""
    claim(job.settings.warehouse, *installation(job.database))
    return delete_reader_group(job.database, arguments.reader_group, request_id=job.request_id)


if __name__ == "__main__":
    sys.exit(main("delete_reader_group", run))
