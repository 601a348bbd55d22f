"""The arguments of the jobs that seal, delete and truncate streams."""

from dataclasses import dataclass

from weir.model.names import READABLE_STREAM_PATTERN, READER_GROUP_PATTERN
from weir.operations.form import LONGEST_CUT, argument, stream_argument


@dataclass(frozen=True)
class SealStream:
    """Make a stream read-only for ever."""

    stream: str = stream_argument(pattern=READABLE_STREAM_PATTERN)


@dataclass(frozen=True)
class DeleteStream:
    """Delete a sealed stream with everything that it owns."""

    stream: str = stream_argument(pattern=READABLE_STREAM_PATTERN)
    unread_too: bool = argument(
        "Unread events too",
        "Delete the stream even if a subscriber has not read all of it.",
        False,
    )


@dataclass(frozen=True)
class TruncateStream:
    """Truncate all events of a stream before a starting point."""

    stream: str = stream_argument(pattern=READABLE_STREAM_PATTERN)
    cut: str = argument(
        "Truncate before",
        "Truncate all events before this point, for all readers. tail: all events; "
        "2026-01-01 09:00: what was appended up to that time (UTC); position, or checkpoint NAME: "
        "what the reader group has read by then; or a cut such as 0.0=12, 1.0=7.",
        minLength=1,
        maxLength=LONGEST_CUT,
    )
    reader_group: str = argument(
        "Reader group", "The group of the position or checkpoint. Empty for any other point.",
        "", pattern=READER_GROUP_PATTERN,
    )  # fmt: skip
    dry_run: bool = argument(
        "Dry run",
        "Only count what would be truncated, and what each reader group would lose unread; the "
        "report says it. Without it the stream is truncated, which you cannot undo.",
        True,
    )
