"""Create a reader group.

**Parameters.** Its name, the streams that it reads, where it begins, and whether it is a
subscriber: from this moment on, retention keeps events until all subscribers have released them.

**On failure.** If anything is invalid, nothing is created.
"""

from dataclasses import dataclass
from typing import Any

from weir.model.group_configuration import GroupConfiguration
from weir.model.names import READABLE_STREAM_PATTERN, stream_name
from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.form import (
    LONGEST_CUT,
    STARTING_POINT,
    STARTING_POINTS,
    argument,
    loss_argument,
    reader_group_argument,
    truncated_argument,
)
from weir.operations.group_settings import MOST_STREAMS, SETTINGS, WRITTEN
from weir.operations.setting import settings_of
from weir.reader_groups.groups.lifecycle import create_reader_group


@dataclass(frozen=True)
class CreateReaderGroup:
    """Create a reader group."""

    reader_group: str = reader_group_argument(
        "The name of the new group: lower-case letters, digits, _ and -.", new=True
    )
    streams: list[str] = argument(
        "Streams", "The streams that the group reads, as scope/stream.",
        items={"type": "string", "pattern": READABLE_STREAM_PATTERN}, minItems=1,
        maxItems=MOST_STREAMS, uniqueItems=True, names="stream",
    )  # fmt: skip
    start: str = argument(
        "Start",
        f"Where the group begins: {STARTING_POINT}.",
        "head",
        **WRITTEN,
        examples=STARTING_POINTS,
    )
    end: str = argument(
        "End", f"Where the group stops for good: {STARTING_POINT}. Empty: never.", "",
        maxLength=LONGEST_CUT,
        section="More", examples=STARTING_POINTS,
    )  # fmt: skip
    subscriber: bool = SETTINGS["subscriber"].created("Retention")
    on_gap: str = SETTINGS["on_gap"].created("More")
    release: str = SETTINGS["release"].created("Retention")
    time_out: str = SETTINGS["time_out"].created("Retention")
    max_outstanding: int = SETTINGS["max_outstanding"].created("More")
    aligned: bool = SETTINGS["aligned"].created("Order")
    max_ahead: str = SETTINGS["max_ahead"].created("Order")
    owner: str = SETTINGS["owner"].created("More")
    subject: str = SETTINGS["subject"].created("More")
    allow_loss: bool = loss_argument()
    allow_truncated: bool = truncated_argument("More")

    @property
    def configuration(self) -> GroupConfiguration:
        """Its configuration. Raises InvalidInput for a wrong setting."""
        return GroupConfiguration().changed(settings_of(self, GroupConfiguration))


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
    streams = ", ".join(report["start"])
    return f"reader group {arguments.reader_group} reads {streams}, from {arguments.start}"


ACTION = Action(CreateReaderGroup, run, said, READER_GROUPS, rehearsed=True)
