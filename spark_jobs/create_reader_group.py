"""Create a reader group."""

import sys
from typing import Any

from weir.model.names import stream_name
from weir.operations import CreateReaderGroup
from weir.operations.runner import Job, main
from weir.reader_groups.groups.lifecycle import create_reader_group


def run(job: Job, arguments: CreateReaderGroup) -> dict[str, Any]:
    """Create one group."""
    made = create_reader_group(
        job.database,
        arguments.reader_group,
        [stream_name(stream) for stream in arguments.streams],
        start=arguments.start,
        end=arguments.end,
        allow_loss=arguments.allow_loss,
        allow_truncated=arguments.allow_truncated,
        request_id=job.request_id,
        **arguments.configuration.__dict__,
    )
    job.say_all([*made["missing"], *made["reads"], *made["deletes"]])
    return made


if __name__ == "__main__":
    sys.exit(main("create_reader_group", run))
