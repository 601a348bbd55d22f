"""Create a stream."""

import sys
from typing import Any

from weir.controller.streams import create_stream
from weir.model.names import stream_name
from weir.operations import CreateStream
from weir.operations.runner import Job, main


def run(job: Job, arguments: CreateStream) -> dict[str, Any]:
    """Check the routing key and the event time with Spark's own parser, then create the stream."""
    from weir.spark.event_time import check_event_time
    from weir.spark.expressions import check_expression, parse_columns

    name = stream_name(arguments.stream, reserved=False)
    used = check_expression(arguments.routing_key, "routing key").columns
    fields = parse_columns(job.spark, arguments.schema, used) if arguments.schema.strip() else None
    if event_time := arguments.event_time.strip():
        check_event_time(name, event_time, fields, lambda: job.spark)
    return create_stream(
        job.database,
        name,
        segments=arguments.segments,
        fields=fields,
        request_id=job.request_id,
        **arguments.configuration.__dict__,
    )


if __name__ == "__main__":
    sys.exit(main("create_stream", run))
