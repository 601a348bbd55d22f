"""Change the configuration of a stream.

**Parameters.** Fields left empty are not changed. You can change how the stream scales and how many
segments it has, what happens to rows without a key or with other columns, what retention keeps and
truncates and how often it looks, the event time and the tags, and you can add columns. The routing
key cannot change.

**On failure.** One transaction: everything or nothing. Appends that run at the same time lose
nothing.
"""

from dataclasses import dataclass
from typing import Any

from weir.controller.locks import read_stream
from weir.controller.streams import schema_by_id
from weir.controller.update import update_stream
from weir.errors import InvalidInput
from weir.model.names import stream_name
from weir.model.scaling_policy import MOST_SEGMENTS
from weir.model.stream_configuration import (
    Configuration,
)
from weir.operations.action import STREAMS, Action, Job
from weir.operations.expressions import check_time
from weir.operations.form import (
    LONGEST_COLUMNS,
    argument,
    loss_argument,
    stream_argument,
)
from weir.operations.setting import settings_of
from weir.operations.stream_settings import changed
from weir.retention.choose import choosing


@dataclass(frozen=True)
class UpdateStream:
    """Change the configuration of a stream. What is not given, empty or unchanged is not changed;
    `none` removes a limit.
    """

    stream: str = stream_argument()
    scaling: str = changed("scaling", "Scaling")
    segments: int = argument(
        "Segments",
        "fixed: replace all segments by this many of equal range; by rate: never fewer. 0: "
        "unchanged.",
        0, minimum=0, maximum=MOST_SEGMENTS,
        section="Scaling",
    )  # fmt: skip
    target_rate: int = changed("target_rate", "Scaling")
    scale_factor: int = changed("scale_factor", "Scaling")
    max_segments: str = changed("max_segments", "Scaling")
    scale_cooldown: str = changed("scale_cooldown", "Scaling")
    retention: str = changed("retention", "Retention")
    retain_min_age: str = changed("retain_min_age", "Retention")
    retain_max_age: str = changed("retain_max_age", "Retention")
    retain_min_bytes: str = changed("retain_min_bytes", "Retention")
    retain_max_bytes: str = changed("retain_max_bytes", "Retention")
    cuts_every: str = changed("cuts_every", "Retention")
    retention_every: str = changed("retention_every", "Retention")
    on_missing_key: str = changed("on_missing_key", "Columns, and rows that do not fit")
    on_bad_rows: str = changed("on_bad_rows", "Columns, and rows that do not fit")
    on_new_column: str = changed("on_new_column", "Columns, and rows that do not fit")
    event_time: str = changed("event_time")
    tags: list[str] = changed("tags", "Tags")
    more_columns: str = argument(
        "More columns",
        "Columns to add, as SQL, such as: gate STRING. They are null in existing events. They are "
        "also added to a stream that refuses new columns.",
        "", maxLength=LONGEST_COLUMNS,
        section="Columns, and rows that do not fit",
    )  # fmt: skip
    allow_loss: bool = loss_argument()

    @property
    def changes(self) -> dict[str, Any]:
        """The settings to change, by their names in `Configuration`. Raises InvalidInput for an
        amount that is too small."""
        fewest = {"min_segments": self.segments} if self.segments else {}
        return settings_of(self, Configuration) | fewest


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


ACTION = Action(UpdateStream, run, STREAMS)
