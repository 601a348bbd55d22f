"""Create a stream.

**Parameters.** The name of the stream, its routing key, the number of segments to begin with, and
what to do with rows that have no key or do not fit. Defaults: one segment, refuse such rows,
truncate what all subscribers have released.

**On failure.** If anything is invalid, nothing is created. A run that is retried or cleared returns
what it did before.
"""

from typing import Any

from weir.controller.streams import create_stream
from weir.errors import counted
from weir.model.names import stream_name
from weir.operations.action import STREAMS, Action, Job
from weir.operations.expressions import check_time, checked_columns, key_columns
from weir.operations.runner import main
from weir.operations.stream_forms import CreateStream


def run(job: Job, arguments: CreateStream) -> dict[str, Any]:
    """Check the columns, the routing key and the event time, then create the stream."""
    name, wanted = stream_name(arguments.stream, reserved=False), arguments.configuration
    if arguments.schema.strip():
        fields = checked_columns(arguments.schema, wanted.routing_key)
    else:
        key_columns(wanted.routing_key)
        fields = None
    if wanted.event_time:
        check_time(name, wanted.event_time, fields)
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


def said(arguments: CreateStream, report: dict[str, Any]) -> str:
    """Say what was created."""
    count = counted(len(report["segments"]), "segment")
    return (
        f"stream {report['stream']} is created, with routing key {arguments.routing_key}, {count}"
    )


ACTION = Action(__file__, CreateStream, run, said, STREAMS, rehearsed=True)

if __name__ == "__main__":
    raise SystemExit(main(ACTION))
