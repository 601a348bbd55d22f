"""Change an adjunct store."""

import sys
from dataclasses import replace
from typing import Any

from weir.adjunct.stores import read_store, update_store
from weir.errors import InvalidInput
from weir.model.amounts import parse_age
from weir.operations import UpdateAdjunctStore
from weir.operations.runner import Job, main


def run(job: Job, arguments: UpdateAdjunctStore) -> dict[str, Any]:
    """Update one store. A changed definition is checked with the columns of the stream."""
    name = arguments.adjunct_store
    changes, redefined = arguments.changes, arguments.redefined
    if not (changes or redefined or arguments.time_out):
        raise InvalidInput("nothing_to_change", "no setting is given; give at least one.")
    if redefined:
        from weir.spark.adjuncts.check import check_definition

        store = job.database.transaction(lambda c: read_store(c, name))
        wanted = replace(store.definition, **redefined)
        check_definition(job.spark, job.database, job.settings, name, store.stream, wanted)
    return update_store(
        job.database, name, changes, redefined, time_out=parse_age(arguments.time_out),
        change_time_out=bool(arguments.time_out), request_id=job.request_id,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main("update_adjunct_store", run))
