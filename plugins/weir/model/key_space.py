"""Ranges of the key space `[0, 1)`: splits, and which scales are valid (semantics 1 and 6).

Ranges are compared exactly, to the last bit of the double: a gap or an overlap of one bit would
lose a key, or give it to two segments.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import xxhash

from weir.errors import Conflict, InvalidInput
from weir.model.segment import Segment, segment_name


class KeyRange(NamedTuple):
    """A range of keys, `[low, high)`."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"[{self.low!r}, {self.high!r})"


KEY_SPACE = KeyRange(0.0, 1.0)
STEPS = 1 << 53  # a routing position is a whole number of steps, divided by this many
SEED = 42  # of Spark's xxhash64


def routing_steps(key: bytes) -> int:
    """Return the routing position of a key in UTF-8 (semantics 1.6) times `STEPS`, exactly."""
    return xxhash.xxh64_intdigest(key, SEED) >> 11


def even_split(count: int, within: KeyRange = KEY_SPACE) -> list[KeyRange]:
    """Return `count` ranges of equal width; the last one ends exactly where `within` ends.

    Raises InvalidInput if `count` is less than 1, or if doubles are too coarse for that many
    ranges.
    """
    check_range(within)
    if count < 1:
        raise InvalidInput(
            "argument_invalid",
            f"the key range {within} can't be split into {count} ranges; give at least 1.",
        )
    width = (within.high - within.low) / count
    # Adding up widths would not reach the end: 49 times 1/49 is below 1.0.
    bounds = [within.low + i * width for i in range(count)] + [within.high]
    ranges = [KeyRange(low, high) for low, high in pairwise(bounds)]
    if any(low >= high for low, high in ranges):
        raise InvalidInput(
            "argument_invalid",
            f"the key range {within} is too narrow to be split into {count}; ask for fewer ranges.",
        )
    return ranges


def merge_blocks(ranges: Iterable[KeyRange]) -> list[KeyRange]:
    """Return the ranges sorted, with touching ranges joined. A gap or an overlap begins a new
    block.
    """
    blocks: list[KeyRange] = []
    for low, high in sorted(ranges):
        if blocks and blocks[-1].high == low:
            blocks[-1] = KeyRange(blocks[-1].low, high)
        else:
            blocks.append(KeyRange(low, high))
    return blocks


def covers(ranges: Iterable[KeyRange], target: KeyRange) -> bool:
    """Return whether every key of `target` is in at least one of the ranges."""
    reached = target.low
    for low, high in sorted(ranges):
        if low > reached:
            break
        reached = max(reached, high)
    return reached >= target.high


def tiles(ranges: Iterable[KeyRange]) -> bool:
    """Return whether every key of `[0, 1)` is in exactly one of the ranges."""
    ranges = list(ranges)
    return all(low < high for low, high in ranges) and merge_blocks(ranges) == [KEY_SPACE]


def splits_and_merges(old: Iterable[KeyRange], new: Iterable[KeyRange]) -> tuple[int, int]:
    """Return how many old ranges overlap several new ones, and how many new ranges overlap several
    old ones (semantics 6.5).

    The ranges are those of two successive epochs, or only those that a scale seals and creates: a
    segment that continues to exist counts as neither.
    """
    old, new = sorted(old), sorted(new)
    return _spread(old, new), _spread(new, old)


def check_scale(
    active: Sequence[Segment],
    seal: Sequence[int],
    new: Sequence[KeyRange],
    minimum: int | None = None,
    maximum: int | None = None,
) -> None:
    """Check that a scale leaves active segments that tile the key space (semantics 6.1).

    `seal`: ids of the segments to seal. `new`: the ranges that replace them. `minimum`,
    `maximum`: the fewest and the most segments that the stream's policy allows. Raises Conflict if
    the stream is no longer what the caller saw (a segment is not active, too few or too many
    segments would be left), and InvalidInput if the ranges are wrong in themselves.
    """
    ranges = {s.segment_id: KeyRange(s.key_low, s.key_high) for s in active}
    for segment_id in seal:
        if segment_id not in ranges:
            raise Conflict(
                "segment_not_active",
                f"segment {segment_name(segment_id)} is not active, because it was sealed or "
                "never existed; choose among the active segments of the stream.",
            )
    for segment_id, times in Counter(seal).items():
        if times > 1:
            raise InvalidInput(
                "argument_invalid",
                f"segment {segment_name(segment_id)} is named {times} times among the segments to "
                "seal; name it once.",
            )
    if not seal or not new:
        raise InvalidInput(
            "argument_invalid",
            "a scale must seal at least one segment and create at least one range; got "
            f"{len(seal)} and {len(new)}.",
        )
    for key_range in new:
        check_range(key_range)
    _check_same_keys([ranges[segment_id] for segment_id in seal], new)
    left = len(active) - len(seal) + len(new)
    if minimum is not None and left < minimum:
        raise Conflict(
            "limit_reached",
            f"the scale would leave {left} segments, but the stream's minimum is {minimum}; seal "
            "fewer, or lower the minimum first.",
        )
    if maximum is not None and left > max(maximum, len(active)):
        raise Conflict(
            "limit_reached",
            f"the scale would leave {left} segments, but the stream's maximum is {maximum}; create "
            "fewer, or raise the maximum first.",
        )


def _spread(ranges: list[KeyRange], others: list[KeyRange]) -> int:
    """Return how many of the ranges overlap more than one of the others. Both are sorted and
    disjoint.
    """
    lows, highs = [r.low for r in others], [r.high for r in others]
    return sum(bisect_left(lows, r.high) - bisect_right(highs, r.low) > 1 for r in ranges)


def check_range(key_range: KeyRange) -> None:
    """Check that a range lies within the key space and is not empty. Raises InvalidInput."""
    # In this form a NaN fails as well.
    if not 0.0 <= key_range.low < key_range.high <= 1.0:
        raise InvalidInput(
            "argument_invalid",
            f"{key_range} is not a key range; write two numbers between 0 and 1, the lower one "
            "first.",
        )


def _check_same_keys(sealed: Sequence[KeyRange], new: Sequence[KeyRange]) -> None:
    """Check that the new ranges are disjoint and cover the same keys as the sealed ones."""
    in_order = sorted(new)
    for first, second in pairwise(in_order):
        if second.low < first.high:
            raise InvalidInput(
                "argument_invalid",
                f"the new ranges {first} and {second} overlap; give ranges that do not.",
            )
    before, after = merge_blocks(sealed), merge_blocks(new)
    if before != after:
        raise InvalidInput(
            "argument_invalid",
            f"the new ranges cover {_list(after)}, but the segments to seal cover "
            f"{_list(before)}; give ranges that cover exactly the same keys.",
        )


def _list(blocks: Sequence[KeyRange]) -> str:
    more = f" and {len(blocks) - 5} more" if len(blocks) > 5 else ""
    return ", ".join(map(str, blocks[:5])) + more
