"""Record the tail of each stream that has moved."""

import sys
from typing import Any

from weir.operations import StreamCuts
from weir.operations.runner import Job, main
from weir.retention.capture import capture


def run(job: Job, _arguments: StreamCuts) -> dict[str, Any]:
    """Record all tails in one statement."""
    return {"captured": capture(job.database)}


if __name__ == "__main__":
    sys.exit(main("stream_cuts", run))
