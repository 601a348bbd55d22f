"""Define an adjunct store."""

import sys
from dataclasses import fields
from typing import Any

from weir.adjunct.stores import define_store
from weir.errors import InvalidInput
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.amounts import parse_age
from weir.model.names import stream_name
from weir.operations import DefineAdjunctStore
from weir.operations.runner import Job, main


def run(job: Job, arguments: DefineAdjunctStore) -> dict[str, Any]:
    """Check the definition with the columns of the stream, then define the store."""
    from weir.spark.adjunct_check import check_definition

    stream = stream_name(arguments.stream)
    given = {one.name: getattr(arguments, one.name) for one in fields(AdjunctDefinition)}
    definition = AdjunctDefinition(**given)
    keep = parse_age(arguments.keep_versions)
    if keep is None:
        raise InvalidInput(
            "argument_invalid",
            f"keep_versions is {arguments.keep_versions!r}; give an age such as 1 d, as versions "
            "are not kept for ever.",
        )
    configuration = AdjunctConfiguration(
        layout=arguments.layout, bootstrap=arguments.bootstrap, missing=arguments.missing,
        patience=arguments.patience, null_key=arguments.null_key, on_error=arguments.on_error,
        on_gap=arguments.on_gap, keep_versions=keep, history=parse_age(arguments.history),
    )  # fmt: skip
    check_definition(
        job.spark, job.database, job.settings, arguments.adjunct_store, stream, definition
    )
    return define_store(
        job.database, arguments.adjunct_store, stream, configuration, definition,
        time_out=parse_age(arguments.time_out), request_id=job.request_id,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main("define_adjunct_store", run))
