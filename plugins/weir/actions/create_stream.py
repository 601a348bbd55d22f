"""Create a stream.

**Parameters.** The name of the stream, its routing key, the number of segments to begin with, and
what to do with rows that have no key or do not fit. Defaults: one segment, refuse such rows,
truncate what all subscribers have released.

**On failure.** If anything is invalid, nothing is created. A run that is retried or cleared returns
what it did before.
"""

from dataclasses import dataclass
from typing import Any

from weir.controller.streams import create_stream
from weir.errors import counted
from weir.model.names import stream_name
from weir.model.scaling_policy import MOST_SEGMENTS
from weir.model.stream_configuration import (
    LONGEST_EXPRESSION,
    Configuration,
)
from weir.operations.action import STREAMS, Action, Job
from weir.operations.expressions import check_time, key_columns
from weir.operations.form import (
    LONGEST_COLUMNS,
    argument,
    stream_argument,
)
from weir.operations.setting import settings_of
from weir.operations.stream_settings import created


@dataclass(frozen=True)
class CreateStream:
    """Create a stream."""

    stream: str = stream_argument(
        "The name of the new stream, as scope/stream: lower-case letters, digits, _ and -.",
        new=True,
    )
    routing_key: str = argument(
        "Routing key",
        "A column such as customer, or a SQL expression over columns, whose value decides the "
        "segment. Events of one key are read in the order in which they were written.",
        maxLength=LONGEST_EXPRESSION,
    )
    event_time: str = created("event_time")
    segments: int = argument(
        "Segments",
        "The number of equal ranges of the key space to begin with. Scale the stream to change it.",
        1, minimum=1, maximum=MOST_SEGMENTS,
    )  # fmt: skip
    on_missing_key: str = created("on_missing_key", "Columns, and rows that do not fit")
    on_bad_rows: str = created("on_bad_rows", "Columns, and rows that do not fit")
    on_new_column: str = created("on_new_column", "Columns, and rows that do not fit")
    refuse_erased: bool = created("refuse_erased", "Columns, and rows that do not fit")
    retention: str = created("retention", "Retention")
    retain_min_age: str = created("retain_min_age", "Retention")
    retain_max_age: str = created("retain_max_age", "Retention")
    retain_min_bytes: str = created("retain_min_bytes", "Retention")
    retain_max_bytes: str = created("retain_max_bytes", "Retention")
    cuts_every: str = created("cuts_every", "Retention")
    retention_every: str = created("retention_every", "Retention")
    scaling: str = created("scaling", "Scaling")
    target_rate: int = created("target_rate", "Scaling")
    scale_factor: int = created("scale_factor", "Scaling")
    min_segments: int = created("min_segments", "Scaling")
    max_segments: str = created("max_segments", "Scaling")
    scale_cooldown: str = created("scale_cooldown", "Scaling")
    publish: str = created("publish", "Other engines")
    tags: list[str] = created("tags", "Tags")
    owner: str = created("owner", "Tags")
    schema: str = argument(
        "Columns",
        "The columns as SQL, such as: id BIGINT, name STRING. Empty: those of the first append.",
        "", maxLength=LONGEST_COLUMNS,
        section="Columns, and rows that do not fit",
    )  # fmt: skip

    @property
    def configuration(self) -> Configuration:
        """Its configuration. Raises InvalidInput for a wrong setting."""
        key = Configuration(self.routing_key.strip())
        return key.changed(settings_of(self, Configuration))


def run(job: Job, arguments: CreateStream) -> dict[str, Any]:
    """Check the routing key and the event time, then create the stream. Only expressions and
    columns need Spark, whose own parser reads them."""
    name, wanted = stream_name(arguments.stream, reserved=False), arguments.configuration
    used, fields = key_columns(wanted.routing_key), None
    if arguments.schema.strip():
        from weir.spark.users.expressions import check_key, parse_columns

        fields = parse_columns(job.spark, arguments.schema, used)
        check_key(job.spark, wanted.routing_key, fields)
    if wanted.event_time:
        check_time(name, wanted.event_time, fields, lambda: job.spark)
    made = create_stream(
        job.database,
        name,
        segments=arguments.segments,
        fields=fields,
        request_id=job.request_id,
        **wanted.__dict__,
    )
    job.say_all(made["deletes"])
    return made


def said(arguments: CreateStream, report: dict[str, Any]) -> str:
    """Say what was created."""
    count = counted(len(report["segments"]), "segment")
    return (
        f"stream {report['stream']} is created, with routing key {arguments.routing_key}, {count}"
    )


ACTION = Action(CreateStream, run, said, STREAMS, rehearsed=True)
