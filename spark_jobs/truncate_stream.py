"""Move the head of a stream to a starting point, or report what that would truncate."""

import sys
from typing import Any

from weir.controller.ownership import check_warehouse_ownership
from weir.model.names import stream_name
from weir.operations import TruncateStream
from weir.operations.runner import Job, main
from weir.retention.manual_truncation import in_words, truncate_before


def run(job: Job, arguments: TruncateStream) -> dict[str, Any]:
    """Truncate one stream."""
    dry_run = arguments.dry_run
    if not dry_run:
        check_warehouse_ownership(job.database, job.settings.warehouse)
    done = truncate_before(
        job.database, stream_name(arguments.stream), arguments.cut, arguments.reader_group,
        dry_run=dry_run, request_id=job.request_id,
    )  # fmt: skip
    for line in in_words(done, dry_run=dry_run):
        job.say(line)
    return done | {"dry_run": dry_run}


if __name__ == "__main__":
    sys.exit(main("truncate_stream", run))
