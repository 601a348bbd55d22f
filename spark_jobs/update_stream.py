"""Change the configuration of a stream.

**Parameters.** Fields left empty are not changed. You can change how the stream scales and how many
segments it has, what happens to rows without a key or with other columns, what retention keeps and
truncates and how often it looks, the event time and the tags, take back what writers have stated,
and add, rename, drop and widen columns, whose files stay as they are. The routing key cannot
change. With `dry_run`, the run only says what it would do, and who names the columns.

**On failure.** One transaction: everything or nothing. Appends that run at the same time lose
nothing.
"""

from typing import cast

from weir.controller.update import StreamUpdated
from weir.operations.action import STREAMS, Action, Job
from weir.operations.asked import bring
from weir.operations.runner import run_if_main
from weir.operations.stream_forms import UpdateStream


def run(job: Job, arguments: UpdateStream) -> StreamUpdated:
    """Update one stream."""
    asked = arguments.asked
    made = bring(job, asked, loss=arguments.allow_loss, named=arguments.allow_named)
    done = cast(StreamUpdated, made)
    job.say_all(done.get("taken_back", []))
    for column, what in done.get("changed", {}).items():
        job.say(f"column {column!r} {'would be' if arguments.dry_run else 'is'} {what}")
    job.say_all(done.get("named_by", []))
    if asked.columns.add and not done["added"]:
        job.say(f"stream {asked.name} has these columns already")
    if arguments.dry_run:
        done["dry_run"] = True
    return done


def said(arguments: UpdateStream, report: StreamUpdated) -> str:
    """Say what was changed."""
    back = ["complete_until"] if arguments.complete_until.strip() else []
    changed = [*arguments.changes, *back, *report.get("changed", {}), *report.get("added", [])]
    done = "would be changed" if arguments.dry_run else "is changed"
    return f"stream {arguments.stream} {done}: {', '.join(changed) or 'nothing'}"


ACTION = Action(__file__, UpdateStream, run, said, STREAMS, rehearsed=True)
run_if_main(ACTION, __name__)
