"""Change the configuration of a stream.

**Parameters.** Fields left empty are not changed. You can change how the stream scales and how many
segments it has, what happens to rows without a key or with other columns, what retention keeps and
truncates and how often it looks, the event time and the tags, and you can add, rename, drop and
widen columns, whose files stay as they are. The routing key cannot change. With `dry_run`, the run
only says what it would do, and who names the columns.

**On failure.** One transaction: everything or nothing. Appends that run at the same time lose
nothing.
"""

from dataclasses import dataclass, replace
from typing import Any

from weir.consumers.column_users import allowing
from weir.controller.locks import read_stream
from weir.controller.streams import schema_by_id
from weir.controller.update import update_stream
from weir.errors import InvalidInput
from weir.front_ends import called
from weir.model.column_changes import ColumnChanges
from weir.model.names import stream_name
from weir.model.scaling_policy import MOST_SEGMENTS
from weir.model.schema import Field
from weir.model.stream_configuration import (
    Configuration,
)
from weir.operations.action import STREAMS, Action, Job
from weir.operations.column_settings import renames, with_defaults
from weir.operations.expressions import check_time
from weir.operations.form import (
    DEFAULT_PATTERN,
    LONGEST_COLUMNS,
    RENAME_PATTERN,
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
    refuse_erased: str = changed("refuse_erased", "Columns, and rows that do not fit")
    event_time: str = changed("event_time")
    publish: str = changed("publish", "Other engines")
    tags: list[str] = changed("tags", "Tags")
    owner: str = changed("owner", "Tags")
    more_columns: str = argument(
        "More columns",
        "Columns to add, as SQL, such as: gate STRING. They are null in existing events. They are "
        "also added to a stream that refuses new columns.",
        "", maxLength=LONGEST_COLUMNS,
        section="Columns, and rows that do not fit",
    )  # fmt: skip
    defaults: list[str] = argument(
        "Defaults",
        "For columns to add, as column = value: what events have whose append did not have the "
        "column, before and after it is added.",
        [], items={"type": "string", "pattern": DEFAULT_PATTERN, "maxLength": 4_096},
        maxItems=1_000,
        section="Columns that are there",
    )  # fmt: skip
    rename_columns: list[str] = argument(
        "Rename columns",
        "Columns to rename, as old -> new. Two may swap their names. A routing key that is just a "
        "column follows.",
        [], items={"type": "string", "pattern": RENAME_PATTERN, "maxLength": 4_096},
        maxItems=1_000,
        section="Columns that are there",
    )  # fmt: skip
    drop_columns: list[str] = argument(
        "Drop columns",
        "Columns to drop. Their values stay in old files, and can be read with an older version of "
        "the schema.",
        [], items={"type": "string", "minLength": 1, "maxLength": 4_096}, maxItems=1_000,
        section="Columns that are there",
    )  # fmt: skip
    widen_columns: str = argument(
        "Widen columns",
        "Columns that get a wider type, as SQL, such as: seats BIGINT, price DECIMAL(20,2).",
        "", maxLength=LONGEST_COLUMNS,
        section="Columns that are there",
    )  # fmt: skip
    allow_named: bool = argument(
        "Allow named",
        "Rename, drop and widen columns even if consumers, their functions or outputs name them, "
        "or may. Without it such a change is refused, and they are listed.",
        False,
        section="Columns that are there",
    )
    allow_loss: bool = loss_argument()
    dry_run: bool = argument(
        "Dry run", "Only say what would change and who names the columns.", False
    )

    @property
    def changes(self) -> dict[str, Any]:
        """The settings to change, by their names in `Configuration`. Raises InvalidInput for an
        amount that is too small."""
        fewest = {"min_segments": self.segments} if self.segments else {}
        return settings_of(self, Configuration) | fewest


def run(job: Job, arguments: UpdateStream) -> dict[str, Any]:
    """Update one stream. Only new and wider columns and an event time need Spark, to read their
    types."""
    name, changes = stream_name(arguments.stream), arguments.changes
    fields = None
    if arguments.more_columns.strip():
        fields = _parsed(job, arguments.more_columns)
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
        widen=_parsed(job, arguments.widen_columns) if arguments.widen_columns.strip() else [],
    )
    if not changes and fields is None and not columns:
        raise InvalidInput("nothing_to_change", "no setting is given; give at least one.")
    if event_time := changes.get("event_time"):
        known = job.database.transaction(lambda c: schema_by_id(c, read_stream(c, name).stream_id))
        after = None
        if known or fields:
            after, _ = replace(columns, add=fields or []).applied(str(name), known or None, [])
        check_time(name, event_time, after, lambda: job.spark)
    done = update_stream(
        job.database,
        name,
        changes,
        fields=fields,
        column_changes=columns,
        allowing=allowing(arguments.allow_named or arguments.dry_run, job.settings.function_path),
        choosing=choosing(arguments.allow_loss),
        dry_run=arguments.dry_run,
        request_id=job.request_id,
    )
    job.say_all(done["deletes"])
    for column, what in done.get("changed", {}).items():
        job.say(f"column {column!r} {'would be' if arguments.dry_run else 'is'} {what}")
    job.say_all(done.get("named_by", []))
    if fields is not None and not done["added"]:
        job.say(f"stream {name} has these columns already")
    return done | ({"dry_run": True} if arguments.dry_run else {})


def _parsed(job: Job, columns: str) -> list[Field]:
    from weir.spark.users.expressions import parse_columns

    return parse_columns(job.spark, columns, [])


def said(arguments: UpdateStream, report: dict[str, Any]) -> str:
    """Say what was changed."""
    changed = [*arguments.changes, *report.get("changed", {}), *report.get("added", [])]
    done = "would be changed" if arguments.dry_run else "is changed"
    return f"stream {arguments.stream} {done}: {', '.join(changed) or 'nothing'}"


ACTION = Action(UpdateStream, run, said, STREAMS, rehearsed=True)
