"""Make a stream read-only for ever.

**Parameters.** The stream. Appends that are being written are aborted. Readers read to the end of
the stream, and are told that it is the end. You cannot undo this.

**On failure.** One transaction. Sealing a sealed stream again changes nothing.
"""

from dataclasses import dataclass

from weir.controller.seal import Sealed, seal_stream
from weir.errors import counted
from weir.model.names import READABLE_STREAM_PATTERN, stream_name
from weir.operations.action import STREAMS, Action, Job
from weir.operations.form import stream_argument
from weir.operations.runner import run_if_main


@dataclass(frozen=True)
class SealStream:
    """Make a stream read-only for ever."""

    stream: str = stream_argument(pattern=READABLE_STREAM_PATTERN)


def run(job: Job, arguments: SealStream) -> Sealed:
    """Seal one stream."""
    return seal_stream(job.database, stream_name(arguments.stream), request_id=job.request_id)


def said(arguments: SealStream, report: Sealed) -> str:
    """Say what is read-only now."""
    aborted = len(report["aborted"])
    more = f"; {counted(aborted, 'append')} aborted" if aborted else ""
    return f"stream {arguments.stream} is sealed: nothing more can be appended{more}"


ACTION = Action(__file__, SealStream, run, said, STREAMS, irreversible=True, rehearsed=True)
run_if_main(ACTION, __name__)
