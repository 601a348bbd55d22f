"""Segments: shards of the key space, their ids and names (semantics 1)."""

import re
from typing import NamedTuple

from weir.errors import InvalidInput

# An id is a Postgres bigint: 32 bits for the number leave 31 for the epoch.
_NUMBERS = 1 << 32
_EPOCHS = 1 << 31
_NAME = re.compile(r"(0|[1-9][0-9]{0,9})\.(0|[1-9][0-9]{0,9})")


class Segment(NamedTuple):
    """A shard of the key space, `[key_low, key_high)`. Segments sort by id, hence by age."""

    segment_id: int
    key_low: float
    key_high: float

    @property
    def number(self) -> int:
        """The number, which the copies made by a roll share: it does not identify a segment."""
        return segment_number(self.segment_id)

    @property
    def epoch(self) -> int:
        """The epoch that created the segment."""
        return self.segment_id // _NUMBERS

    @property
    def name(self) -> str:
        """`number.epoch`, as people write it: `5.1`."""
        return segment_name(self.segment_id)

    def overlaps(self, other: "Segment") -> bool:
        """Return whether two segments share a key. Ranges that only touch do not.

        If they are segments of one stream, the one with the larger id comes later (semantics 1.4).
        """
        return self.key_low < other.key_high and other.key_low < self.key_high


def segment_id(number: int, epoch: int) -> int:
    """Return `epoch << 32 | number`. Raises InvalidInput if one of them is out of range."""
    if not (0 <= number < _NUMBERS and 0 <= epoch < _EPOCHS):
        raise InvalidInput(
            "name_invalid",
            f"segment number {number} of epoch {epoch} can't exist; give a number from 0 to "
            f"{_NUMBERS - 1} and an epoch from 0 to {_EPOCHS - 1}.",
        )
    return epoch * _NUMBERS + number


def segment_number(segment_id: int) -> int:
    """Return the number of an id: 4294967301 has 5."""
    return segment_id % _NUMBERS


def segment_name(segment_id: int) -> str:
    """Return `number.epoch` of an id: 4294967301 is `5.1`."""
    return f"{segment_number(segment_id)}.{segment_id // _NUMBERS}"


def parse_segment_name(text: str) -> int:
    """Return the id of `number.epoch`. Raises InvalidInput."""
    match = _NAME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidInput(
            "name_invalid", f"{text!r} is not a segment; write number.epoch, such as 5.1."
        )
    return segment_id(int(match[1]), int(match[2]))
