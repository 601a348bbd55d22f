"""The forms by which reader groups are created and changed: of jobs, and of entries in
declarations."""

from dataclasses import dataclass

from weir.model.group_configuration import GroupConfiguration
from weir.model.names import READABLE_STREAM_PATTERN, stream_name
from weir.operations.asked import AskedGroup
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
from weir.operations.setting import REMOVED, settings_of, with_settings
from weir.reader_groups.groups.pins import Pin


@with_settings(SETTINGS)
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
    allow_loss: bool = loss_argument()
    allow_truncated: bool = truncated_argument("More")

    @property
    def asked(self) -> AskedGroup:
        """What the group is to be. Raises InvalidInput for a wrong setting."""
        configuration = GroupConfiguration().changed(settings_of(self, GroupConfiguration))
        streams = [stream_name(one) for one in self.streams]
        return AskedGroup(
            self.reader_group, True, configuration.__dict__, streams, self.start, self.end
        )


@with_settings(SETTINGS, changed=())
@dataclass(frozen=True)
class UpdateReaderGroup:
    """Change the configuration of a reader group. What is not given, empty or unchanged is not
    changed.
    """

    reader_group: str = reader_group_argument()
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
        beside="streams",
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
    def asked(self) -> AskedGroup:
        """What is to change. Raises InvalidInput for a wrong pin or amount."""
        pins = [] if self.pins == [REMOVED] else self.pins
        return AskedGroup(
            self.reader_group, False, settings_of(self, GroupConfiguration),
            [stream_name(one) for one in self.streams] or None, self.start,
            pins=[Pin.parse(pin) for pin in pins] if self.pins else None,
            generation=self.generation if self.generation >= 0 else None,
        )  # fmt: skip
