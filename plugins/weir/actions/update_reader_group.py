"""Change the configuration of a reader group.

**Parameters.** Fields left empty are not changed. You can change whether the group is a subscriber
(then it is protected from its position on), how it releases events and when it times out, what it
does about a gap, which streams it reads (new ones from *Start*), whether its batches are aligned
and how far a reader may be ahead, how many checkpoints may wait, and which keys are pinned to which
readers.

**On failure.** One transaction: everything or nothing. Give the generation to refuse the change if
somebody else has changed the group in the meantime.
"""

from dataclasses import dataclass
from typing import Any

from weir.errors import InvalidInput
from weir.model.group_configuration import GroupConfiguration
from weir.model.names import READABLE_STREAM_PATTERN, stream_name
from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.form import (
    STARTING_POINT,
    STARTING_POINTS,
    argument,
    loss_argument,
    reader_group_argument,
    truncated_argument,
)
from weir.operations.group_settings import MOST_STREAMS, SETTINGS, WRITTEN
from weir.operations.setting import REMOVED, settings_of
from weir.reader_groups.groups.pins import Pin
from weir.reader_groups.groups.update import update_reader_group


@dataclass(frozen=True)
class UpdateReaderGroup:
    """Change the configuration of a reader group. What is not given, empty or unchanged is not
    changed.
    """

    reader_group: str = reader_group_argument()
    subscriber: str = SETTINGS["subscriber"].changed("Retention")
    on_gap: str = SETTINGS["on_gap"].changed("Reading")
    release: str = SETTINGS["release"].changed("Retention")
    time_out: str = SETTINGS["time_out"].changed("Retention")
    max_outstanding: int = SETTINGS["max_outstanding"].changed("Reading")
    aligned: str = SETTINGS["aligned"].changed("Reading")
    max_ahead: str = SETTINGS["max_ahead"].changed("Reading")
    owner: str = SETTINGS["owner"].changed("More")
    subject: str = SETTINGS["subject"].changed("More")
    streams: list[str] = argument(
        "Streams", "All streams that the group reads from now on. Empty: unchanged.", [],
        items={"type": "string", "pattern": READABLE_STREAM_PATTERN},
        maxItems=MOST_STREAMS, uniqueItems=True, names="stream",
        section="Streams",
    )  # fmt: skip
    start: str = argument(
        "Start",
        f"Where it begins in new streams: {STARTING_POINT}.",
        "head",
        **WRITTEN,
        section="Streams",
        examples=STARTING_POINTS,
    )
    pins: list[str] = argument(
        "Pins",
        "Ranges of keys for the readers of one label, such as nyc/flights 0.25..0.5 big; they "
        "replace the group's pins. A single - removes them. Empty: unchanged.",
        [], items={"type": "string", "minLength": 1, "maxLength": 300}, maxItems=10_000,
        section="Reading",
    )  # fmt: skip
    generation: int = argument(
        "Generation", "Refuse the change if the group has another generation. -1: any.",
        -1, minimum=-1, maximum=2**31 - 1,
        section="More",
    )  # fmt: skip
    allow_loss: bool = loss_argument()
    allow_truncated: bool = truncated_argument("Streams")

    @property
    def changes(self) -> dict[str, Any]:
        """What to change: settings of `GroupConfiguration` by their names, `streams` with the
        `start` in new ones, `pins`. Raises InvalidInput for a wrong pin or amount."""
        changes = settings_of(self, GroupConfiguration)
        if self.streams:
            changes["streams"] = [stream_name(stream) for stream in self.streams]
            changes["start"] = self.start
        if self.pins:
            pins = [] if self.pins == [REMOVED] else self.pins
            changes["pins"] = [Pin.parse(pin) for pin in pins]
        return changes


def run(job: Job, arguments: UpdateReaderGroup) -> dict[str, Any]:
    """Update one group."""
    changes = arguments.changes
    if not changes:
        raise InvalidInput("nothing_to_change", "no setting is given; give at least one.")
    if arguments.generation >= 0:
        changes["generation"] = arguments.generation
    done = update_reader_group(
        job.database, arguments.reader_group, **changes, allow_loss=arguments.allow_loss,
        allow_truncated=arguments.allow_truncated, request_id=job.request_id,
    )  # fmt: skip
    job.say_all([*done["missing"], *done["reads"], *done["deletes"]])
    return done


def said(arguments: UpdateReaderGroup, _report: dict[str, Any]) -> str:
    """Say what was changed."""
    return f"reader group {arguments.reader_group} is changed: {', '.join(arguments.changes)}"


ACTION = Action(UpdateReaderGroup, run, said, READER_GROUPS, rehearsed=True)
