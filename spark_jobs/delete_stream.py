"""Delete a sealed stream with everything that it owns.

**Parameters.** The stream, which must be sealed. While a subscriber has unread events, the run
refuses, unless you allow it to delete unread events. `weir_upkeep` deletes the files after the
grace period. With *Dry run*, which is on at first, the run only says what would be lost. Without it
the task shows that, and waits until a person approves it (*Required Actions*). You may then create
a stream of the same name; readers of the old one are told that it was deleted. You cannot undo
this.

**On failure.** One transaction: everything or nothing.
"""

from dataclasses import dataclass

from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.errors import counted
from weir.model.names import READABLE_STREAM_PATTERN, stream_name
from weir.operations.action import STREAMS, Action, Job
from weir.operations.approval import Loss, things
from weir.operations.form import argument, dry_run_argument, stream_argument
from weir.operations.runner import run_if_main
from weir.retention.delete_stream import StreamDeleted, delete_stream


@dataclass(frozen=True)
class DeleteStream:
    """Delete a sealed stream with everything that it owns."""

    stream: str = stream_argument(pattern=READABLE_STREAM_PATTERN)
    unread_too: bool = argument(
        "Unread events too",
        "Delete the stream even if a subscriber has not read all of it.",
        False,
    )
    dry_run: bool = dry_run_argument(
        "Only say what would be deleted, and what each reader group would lose unread."
    )


def measure(job: Job, arguments: DeleteStream) -> Loss | None:
    """Return what would be deleted, and which groups would lose unread events."""
    return None if arguments.dry_run else _tried(job.database, arguments)[1]


def _tried(database: Database, arguments: DeleteStream) -> tuple[StreamDeleted, Loss]:
    found = delete_stream(
        database, stream_name(arguments.stream), unread_too=arguments.unread_too, dry_run=True,
        request_id="",
    )  # fmt: skip
    lines = [
        f"would delete stream {found['stream']} with {counted(found['events'], 'event')} "
        f"({found['bytes']:,} bytes; {found['files']:,} files), which can't be undone"
    ]
    lines += [
        f"reader group {group} would lose {counted(count, 'event')} that it has not read"
        for group, count in sorted(found["unread"].items())
    ]
    of = things(database, streams=[arguments.stream], groups=found["unread"])
    return {**found, "dry_run": True}, Loss(lines, {**found, **of})


def run(job: Job, arguments: DeleteStream) -> StreamDeleted:
    """Delete one stream; its files are deleted by weir_upkeep after the grace period."""
    if not arguments.dry_run:
        check_warehouse_ownership(job.database, job.settings.warehouse)
    return job.tried_or_done(
        arguments.dry_run,
        lambda database: _tried(database, arguments),
        lambda database: delete_stream(
            database, stream_name(arguments.stream), unread_too=arguments.unread_too,
            request_id=job.request_id,
        ),
    )  # fmt: skip


def said(arguments: DeleteStream, _report: StreamDeleted) -> str:
    """Say what was deleted."""
    if arguments.dry_run:
        return f"stream {arguments.stream} is not deleted: this was a dry run"
    return f"stream {arguments.stream} is deleted"


ACTION = Action(
    __file__, DeleteStream, run, said, STREAMS, irreversible=True, rehearsed=True, measure=measure
)
run_if_main(ACTION, __name__)
