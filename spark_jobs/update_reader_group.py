"""Change the configuration of a reader group."""

import sys
from typing import Any

from weir.errors import InvalidInput
from weir.operations import UpdateReaderGroup
from weir.operations.runner import Job, main
from weir.reader_groups.groups.update import update_reader_group


def run(job: Job, arguments: UpdateReaderGroup) -> dict[str, Any]:
    """Update one group."""
    changes = arguments.changes
    if not changes:
        raise InvalidInput("nothing_to_change", "no setting is given; give at least one.")
    if arguments.generation >= 0:
        changes["generation"] = arguments.generation
    done = update_reader_group(
        job.database, arguments.reader_group, **changes, allow_loss=arguments.allow_loss,
        allow_truncated=arguments.allow_truncated, request_id=job.request_id,
    )  # fmt: skip
    job.say_all([*done["missing"], *done["reads"], *done["deletes"]])
    return done


if __name__ == "__main__":
    sys.exit(main("update_reader_group", run))
