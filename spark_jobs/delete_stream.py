"""Delete a sealed stream with everything that it owns."""

import sys
from typing import Any

from weir.controller.ownership import check_warehouse_ownership
from weir.model.names import stream_name
from weir.operations import DeleteStream
from weir.operations.runner import Job, main
from weir.retention.delete_stream import delete_stream


def run(job: Job, arguments: DeleteStream) -> dict[str, Any]:
    """Delete one stream; its files are deleted by weir_upkeep after the grace period."""
    check_warehouse_ownership(job.database, job.settings.warehouse)
    return delete_stream(
        job.database,
        stream_name(arguments.stream),
        unread_too=arguments.unread_too,
        request_id=job.request_id,
    )


if __name__ == "__main__":
    sys.exit(main("delete_stream", run))
