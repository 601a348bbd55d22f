"""Reconcile a database that was restored, moved or failed over with its warehouse."""

import sys
from typing import Any

from weir.operations import Recover
from weir.operations.runner import Job, main
from weir.recovery.recover import recover


def run(job: Job, arguments: Recover) -> dict[str, Any]:
    """Compare the database with its warehouse. Unless only a report is wanted, reconcile them, so
    that jobs may run again."""
    return recover(
        job.database,
        job.settings.warehouse,
        unknown_files=arguments.unknown_files,
        second_name=arguments.second_name,
        request_id=job.request_id,
    )


if __name__ == "__main__":
    sys.exit(main("recover", run))
