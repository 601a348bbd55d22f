"""Move a reader group to a starting point."""

import sys
from typing import Any

from weir.controller.ownership import check_warehouse_ownership
from weir.operations import ResetReaderGroup
from weir.operations.runner import Job, main
from weir.reader_groups.groups.reset import reset_reader_group


def run(job: Job, arguments: ResetReaderGroup) -> dict[str, Any]:
    """Reset one group."""
    check_warehouse_ownership(job.database, job.settings.warehouse)
    done = reset_reader_group(
        job.database,
        arguments.reader_group,
        arguments.to,
        allow_repeat=arguments.allow_repeat,
        allow_loss=arguments.allow_loss,
        allow_truncated=arguments.allow_truncated,
        request_id=job.request_id,
    )
    job.say_all([*done["missing"], *done["reads"], *done["deletes"]])
    return done


if __name__ == "__main__":
    sys.exit(main("reset_reader_group", run))
