"""Record the position of a reader group under a name.

**Parameters.** The group, and a name for the checkpoint. If the group is a subscriber, the
checkpoint releases the events before it. A *Barrier* waits for the batches that are open now; the
report names them. The task itself does not wait: `weir.checkpoints` says when the checkpoint is
complete. *Cancel* gives up a checkpoint that waits.

**On failure.** Nothing is recorded. Retry it.
"""

from dataclasses import dataclass

from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.form import CHECKPOINT_PATTERN, argument, reader_group_argument
from weir.operations.runner import run_if_main
from weir.reader_groups.checkpoints.lifecycle import cancel_checkpoint, checkpoint
from weir.reader_groups.checkpoints.records import Checkpointed


@dataclass(frozen=True)
class CheckpointReaderGroup:
    """Record the position of a reader group under a name."""

    reader_group: str = reader_group_argument()
    name: str = argument(
        "Checkpoint", "A name to find it again, such as before-the-migration.",
        pattern=CHECKPOINT_PATTERN,
    )  # fmt: skip
    barrier: bool = argument(
        "Barrier", "Wait for the batches that are open now, and record the position of the group "
        "when they are committed.", False,
        section="Wait for open batches", unless="cancel",
    )  # fmt: skip
    patience: int = argument(
        "Patience", "Seconds after which a waiting barrier is given up.", 3600,
        minimum=1, maximum=31_536_000,
        section="Wait for open batches", beside="barrier",
    )  # fmt: skip
    cancel: bool = argument(
        "Cancel", "Give up the waiting checkpoint of this name.", False, section="More"
    )


def run(job: Job, arguments: CheckpointReaderGroup) -> Checkpointed:
    """Make one checkpoint, or cancel one that waits."""
    if arguments.cancel:
        return cancel_checkpoint(
            job.database, arguments.reader_group, arguments.name, request_id=job.request_id
        )
    made = checkpoint(
        job.database,
        arguments.reader_group,
        name=arguments.name,
        barrier=arguments.barrier,
        patience=arguments.patience,
        request_id=job.request_id,
    )
    assert made is not None  # it has a name
    return made


def said(arguments: CheckpointReaderGroup, report: Checkpointed) -> str:
    """Say what became of the checkpoint."""
    group = f"reader group {arguments.reader_group}"
    if arguments.cancel:
        return f"checkpoint {report['checkpoint']!r} of {group} is given up"
    if waits := report.get("waits_for"):
        return f"checkpoint {report['checkpoint']!r} of {group} waits for {', '.join(waits)}"
    released = "; what lies before it is released" if report["released"] else ""
    return f"{group} has checkpoint {report['checkpoint']!r}{released}"


ACTION = Action(__file__, CheckpointReaderGroup, run, said, READER_GROUPS)
run_if_main(ACTION, __name__)
