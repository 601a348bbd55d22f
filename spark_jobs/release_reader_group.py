"""Let retention truncate what a subscriber no longer needs."""

import sys
from typing import Any

from weir.operations import ReleaseReaderGroup
from weir.operations.runner import Job, main
from weir.retention.release import release


def run(job: Job, arguments: ReleaseReaderGroup) -> dict[str, Any]:
    """Release one group's events before a position."""
    return release(
        job.database,
        arguments.reader_group,
        arguments.at,
        generation=None if arguments.generation < 0 else arguments.generation,
        request_id=job.request_id,
    )


if __name__ == "__main__":
    sys.exit(main("release_reader_group", run))
