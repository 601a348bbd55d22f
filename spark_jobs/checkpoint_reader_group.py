"""Record the position of a reader group under a name."""

import sys
from typing import Any

from weir.operations import CheckpointReaderGroup
from weir.operations.runner import Job, main
from weir.reader_groups.checkpoints.lifecycle import cancel_checkpoint, checkpoint


def run(job: Job, arguments: CheckpointReaderGroup) -> dict[str, Any]:
    """Make one checkpoint, or cancel one that waits."""
    if arguments.cancel:
        return cancel_checkpoint(
            job.database, arguments.reader_group, arguments.name, request_id=job.request_id
        )
    made = checkpoint(
        job.database,
        arguments.reader_group,
        name=arguments.name,
        barrier=arguments.barrier,
        patience=arguments.patience,
        request_id=job.request_id,
    )
    return made or {}


if __name__ == "__main__":
    sys.exit(main("checkpoint_reader_group", run))
