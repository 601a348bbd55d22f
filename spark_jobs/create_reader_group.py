"""Create a reader group.

**Parameters.** Its name, the streams that it reads, where it begins, and whether it is a
subscriber: from this moment on, retention keeps events until all subscribers have released them.

**On failure.** If anything is invalid, nothing is created.
"""

from typing import Any

from weir.model.names import stream_name
from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.group_forms import CreateReaderGroup
from weir.operations.runner import main
from weir.reader_groups.groups.lifecycle import create_reader_group


def run(job: Job, arguments: CreateReaderGroup) -> dict[str, Any]:
    """Create one group."""
    made = create_reader_group(
        job.database,
        arguments.reader_group,
        [stream_name(stream) for stream in arguments.streams],
        start=arguments.start,
        end=arguments.end,
        allow_loss=arguments.allow_loss,
        allow_truncated=arguments.allow_truncated,
        request_id=job.request_id,
        **arguments.configuration.__dict__,
    )
    job.say_all([*made["missing"], *made["reads"], *made["deletes"]])
    return made


def said(arguments: CreateReaderGroup, report: dict[str, Any]) -> str:
    """Say what the group reads, from where."""
    streams = ", ".join(sorted(report["start"]))
    return f"reader group {arguments.reader_group} reads {streams}, from {arguments.start}"


ACTION = Action(__file__, CreateReaderGroup, run, said, READER_GROUPS, rehearsed=True)

if __name__ == "__main__":
    raise SystemExit(main(ACTION))
