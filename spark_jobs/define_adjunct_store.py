"""Define an adjunct store."""

import sys
from typing import Any

from weir.adjunct.stores import define_store
from weir.model.amounts import parse_age
from weir.model.names import stream_name
from weir.operations import DefineAdjunctStore
from weir.operations.runner import Job, main


def run(job: Job, arguments: DefineAdjunctStore) -> dict[str, Any]:
    """Check the definition with the columns of the stream, then define the store."""
    from weir.spark.adjuncts.check import check_definition

    stream, definition = stream_name(arguments.stream), arguments.definition
    configuration = arguments.configuration
    check_definition(
        job.spark, job.database, job.settings, arguments.adjunct_store, stream, definition
    )
    made = define_store(
        job.database, arguments.adjunct_store, stream, configuration, definition,
        time_out=parse_age(arguments.time_out), request_id=job.request_id,
    )  # fmt: skip
    job.say_all([*made["missing"], *made["deletes"]])
    return made


if __name__ == "__main__":
    sys.exit(main("define_adjunct_store", run))
