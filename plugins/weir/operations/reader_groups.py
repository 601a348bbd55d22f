"""The arguments of the jobs that create, change and end reader groups."""

from dataclasses import dataclass
from typing import Any

from weir.model.amounts import AGE_PATTERN, NONE
from weir.model.group_configuration import ON_GAP, RELEASE, GroupConfiguration
from weir.model.names import READABLE_STREAM_PATTERN, READER_GROUP_PATTERN, stream_name
from weir.operations.form import (
    CHECKPOINT_PATTERN,
    LONGEST_CUT,
    STARTING_POINT,
    argument,
    loss_argument,
    reader_group_argument,
    truncated_argument,
)
from weir.operations.setting import REMOVED, Setting, settings_of
from weir.reader_groups.groups.pins import Pin

MOST_STREAMS = 1_000
WRITTEN: dict[str, Any] = {"minLength": 1, "maxLength": LONGEST_CUT}


def time_out(description: str) -> Setting:
    """Return the setting of how long retention waits for whoever has not released events."""
    return Setting("Time-out", description, "", "for ever", NONE, {"pattern": AGE_PATTERN})


# The settings of `GroupConfiguration`, for both forms.
SETTINGS: dict[str, Setting] = {
    "subscriber": Setting(
        "Subscriber",
        "Whether retention keeps events until this group has released them, or until a maximum "
        "truncates them. If a stream's retention is not consumed, its subscribers decide nothing.",
        True,
    ),
    "on_gap": Setting(
        "When events were truncated before it read them",
        "fail: stop with an error; skip: count the events and continue at the head.",
        "fail", schema={"enum": list(ON_GAP)},
    ),
    "release": Setting(
        "Release",
        "automatic: each checkpoint lets retention truncate the events before it; manual: only a "
        "release by hand does.",
        "automatic", schema={"enum": list(RELEASE)},
    ),
    "time_out": time_out(
        "How long a subscriber with unread events may be inactive before retention stops waiting "
        "for it, such as 7 d."
    ),
    "max_outstanding": Setting(
        "Waiting checkpoints", "How many may wait for batches at the same time.",
        3, schema={"minimum": 1, "maximum": 10_000},
    ),
    "aligned": Setting(
        "Aligned batches",
        "Each batch holds, of all streams, everything up to one moment and nothing after it; "
        "one reader reads at a time.",
        False,
    ),
    "max_ahead": Setting(
        "Maximum lead of a reader",
        "No batch goes further than this beyond the oldest event that other readers have not read, "
        "such as 1 h.",
        "", "no limit", NONE, {"pattern": AGE_PATTERN},
    ),
}  # fmt: skip


@dataclass(frozen=True)
class CreateReaderGroup:
    """Create a reader group."""

    reader_group: str = reader_group_argument(
        "The name of the new group: lower-case letters, digits, _ and -."
    )
    streams: list[str] = argument(
        "Streams", "The streams that the group reads, as scope/stream.",
        items={"type": "string", "pattern": READABLE_STREAM_PATTERN}, minItems=1,
        maxItems=MOST_STREAMS, uniqueItems=True,
    )  # fmt: skip
    start: str = argument("Start", f"Where the group begins: {STARTING_POINT}.", "head", **WRITTEN)
    end: str = argument(
        "End", f"Where the group stops for good: {STARTING_POINT}. Empty: never.", "",
        maxLength=LONGEST_CUT,
    )  # fmt: skip
    subscriber: bool = SETTINGS["subscriber"].created()
    on_gap: str = SETTINGS["on_gap"].created()
    release: str = SETTINGS["release"].created()
    time_out: str = SETTINGS["time_out"].created()
    max_outstanding: int = SETTINGS["max_outstanding"].created()
    aligned: bool = SETTINGS["aligned"].created()
    max_ahead: str = SETTINGS["max_ahead"].created()
    allow_loss: bool = loss_argument()
    allow_truncated: bool = truncated_argument()

    @property
    def configuration(self) -> GroupConfiguration:
        """Its configuration. Raises InvalidInput for a wrong setting."""
        return GroupConfiguration().changed(settings_of(self, GroupConfiguration))


@dataclass(frozen=True)
class UpdateReaderGroup:
    """Change the configuration of a reader group. What is not given, empty or unchanged is not
    changed.
    """

    reader_group: str = reader_group_argument()
    subscriber: str = SETTINGS["subscriber"].changed()
    on_gap: str = SETTINGS["on_gap"].changed()
    release: str = SETTINGS["release"].changed()
    time_out: str = SETTINGS["time_out"].changed()
    max_outstanding: int = SETTINGS["max_outstanding"].changed()
    aligned: str = SETTINGS["aligned"].changed()
    max_ahead: str = SETTINGS["max_ahead"].changed()
    streams: list[str] = argument(
        "Streams", "All streams that the group reads from now on. Empty: unchanged.", [],
        items={"type": "string", "pattern": READABLE_STREAM_PATTERN},
        maxItems=MOST_STREAMS, uniqueItems=True,
    )  # fmt: skip
    start: str = argument(
        "Start", f"Where it begins in new streams: {STARTING_POINT}.", "head", **WRITTEN
    )
    pins: list[str] = argument(
        "Pins",
        "Ranges of keys for the readers of one label, such as nyc/flights 0.25..0.5 big; they "
        "replace the group's pins. A single - removes them. Empty: unchanged.",
        [], items={"type": "string", "minLength": 1, "maxLength": 300}, maxItems=10_000,
    )  # fmt: skip
    generation: int = argument(
        "Generation", "Refuse the change if the group has another generation. -1: any.",
        -1, minimum=-1, maximum=2**31 - 1,
    )  # fmt: skip
    allow_loss: bool = loss_argument()
    allow_truncated: bool = truncated_argument()

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


@dataclass(frozen=True)
class ResetReaderGroup:
    """Move a reader group to a starting point."""

    reader_group: str = reader_group_argument()
    to: str = argument(
        "To",
        f"Where it continues: start (where it began), checkpoint NAME, {STARTING_POINT}.",
        **WRITTEN,
    )
    allow_repeat: bool = argument(
        "Repeat", "Go back even if the group reads committed events again.", False
    )
    allow_loss: bool = loss_argument()
    allow_truncated: bool = truncated_argument()


@dataclass(frozen=True)
class ForkReaderGroup:
    """Create a reader group that begins where another one is or was."""

    reader_group: str = reader_group_argument("The group to fork; it does not change.")
    new_reader_group: str = argument(
        "New reader group", "The name of the new group.", pattern=READER_GROUP_PATTERN
    )
    at: str = argument(
        "At", f"checkpoint NAME (of the first group), {STARTING_POINT}. Empty: its position now.",
        "", maxLength=LONGEST_CUT,
    )  # fmt: skip
    subscriber: bool = SETTINGS["subscriber"].created()
    allow_loss: bool = loss_argument()
    allow_truncated: bool = truncated_argument()


@dataclass(frozen=True)
class ReleaseReaderGroup:
    """Let retention truncate what a subscriber no longer needs."""

    reader_group: str = reader_group_argument()
    at: str = argument(
        "At", f"Release what is before: position (now), checkpoint NAME, {STARTING_POINT}.",
        "position", **WRITTEN,
    )  # fmt: skip
    generation: int = argument(
        "Generation", "Refuse the release if the group has another generation. -1: any.",
        -1, minimum=-1, maximum=2**31 - 1,
    )  # fmt: skip


@dataclass(frozen=True)
class DeleteReaderGroup:
    """Delete a reader group with its positions, batches and checkpoints; its outputs are kept."""

    reader_group: str = reader_group_argument()


@dataclass(frozen=True)
class ReaderOffline:
    """Take a reader out of a group by hand."""

    reader_group: str = reader_group_argument()
    reader: str = argument(
        "Reader", "The reader's id (see the view weir.readers).", minLength=1,
        maxLength=1_000,
    )  # fmt: skip
    position: str = argument(
        "Position",
        "How far it has read in its open batch, such as 0.0=12, 1.0=7 (in several streams "
        '{"nyc/flights": {"0.0": 12}}). Empty: others continue at the last committed position, '
        "and take over the whole open batch.",
        "", maxLength=LONGEST_CUT,
    )  # fmt: skip


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
    )  # fmt: skip
    patience: int = argument(
        "Patience", "Seconds after which a waiting barrier is given up.", 3600,
        minimum=1, maximum=31_536_000,
    )  # fmt: skip
    cancel: bool = argument("Cancel", "Give up the waiting checkpoint of this name.", False)
