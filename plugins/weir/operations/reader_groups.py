"""The arguments of the jobs that create, change and end reader groups."""

from dataclasses import dataclass
from typing import Any

from weir.model.amounts import AGE_PATTERN, parse_age
from weir.model.group_configuration import ON_GAP, RELEASE
from weir.model.names import READABLE_STREAM_PATTERN, READER_GROUP_PATTERN
from weir.operations.form import (
    CHECKPOINT_PATTERN,
    LONGEST_CUT,
    STARTING_POINT,
    argument,
    reader_group_argument,
)

MOST_STREAMS = 1_000
_YES_NO = ["unchanged", "yes", "no"]
WRITTEN: dict[str, Any] = {"minLength": 1, "maxLength": LONGEST_CUT}
_SUBSCRIBER = (
    "Whether retention keeps events until this group has released them, or until a maximum "
    "truncates them. If a stream's Truncate what is consumed is off, retention keeps nothing for "
    "groups."
)


def _release(*unchanged: str) -> Any:
    default = unchanged[0] if unchanged else "automatic"
    return argument(
        "Release",
        "automatic: each checkpoint lets retention truncate the events before it; manual: only "
        "weir_release_reader_group does.",
        default, enum=[*unchanged, *RELEASE],
    )  # fmt: skip


def _time_out() -> Any:
    return argument(
        "Time-out",
        "How long a subscriber with unread events may be inactive before retention stops waiting "
        "for it, such as 7 d. none: for ever.",
        "", pattern=AGE_PATTERN,
    )  # fmt: skip


def _aligned(default: Any, **how: Any) -> Any:
    return argument(
        "Aligned batches",
        "Each batch holds, of all streams, everything up to one moment and nothing after it; "
        "one reader reads at a time.",
        default, **how,
    )  # fmt: skip


def _max_ahead(empty: str) -> Any:
    return argument(
        "Maximum lead of a reader",
        "No batch goes further than this beyond the oldest event that other readers have not read, "
        f"such as 1 h. none: no limit. {empty}",
        "", pattern=AGE_PATTERN,
    )  # fmt: skip


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
    subscriber: bool = argument("Subscriber", _SUBSCRIBER, True)
    on_gap: str = argument(
        "When events were truncated before it read them",
        "fail: stop with an error; skip: count the events and continue at the head.",
        "fail", enum=list(ON_GAP),
    )  # fmt: skip
    release: str = _release()
    time_out: str = _time_out()
    aligned: bool = _aligned(False)
    max_ahead: str = _max_ahead("Empty: none.")

    @property
    def configuration(self) -> dict[str, Any]:
        """The settings of `GroupConfiguration` that the form has."""
        return {
            "subscriber": self.subscriber,
            "on_gap": self.on_gap,
            "release": self.release,
            "time_out": parse_age(self.time_out),
            "aligned": self.aligned,
            "max_ahead": parse_age(self.max_ahead),
        }


@dataclass(frozen=True)
class UpdateReaderGroup:
    """Change the configuration of a reader group. Fields left empty or unchanged are not
    changed.
    """

    reader_group: str = reader_group_argument()
    subscriber: str = argument(
        "Subscriber", _SUBSCRIBER,
        "unchanged", enum=_YES_NO,
    )  # fmt: skip
    on_gap: str = argument(
        "When events were truncated before it read them", "As when a group is created.",
        "unchanged", enum=["unchanged", *ON_GAP],
    )  # fmt: skip
    release: str = _release("unchanged")
    time_out: str = _time_out()
    max_outstanding: int = argument(
        "Waiting checkpoints", "How many may wait for batches at the same time. 0: unchanged.", 0,
        minimum=0, maximum=10_000,
    )  # fmt: skip
    aligned: str = _aligned("unchanged", enum=_YES_NO)
    max_ahead: str = _max_ahead("Empty: unchanged.")
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


@dataclass(frozen=True)
class ResetReaderGroup:
    """Move a reader group to another position."""

    reader_group: str = reader_group_argument()
    to: str = argument(
        "To",
        f"The new position: start (where it began), checkpoint NAME, {STARTING_POINT}.",
        **WRITTEN,
    )
    allow_repeat: bool = argument(
        "Repeat", "Go back even if the group reads committed events again.", False
    )


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
    subscriber: bool = argument("Subscriber", _SUBSCRIBER, True)


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
