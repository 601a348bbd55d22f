"""Move the head of a stream to a cut."""

import sys
from typing import Any

from weir.arguments import TruncateStream
from weir.controller.truncation import truncate
from weir.garbage import check_warehouse_ownership
from weir.job import Job, main
from weir.names import stream_name


def run(job: Job, arguments: TruncateStream) -> dict[str, Any]:
    """Truncate one stream."""
    check_warehouse_ownership(job.database, job.settings.warehouse)
    return truncate(
        job.database, stream_name(arguments.stream), arguments.cut, request_id=job.request_id
    )


if __name__ == "__main__":
    sys.exit(main("truncate_stream", run))
