"""Change the configuration of a stream."""

import sys
from typing import Any

from weir.controller.locks import read_stream
from weir.controller.streams import schema_by_id
from weir.controller.update import update_stream
from weir.errors import InvalidInput
from weir.model.names import stream_name
from weir.operations import UpdateStream
from weir.operations.expressions import check_time
from weir.operations.runner import Job, main
from weir.retention.choose import choosing


def run(job: Job, arguments: UpdateStream) -> dict[str, Any]:
    """Update one stream. Only new columns and an event time need Spark, to read their types."""
    name, changes = stream_name(arguments.stream), arguments.changes
    fields = None
    if arguments.more_columns.strip():
        from weir.spark.users.expressions import parse_columns

        fields = parse_columns(job.spark, arguments.more_columns, [])
    if not changes and fields is None:
        raise InvalidInput("nothing_to_change", "no setting is given; give at least one.")
    if event_time := changes.get("event_time"):
        known = job.database.transaction(lambda c: schema_by_id(c, read_stream(c, name).stream_id))
        all_fields = [*(known or []), *(fields or [])] or None
        check_time(name, event_time, all_fields, lambda: job.spark)
    done = update_stream(
        job.database,
        name,
        changes,
        fields=fields,
        choosing=choosing(arguments.allow_loss),
        request_id=job.request_id,
    )
    job.say_all(done["deletes"])
    if fields is not None and not done["added"]:
        job.say(f"stream {name} has these columns already")
    return done


if __name__ == "__main__":
    sys.exit(main("update_stream", run))
