"""Change the configuration of a stream.

**Parameters.** Fields left empty are not changed. You can change how the stream scales and how many
segments it has, what happens to rows without a key or with other columns, what retention keeps and
truncates and how often it looks, the event time and the tags, take back what writers have stated,
and add, rename, drop and widen columns, whose files stay as they are. The routing key cannot
change. With `dry_run`, the run only says what it would do, and who names the columns.

**On failure.** One transaction: everything or nothing. Appends that run at the same time lose
nothing.
"""

from dataclasses import replace
from typing import Any

from weir.consumers.column_users import allowing
from weir.controller.locks import read_stream
from weir.controller.streams import schema_by_id
from weir.controller.update import update_stream
from weir.errors import InvalidInput
from weir.front_ends import called
from weir.model.column_changes import ColumnChanges
from weir.model.declared_columns import declared_columns
from weir.model.names import stream_name
from weir.operations.action import STREAMS, Action, Job
from weir.operations.column_settings import renames, with_defaults
from weir.operations.expressions import check_time
from weir.operations.runner import main
from weir.operations.stream_forms import UpdateStream
from weir.retention.choose import choosing


def run(job: Job, arguments: UpdateStream) -> dict[str, Any]:
    """Update one stream."""
    name, changes = stream_name(arguments.stream), arguments.changes
    fields = None
    if arguments.more_columns.strip():
        fields = declared_columns(arguments.more_columns)
        fields = with_defaults(fields, arguments.defaults)
    elif arguments.defaults:
        raise InvalidInput(
            "default_without_column",
            f"{called('defaults')} names {arguments.defaults[0]!r}, but no column is added; name "
            f"the columns in {called('more_columns')}.",
        )
    columns = ColumnChanges(
        rename=renames(arguments.rename_columns),
        drop=arguments.drop_columns,
        widen=declared_columns(arguments.widen_columns) if arguments.widen_columns.strip() else [],
    )
    back = arguments.complete_until.strip()
    if not changes and fields is None and not columns and not back:
        raise InvalidInput("nothing_to_change", "no setting is given; give at least one.")
    if event_time := changes.get("event_time"):
        known = job.database.transaction(lambda c: schema_by_id(c, read_stream(c, name).stream_id))
        after = None
        if known or fields:
            after, _ = replace(columns, add=fields or []).applied(str(name), known or None, [])
        check_time(name, event_time, after)
    done = update_stream(
        job.database,
        name,
        changes,
        fields=fields,
        column_changes=columns,
        allowing=allowing(arguments.allow_named or arguments.dry_run, job.settings.function_path),
        choosing=choosing(arguments.allow_loss),
        complete_until=back,
        dry_run=arguments.dry_run,
        request_id=job.request_id,
    )
    job.say_all(done["deletes"])
    job.say_all(done.get("taken_back", []))
    for column, what in done.get("changed", {}).items():
        job.say(f"column {column!r} {'would be' if arguments.dry_run else 'is'} {what}")
    job.say_all(done.get("named_by", []))
    if fields is not None and not done["added"]:
        job.say(f"stream {name} has these columns already")
    return done | ({"dry_run": True} if arguments.dry_run else {})


def said(arguments: UpdateStream, report: dict[str, Any]) -> str:
    """Say what was changed."""
    back = ["complete_until"] if arguments.complete_until.strip() else []
    changed = [*arguments.changes, *back, *report.get("changed", {}), *report.get("added", [])]
    done = "would be changed" if arguments.dry_run else "is changed"
    return f"stream {arguments.stream} {done}: {', '.join(changed) or 'nothing'}"


ACTION = Action(__file__, UpdateStream, run, said, STREAMS, rehearsed=True)

if __name__ == "__main__":
    raise SystemExit(main(ACTION))
