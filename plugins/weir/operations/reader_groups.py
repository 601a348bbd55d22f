"""What the jobs take that make, change and end reader groups."""

from dataclasses import dataclass
from typing import Any

from weir.model.amounts import AGE_PATTERN
from weir.model.names import READABLE_STREAM_PATTERN, READER_GROUP_PATTERN
from weir.operations.form import (
    CHECKPOINT_PATTERN,
    LONGEST_CUT,
    PLACE,
    argument,
    reader_group_argument,
)

MOST_STREAMS = 1_000
WRITTEN: dict[str, Any] = {"minLength": 1, "maxLength": LONGEST_CUT}
_SUBSCRIBER = (
    "Whether events are kept until this group has released them or a maximum deletes them; in a "
    "stream with Truncate what is consumed off nothing is kept for a group."
)


def _release(*unchanged: str) -> Any:
    default = unchanged[0] if unchanged else "automatic"
    return argument(
        "Release",
        "automatic: each checkpoint lets retention delete what it has passed; manual: only what is "
        "released with weir_release_reader_group.",
        default, enum=[*unchanged, "automatic", "manual"],
    )  # fmt: skip


def _time_out() -> Any:
    return argument(
        "Time-out",
        "After this long without activity of its readers a subscriber with unread events holds "
        "nothing back any more, such as 7 d. none: never.",
        "", pattern=AGE_PATTERN,
    )  # fmt: skip


@dataclass(frozen=True)
class CreateReaderGroup:
    """Create a reader group."""

    reader_group: str = reader_group_argument(
        "The name of the new group: lower-case letters, digits, _ and -."
    )
    streams: list[str] = argument(
        "Streams", "The streams it reads, as scope/stream.",
        items={"type": "string", "pattern": READABLE_STREAM_PATTERN}, minItems=1,
        maxItems=MOST_STREAMS, uniqueItems=True,
    )  # fmt: skip
    start: str = argument("Start", f"Where it begins: {PLACE}.", "head", **WRITTEN)
    end: str = argument(
        "End", f"Where it stops for good: {PLACE}. Empty: it reads on for ever.", "",
        maxLength=LONGEST_CUT,
    )  # fmt: skip
    subscriber: bool = argument("Subscriber", _SUBSCRIBER, True)
    on_gap: str = argument(
        "When events were truncated before it read them",
        "fail: say so and stop; skip: count them and go on at the head.",
        "fail", enum=["fail", "skip"],
    )  # fmt: skip
    release: str = _release()
    time_out: str = _time_out()


@dataclass(frozen=True)
class UpdateReaderGroup:
    """Change the configuration of a reader group. Fields left empty or unchanged
    are not changed."""

    reader_group: str = reader_group_argument()
    subscriber: str = argument(
        "Subscriber", _SUBSCRIBER,
        "unchanged", enum=["unchanged", "yes", "no"],
    )  # fmt: skip
    on_gap: str = argument(
        "When events were truncated before it read them", "As when a group is created.",
        "unchanged", enum=["unchanged", "fail", "skip"],
    )  # fmt: skip
    release: str = _release("unchanged")
    time_out: str = _time_out()
    max_outstanding: int = argument(
        "Waiting checkpoints", "How many may wait for batches at a time. 0: unchanged.", 0,
        minimum=0, maximum=10_000,
    )  # fmt: skip
    streams: list[str] = argument(
        "Streams", "All streams it reads from now on. Empty: unchanged.", [],
        items={"type": "string", "pattern": READABLE_STREAM_PATTERN},
        maxItems=MOST_STREAMS, uniqueItems=True,
    )  # fmt: skip
    start: str = argument("Start", f"Where it begins in new streams: {PLACE}.", "head", **WRITTEN)
    pins: list[str] = argument(
        "Pins",
        "Ranges of keys that readers of one label read, such as nyc/flights 0.25..0.5 big, in "
        "place of those there are; a single - removes them. Empty: unchanged.",
        [], items={"type": "string", "minLength": 1, "maxLength": 300}, maxItems=10_000,
    )  # fmt: skip
    generation: int = argument(
        "Generation", "Refuse the change if the group is not of this generation. -1: whichever.",
        -1, minimum=-1, maximum=2**31 - 1,
    )  # fmt: skip


@dataclass(frozen=True)
class ResetReaderGroup:
    """Let a reader group stand at another place."""

    reader_group: str = reader_group_argument()
    to: str = argument(
        "To", f"Where it goes: start (where it began), checkpoint NAME, {PLACE}.", **WRITTEN
    )
    allow_repeat: bool = argument(
        "Repeat", "Go back although events that were read and committed are read again.", False
    )


@dataclass(frozen=True)
class ForkReaderGroup:
    """Create a reader group that stands where another does, or did."""

    reader_group: str = reader_group_argument("The group to begin from; it is left alone.")
    new_reader_group: str = argument(
        "New reader group", "The name of the new group.", pattern=READER_GROUP_PATTERN
    )
    at: str = argument(
        "At", f"checkpoint NAME (of the first group), {PLACE}. Empty: where it stands now.", "",
        maxLength=LONGEST_CUT,
    )  # fmt: skip
    subscriber: bool = argument("Subscriber", _SUBSCRIBER, True)


@dataclass(frozen=True)
class ReleaseReaderGroup:
    """Let retention delete what a subscriber no longer needs."""

    reader_group: str = reader_group_argument()
    at: str = argument(
        "At", f"Before where: position (where it stands), checkpoint NAME, {PLACE}.", "position",
        **WRITTEN,
    )  # fmt: skip
    generation: int = argument(
        "Generation", "Refuse it if the group is not of this generation. -1: whichever.",
        -1, minimum=-1, maximum=2**31 - 1,
    )  # fmt: skip


@dataclass(frozen=True)
class DeleteReaderGroup:
    """Delete a reader group with its positions, batches and checkpoints; its outputs stay."""

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
        "How far it has read of its open batch, such as 0.0=12, 1.0=7 (of several streams "
        '{"nyc/flights": {"0.0": 12}}). Empty: others go on at the last committed position, and '
        "take an open batch over whole.",
        "", maxLength=LONGEST_CUT,
    )  # fmt: skip


@dataclass(frozen=True)
class CheckpointReaderGroup:
    """Record where a reader group stands, under a name."""

    reader_group: str = reader_group_argument()
    name: str = argument(
        "Checkpoint", "A name to find it again, such as before-the-migration.",
        pattern=CHECKPOINT_PATTERN,
    )  # fmt: skip
    barrier: bool = argument(
        "Barrier", "Wait for the batches that are open now, and record where the group stands "
        "when they are committed.", False,
    )  # fmt: skip
    patience: int = argument(
        "Patience", "Seconds that a barrier waits at most; then it is given up.", 3600,
        minimum=1, maximum=31_536_000,
    )  # fmt: skip
    cancel: bool = argument("Cancel", "Give up a checkpoint of this name that waits.", False)
