"""Create a reader group that begins where another one is or was."""

import sys
from typing import Any

from weir.operations import ForkReaderGroup
from weir.operations.runner import Job, main
from weir.reader_groups.groups.lifecycle import fork_reader_group


def run(job: Job, arguments: ForkReaderGroup) -> dict[str, Any]:
    """Fork one group."""
    made = fork_reader_group(
        job.database,
        arguments.reader_group,
        arguments.new_reader_group,
        at=arguments.at,
        subscriber=arguments.subscriber,
        allow_loss=arguments.allow_loss,
        allow_truncated=arguments.allow_truncated,
        request_id=job.request_id,
    )
    job.say_all([*made["missing"], *made["reads"], *made["deletes"]])
    return made


if __name__ == "__main__":
    sys.exit(main("fork_reader_group", run))
