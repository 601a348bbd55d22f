"""Create a stream.

**Parameters.** The name of the stream, its routing key, the number of segments to begin with, and
what to do with rows that have no key or do not fit. Defaults: one segment, refuse such rows,
truncate what all subscribers have released.

**On failure.** If anything is invalid, nothing is created. A run that is retried or cleared returns
what it did before.
"""

from typing import cast

from weir.controller.streams import StreamCreated
from weir.errors import counted
from weir.operations.action import STREAMS, Action, Job
from weir.operations.asked import bring
from weir.operations.runner import run_if_main
from weir.operations.stream_forms import CreateStream


def run(job: Job, arguments: CreateStream) -> StreamCreated:
    """Check the columns, the routing key and the event time, then create the stream."""
    return cast(StreamCreated, bring(job, arguments.asked))


def said(arguments: CreateStream, report: StreamCreated) -> str:
    """Say what was created."""
    count = counted(len(report["segments"]), "segment")
    return (
        f"stream {report['stream']} is created, with routing key {arguments.routing_key}, {count}"
    )


ACTION = Action(__file__, CreateStream, run, said, STREAMS, rehearsed=True)
run_if_main(ACTION, __name__)
