"""Create a stream."""

import sys
from typing import Any

from weir.controller.streams import create_stream
from weir.model.names import stream_name
from weir.operations import CreateStream
from weir.operations.expressions import check_time, key_columns
from weir.operations.runner import Job, main


def run(job: Job, arguments: CreateStream) -> dict[str, Any]:
    """Check the routing key and the event time, then create the stream. Only expressions and
    columns need Spark, whose own parser reads them."""
    name, wanted = stream_name(arguments.stream, reserved=False), arguments.configuration
    used, fields = key_columns(wanted.routing_key), None
    if arguments.schema.strip():
        from weir.spark.users.expressions import check_key, parse_columns

        fields = parse_columns(job.spark, arguments.schema, used)
        check_key(job.spark, wanted.routing_key, fields)
    if wanted.event_time:
        check_time(name, wanted.event_time, fields, lambda: job.spark)
    made = create_stream(
        job.database,
        name,
        segments=arguments.segments,
        fields=fields,
        request_id=job.request_id,
        **wanted.__dict__,
    )
    job.say_all(made["deletes"])
    return made


if __name__ == "__main__":
    sys.exit(main("create_stream", run))
