"""Segments: shards of the key space, their ids and their names."""

import re
from typing import NamedTuple

from weir.errors import InvalidInput

# An id is a Postgres bigint: 32 bits of number leave 31 for the epoch.
_NUMBERS = 1 << 32
_EPOCHS = 1 << 31
_NAME = re.compile(r"(0|[1-9][0-9]{0,9})\.(0|[1-9][0-9]{0,9})")


class Segment(NamedTuple):
    """One shard of the key space, `[key_low, key_high)`. Segments sort by id, hence by age."""

    segment_id: int
    key_low: float
    key_high: float

    @property
    def number(self) -> int:
        """Kept by the copies that a rolling transaction makes, so it does not identify."""
        return self.segment_id % _NUMBERS

    @property
    def epoch(self) -> int:
        """The epoch that created the segment."""
        return self.segment_id // _NUMBERS

    @property
    def name(self) -> str:
        """`number.epoch`, as people write it: `5.1`."""
        return segment_name(self.segment_id)

    def overlaps(self, other: "Segment") -> bool:
        """Whether they share a key. Ranges that only touch do not.

        Of two segments of a stream that overlap, the one with the larger id is the later one.
        """
        return self.key_low < other.key_high and other.key_low < self.key_high


def segment_id(number: int, epoch: int) -> int:
    """`epoch << 32 | number`. Raises InvalidInput for what does not fit."""
    if not (0 <= number < _NUMBERS and 0 <= epoch < _EPOCHS):
        raise InvalidInput(
            "segment_name_invalid",
            f"there is no segment number {number} of epoch {epoch}: a number lies between 0 and "
            f"{_NUMBERS - 1}, an epoch between 0 and {_EPOCHS - 1}.",
        )
    return epoch * _NUMBERS + number


def segment_name(segment_id: int) -> str:
    """`number.epoch` of an id: 4294967301 is `5.1`."""
    return f"{segment_id % _NUMBERS}.{segment_id // _NUMBERS}"


def parse_segment_name(text: str) -> int:
    """The id of `number.epoch`. Raises InvalidInput."""
    match = _NAME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidInput(
            "segment_name_invalid", f"{text!r} is not a segment: write number.epoch, such as 5.1."
        )
    return segment_id(int(match[1]), int(match[2]))
