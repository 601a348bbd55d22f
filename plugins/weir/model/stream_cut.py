"""Stream cuts: consistent positions in a whole stream. All their rules are here.

U(c) is what a reader at cut c has not yet passed: the segments of c and all their descendants. At
any key, the segments of a stream follow each other in time, with growing ids, and U is all of them
from one segment on. So a cut is, *for every key, the oldest segment not yet passed there*: its
front.

    present     the segment is the front over its whole range; its offset says how far it is read
    future      it is the front over a part; over the rest a predecessor is unread
    later       it is in U but nowhere the front: not listed
    a <= b      nowhere is the front of b older, and no offset is smaller in b
    meet, join  at every key the older front, or the newer one

So order, bounds and membership need only ranges and ids, no graph of segments, and what lies below
the head may be pruned. They are exact for valid cuts: check a cut that comes from outside first.
Validity alone needs more of the stream: whether the cut leaves out a segment between two listed
ones. The rules are semantics 9.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from weir.errors import InvalidInput
from weir.model.key_space import KEY_SPACE, KeyRange, merge_blocks
from weir.model.segment import Segment, parse_segment_name, segment_name


class Future(Enum):
    """The type of FUTURE."""

    FUTURE = "future"


# Takes the place of an offset: the segment cannot be read yet, because a predecessor is unread.
FUTURE: Final = Future.FUTURE
Offset = int | Future

_ENTRY = re.compile(r"([^\s=]+)\s*=\s*([^\s=]+)")
_COUNT = re.compile(r"[0-9]{1,19}")


class Seam(NamedTuple):
    """A key at which the front of a cut passes from one segment to another."""

    key: float
    older_id: int
    newer_id: int


class _Front(NamedTuple):
    """`owners[i]` is the oldest listed segment from `keys[i]` to `keys[i + 1]`, or None."""

    keys: list[float]
    owners: list[Segment | None]

    @classmethod
    def of(cls, segments: Iterable[Segment], keys: Sequence[float] = ()) -> "_Front":
        """Return the front of segments. `keys`: further boundaries, to compare several fronts."""
        newest_first = sorted(segments, reverse=True)
        bounds = {key for s in newest_first for key in (s.key_low, s.key_high)}
        front = cls(sorted(bounds.union(keys)), [])
        front.owners.extend([None] * (len(front.keys) - 1))
        for segment in newest_first:
            part = front._part(segment)
            front.owners[part] = [segment] * (part.stop - part.start)
        return front

    def whole(self) -> dict[Segment, bool]:
        """Return per owner, by id, whether it owns its whole range."""
        parts = Counter(owner for owner in self.owners if owner)
        return {s: parts[s] == len(self.owners[self._part(s)]) for s in sorted(parts)}

    def owner_at(self, key: float) -> Segment | None:
        index = bisect_right(self.keys, key) - 1
        return self.owners[index] if 0 <= index < len(self.owners) else None

    def _part(self, segment: Segment) -> slice:
        return slice(
            bisect_left(self.keys, segment.key_low), bisect_left(self.keys, segment.key_high)
        )


@dataclass(frozen=True, repr=False)
class StreamCut:
    """Per listed segment the next offset to read, or FUTURE. Always in canonical form (semantics
    9.2).

    Further future entries, which follow from the others, are accepted and dropped, so equal cuts
    are equal values with equal JSON. Nothing is checked here: see `check_valid`.
    """

    offsets: Mapping[Segment, Offset]

    def __post_init__(self) -> None:
        waits = any(offset is FUTURE for offset in self.offsets.values())
        owners = set(_Front.of(self.offsets).owners) if waits else set()
        canonical = {
            segment: offset
            for segment, offset in sorted(self.offsets.items(), key=lambda item: item[0])
            if offset is not FUTURE or segment in owners
        }
        object.__setattr__(self, "offsets", MappingProxyType(canonical))

    def __hash__(self) -> int:
        return hash(frozenset(self.offsets.items()))

    def __repr__(self) -> str:
        return f"StreamCut({self.to_text()})"

    @property
    def present(self) -> dict[Segment, int]:
        """The segments that can be read now, by id, with the next offset."""
        return {s: offset for s, offset in self.offsets.items() if offset is not FUTURE}

    @property
    def future(self) -> list[Segment]:
        """The segments that wait for a predecessor over a part of their range, by id."""
        return [s for s, offset in self.offsets.items() if offset is FUTURE]

    @property
    def seams(self) -> list[Seam]:
        """The keys at which the front changes, ascending: where a segment may be left out."""
        front = self._front
        return [
            Seam(key, *sorted((left.segment_id, right.segment_id)))
            for key, (left, right) in zip(front.keys[1:-1], pairwise(front.owners), strict=True)
            if left and right
        ]

    def contains(self, segment: Segment) -> bool:
        """Return whether the segment, or a part of it, is not yet passed."""
        # One key is enough: a segment is passed over its whole range or not at all.
        owner = self._front.owner_at(segment.key_low)
        return owner is not None and owner.segment_id <= segment.segment_id

    def to_json(self) -> dict[str, int | str]:
        """Return `{"0.0": 12, "5.1": "future"}`, by segment id."""
        return {
            segment.name: offset.value if isinstance(offset, Future) else offset
            for segment, offset in self.offsets.items()
        }

    def to_text(self) -> str:
        """Return `0.0=12, 5.1=future`, by segment id."""
        return ", ".join(f"{name}={offset}" for name, offset in self.to_json().items())

    @classmethod
    def from_json(cls, value: object, segments: Mapping[int, Segment]) -> "StreamCut":
        """Return the cut of its JSON form; `segments` are those of the stream, by id.

        Raises InvalidInput for anything else, and for a segment that the stream does not have.
        """
        return cls(_look_up(read_entries(value), segments))

    @classmethod
    def parse(cls, text: str, segments: Mapping[int, Segment]) -> "StreamCut":
        """Return the cut of a text: JSON, or `0.0=12, 5.1=future`. Raises InvalidInput."""
        return cls(_look_up(read_text(text), segments))

    @cached_property
    def _front(self) -> _Front:
        return _Front.of(self.offsets)


def at_or_before(a: StreamCut, b: StreamCut) -> bool:
    """Return whether `b` has passed everything that `a` has passed (semantics 9.1)."""
    return first_behind(a, b) is None


def first_behind(a: StreamCut, b: StreamCut) -> Segment | None:
    """Return the first segment of `b` of which `a` has read more; None if there is none."""
    for segment, offset in b.present.items():
        known = a.offsets.get(segment)
        if known is None and not a.contains(segment):
            return segment
        if isinstance(known, int) and known > offset:
            return segment
    return None


def meet(cuts: Iterable[StreamCut]) -> StreamCut:
    """Return the lower bound, what all cuts have passed. Raises InvalidInput if there are none."""
    cuts = list(cuts)
    if not cuts:
        raise InvalidInput(
            "cut_invalid", "an empty list of stream cuts has no lower bound; give at least one cut."
        )
    front = _Front.of({segment for cut in cuts for segment in cut.offsets})
    # A segment that owns its whole range waits in no cut, so every cut that lists it has an offset.
    return StreamCut(
        {
            segment: min(_offsets_of(segment, cuts)) if whole else FUTURE
            for segment, whole in front.whole().items()
        }
    )


def join(a: StreamCut, b: StreamCut) -> StreamCut:
    """Return the upper bound: what at least one of the two cuts has passed."""
    keys = sorted({*a._front.keys, *b._front.keys})
    fronts = [_Front.of(cut.offsets, keys).owners for cut in (a, b)]
    newer = [max(x, y) if x and y else None for x, y in zip(*fronts, strict=True)]
    # Each cut may wait for a predecessor that the other has passed. Then both list the common
    # successor as future, and the join reads it from its beginning.
    return StreamCut(
        {
            segment: max(_offsets_of(segment, (a, b)), default=0) if whole else FUTURE
            for segment, whole in _Front(keys, newer).whole().items()
        }
    )


def ready(segments: Iterable[Segment]) -> set[Segment]:
    """Return the segments that none of the others precedes: what can be read if none is passed."""
    return {segment for segment, whole in _Front.of(segments).whole().items() if whole}


def check_valid(cut: StreamCut, later: Iterable[Segment], ends: Mapping[int, int]) -> None:
    """Check that a cut is a position of this stream (semantics 9.3).

    `later`: the stream's segments that were created after the first sealing of a segment of the
    cut, up to the cut's newest epoch, inclusive. Only those that straddle a seam matter
    (`key_low < seam.key < key_high` and `older_id < id < newer_id`), and each comes after the older
    one. `ends`: the tail or final size of each present segment, by id. Raises InvalidInput with the
    segment and the reason.
    """
    if not cut.offsets:
        raise InvalidInput(
            "cut_invalid",
            "the stream cut is empty; list the segments to read next with their offsets.",
        )
    for segment, offset in cut.present.items():
        end = ends[segment.segment_id]
        if not 0 <= offset <= end:
            raise InvalidInput(
                "cut_invalid",
                f"offset {offset} does not exist in segment {segment.name}; choose one from 0 to "
                f"its end, {end}.",
            )
    _check_states(cut)
    _check_covers(cut)
    _check_nothing_left_out(cut, later)


def read_entries(value: object) -> dict[int, Offset]:
    """Return the entries of a cut's JSON form by segment id. Raises InvalidInput."""
    if not isinstance(value, Mapping):
        raise InvalidInput(
            "cut_invalid",
            f'{value!r} is not a stream cut; write, for example, {{"0.0": 12, "5.1": "future"}}.',
        )
    return {parse_segment_name(name): _offset(name, offset) for name, offset in value.items()}


def read_text(text: str) -> dict[int, Offset]:
    """Return the entries of a text: JSON, or `0.0=12, 5.1=future`. Raises InvalidInput, as
    `read_entries` does, with the part that is wrong."""
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text, object_pairs_hook=_unique)
        except InvalidInput:
            raise
        # Endless nesting raises RecursionError, an endless number ValueError.
        except (ValueError, RecursionError) as error:
            raise InvalidInput(
                "cut_invalid",
                f'the stream cut is not valid JSON ({error}); write, for example, {{"0.0": 12, '
                '"5.1": "future"}.',
            ) from error
        return read_entries(value)
    entries: list[tuple[str, object]] = []
    for part in text.split(","):
        match = _ENTRY.fullmatch(part.strip())
        if match is None:
            raise InvalidInput(
                "cut_invalid",
                f"{part.strip()!r} is not an entry of a stream cut; write segment=offset, such as "
                "0.0=12 or 5.1=future, separated by commas.",
            )
        entries.append((match[1], int(match[2]) if _COUNT.fullmatch(match[2]) else match[2]))
    return read_entries(_unique(entries))


def _offsets_of(segment: Segment, cuts: Iterable[StreamCut]) -> list[int]:
    """Return the offsets that cuts give a segment; none where it is future, later or passed."""
    return [o for cut in cuts if isinstance(o := cut.offsets.get(segment), int)]


def _look_up(
    entries: Mapping[int, Offset], segments: Mapping[int, Segment]
) -> dict[Segment, Offset]:
    for segment_id in entries:
        if segment_id not in segments:
            raise InvalidInput(
                "cut_invalid",
                f"the stream has no segment {segment_name(segment_id)}, because it never existed "
                "or was deleted; choose a cut at or after the head.",
            )
    return {segments[segment_id]: offset for segment_id, offset in entries.items()}


def _offset(name: str, value: object) -> Offset:
    if value == FUTURE.value:
        return FUTURE
    # To Python a bool is an int; to the person who wrote it, it is not.
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInput(
            "cut_invalid",
            f"segment {name} has offset {value!r}; write a whole number, 0 or more, or "
            f"{FUTURE.value!r}.",
        )
    return value


def _unique(entries: Iterable[tuple[str, object]]) -> dict[str, object]:
    unique: dict[str, object] = {}
    for name, value in entries:
        if name in unique:
            raise InvalidInput(
                "argument_invalid", f"the stream cut lists segment {name!r} twice; list it once."
            )
        unique[name] = value
    return unique


def _check_states(cut: StreamCut) -> None:
    """Check that segments without a listed predecessor are present, and others future."""
    whole = cut._front.whole()
    for segment, offset in cut.offsets.items():
        if offset is FUTURE and whole[segment]:
            raise InvalidInput(
                "cut_invalid",
                f"the stream cut lists segment {segment.name} as future, but lists no predecessor "
                "of it; give it an offset, or list the predecessor that is read next.",
            )
        if offset is not FUTURE and not whole.get(segment, False):
            older = next(s for s in cut.offsets if s < segment and s.overlaps(segment))
            raise InvalidInput(
                "cut_invalid",
                f"segment {segment.name} has an offset, but the stream cut has not passed its "
                f"predecessor {older.name} yet; list {segment.name} as future or leave it out.",
            )


def _check_covers(cut: StreamCut) -> None:
    front = _Front.of(cut.offsets, KEY_SPACE)
    slots = zip(pairwise(front.keys), front.owners, strict=True)
    gaps = merge_blocks(KeyRange(*keys) for keys, owner in slots if owner is None)
    if gaps:
        raise InvalidInput(
            "cut_invalid",
            f"the stream cut has no segment for the keys {gaps[0]}; add the segment to read next "
            "there, as future if the cut lists one of its predecessors.",
        )


def _check_nothing_left_out(cut: StreamCut, later: Iterable[Segment]) -> None:
    """Check that no segment straddles a seam: it is passed as a whole or not at all."""
    seams = cut.seams
    for segment in later:
        first = bisect_right(seams, segment.key_low, key=lambda seam: seam.key)
        last = bisect_left(seams, segment.key_high, key=lambda seam: seam.key)
        for seam in seams[first:last]:
            if seam.older_id < segment.segment_id < seam.newer_id:
                older, newer = segment_name(seam.older_id), segment_name(seam.newer_id)
                raise InvalidInput(
                    "cut_invalid",
                    f"segment {segment.name} comes after {older}, which is unread, and before "
                    f"{newer}, which can't be reached yet; list {segment.name} as future in place "
                    f"of {newer}.",
                )
