"""Make a stream read-only for ever."""

import sys
from typing import Any

from weir.controller.seal import seal_stream
from weir.model.names import stream_name
from weir.operations import SealStream
from weir.operations.runner import Job, main


def run(job: Job, arguments: SealStream) -> dict[str, Any]:
    """Seal one stream."""
    return seal_stream(job.database, stream_name(arguments.stream), request_id=job.request_id)


if __name__ == "__main__":
    sys.exit(main("seal_stream", run))
