"""Seal active segments and create new ones over the same key ranges."""

import sys
from typing import Any

from weir.controller.scale import scale
from weir.model.names import stream_name
from weir.operations import ScaleStream
from weir.operations.runner import Job, main


def run(job: Job, arguments: ScaleStream) -> dict[str, Any]:
    """Scale one stream."""
    return scale(
        job.database,
        stream_name(arguments.stream),
        seal=arguments.segments,
        boundaries=arguments.boundaries,
        parts=arguments.parts,
        reason=arguments.reason,
        request_id=job.request_id,
    )


if __name__ == "__main__":
    sys.exit(main("scale_stream", run))
