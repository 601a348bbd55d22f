"""Make a stream read only for ever."""

import sys
from typing import Any

from weir.arguments import SealStream
from weir.controller.seal import seal_stream
from weir.job import Job, main
from weir.names import stream_name


def run(job: Job, arguments: SealStream) -> dict[str, Any]:
    """Seal one stream."""
    return seal_stream(job.database, stream_name(arguments.stream), request_id=job.request_id)


if __name__ == "__main__":
    sys.exit(main("seal_stream", run))
