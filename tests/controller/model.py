"""A stream by brute force: every event is kept, and every question is answered by counting them.

Key ranges are counted in cells, so that a key is a cell. A segment is passed, present or future as
the graph of segments says, which is walked epoch by epoch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from weir.segment import segment_id, segment_name

GRID = 16


class Event(NamedTuple):
    """One event: where its key lies, and its place in the order of all commits."""

    cell: int
    order: int
    bytes: int


class File(NamedTuple):
    """A file at its place."""

    segment_id: int
    start: int
    events: tuple[Event, ...]
    path: str


@dataclass
class ModelSegment:
    segment_id: int
    low: int
    high: int
    sealed: int | None = None
    events: list[Event] = field(default_factory=list)

    @property
    def number(self) -> int:
        return self.segment_id % (1 << 32)

    @property
    def name(self) -> str:
        return segment_name(self.segment_id)

    @property
    def cells(self) -> set[int]:
        return set(range(self.low, self.high))


Cut = dict[int, int | None]  # per segment id the next offset, None for future
Written = list[tuple[int, tuple[Event, ...], str]]  # files: segment id, events, path


class Model:
    """The history of one stream."""

    def __init__(self, segments: int) -> None:
        assert GRID % segments == 0
        self.segments: dict[int, ModelSegment] = {}
        self.epochs: list[list[int]] = []
        self.references: list[int] = []
        self.files: list[File] = []
        self.commits = 0
        self.next_number = 0
        width = GRID // segments
        self._advance([], [(i, i * width, (i + 1) * width) for i in range(segments)], None)
        self.next_number = segments
        self.head: Cut = dict.fromkeys(self.epochs[0], 0)

    # What changes it.

    def scale(self, sealed: Iterable[int], ranges: list[tuple[int, int]]) -> None:
        gone = set(sealed)
        kept = [s for s in self.epochs[-1] if s not in gone]
        created = [(self.next_number + i, low, high) for i, (low, high) in enumerate(ranges)]
        self._advance(kept, created, None)
        self.next_number += len(ranges)

    def commit(self, epoch: int, written: Written, *, rolling: int | None = None) -> int | None:
        """Place files that were written for the segments of an epoch.

        `rolling`: the epoch of a roll that this may join. Returns the epoch it rolled, if it did.
        """
        if rolling is not None and rolling != epoch:
            self.end_roll()
            rolling = None
        targets = self._targets(written)
        if targets is None:
            self._before = self.epochs[-1]
            self._duplicate(self.epochs[epoch], self.references[epoch])
            rolling = epoch
            targets = self._targets(written)
            assert targets is not None
        for source, events, path in sorted(written, key=lambda f: (f[0], f[1][0].order)):
            target = self.segments[targets[source]]
            self.files.append(File(target.segment_id, len(target.events), events, path))
            target.events += events
        self.commits += 1
        return rolling

    def end_roll(self) -> None:
        reference = self.references[-2]
        self._duplicate(self._before, reference)

    def _duplicate(self, originals: list[int], reference: int) -> None:
        copied = [self.segments[s] for s in originals]
        self._advance([], [(s.number, s.low, s.high) for s in copied], reference)

    def _advance(
        self, kept: list[int], created: list[tuple[int, int, int]], reference: int | None
    ) -> None:
        epoch = len(self.epochs)
        for s in self.epochs[-1] if self.epochs else []:
            if s not in kept:
                self.segments[s].sealed = epoch
        new = []
        for number, low, high in created:
            made = ModelSegment(segment_id(number, epoch), low, high)
            self.segments[made.segment_id] = made
            new.append(made.segment_id)
        self.epochs.append(kept + new)
        self.references.append(epoch if reference is None else reference)

    def _targets(self, written: Written) -> dict[int, int] | None:
        found = {}
        for source in {s for s, _, _ in written}:
            for active in self.epochs[-1]:
                if self.segments[source].cells <= self.segments[active].cells:
                    found[source] = active
        return found if len(found) == len({s for s, _, _ in written}) else None

    # What it is.

    def predecessors(self, s: int) -> set[int]:
        segment = self.segments[s]
        epoch = s >> 32
        if epoch == 0:
            return set()
        return {
            p
            for p in self.epochs[epoch - 1]
            if p not in self.epochs[epoch] and self.segments[p].cells & segment.cells
        }

    def unpassed(self, cut: Mapping[int, int | None]) -> set[int]:
        """The segments of a cut and all their descendants."""
        found = set(cut)
        for s in sorted(self.segments):
            if self.predecessors(s) & found:
                found.add(s)
        return found

    def size_till(self, cut: Mapping[int, int | None]) -> tuple[int, int]:
        """Events and bytes before a cut."""
        left = self.unpassed(cut)
        before = [
            event
            for s, segment in self.segments.items()
            for event in segment.events[: (cut.get(s) or 0) if s in left else None]
        ]
        return len(before), sum(event.bytes for event in before)

    def tail(self) -> Cut:
        return {s: len(self.segments[s].events) for s in self.epochs[-1]}

    def chain(self, cell: int) -> list[Event]:
        """The events of a key as a reader meets them: segment after segment."""
        return [
            event
            for s in sorted(self.segments)
            if cell in self.segments[s].cells
            for event in self.segments[s].events
            if event.cell == cell
        ]

    def listing(self, positions: Mapping[int, int], left: set[int]) -> Cut:
        """The canonical cut of positions in the segments that are left."""
        found: Cut = {}
        for s in sorted(left):
            waiting = self.predecessors(s) & left
            covered: set[int] = set().union(*(self.segments[p].cells for p in waiting))
            if not waiting:
                found[s] = positions.get(s, 0)
            elif not self.segments[s].cells <= covered:
                found[s] = None
        return found

    def frontier(self, random: Random, start: Mapping[int, int | None]) -> Cut:
        """A random cut at or after another: read on from there, some keys faster than others."""
        left = self.unpassed(start)
        positions = {s: offset for s, offset in start.items() if offset is not None}
        speed = [random.random() ** 3 for _ in range(GRID)]
        for _ in range(random.randint(0, 2 * len(left) + 2)):
            ready = [s for s in left if not self.predecessors(s) & left]
            weights = [min(speed[c] for c in self.segments[s].cells) + 1e-9 for s in ready]
            [s] = random.choices(ready, weights)
            segment, offset = self.segments[s], positions.get(s, 0)
            if offset < len(segment.events):
                positions[s] = random.randint(offset, len(segment.events))
            elif segment.sealed is not None:
                left.discard(s)
        return self.listing(positions, left)

    def behind(self, cut: Mapping[int, int | None], other: Mapping[int, int | None]) -> bool:
        """Whether `other` has passed all that `cut` has: nothing passed is left."""
        left, others = self.unpassed(cut), self.unpassed(other)
        return others <= left and all(
            (cut.get(s) or 0) <= (other.get(s) or 0) for s in others if cut.get(s) is not None
        )

    def dead(self, head: Mapping[int, int | None]) -> set[str]:
        """The files wholly below a cut."""
        left = self.unpassed(head)
        return {
            file.path
            for file in self.files
            if file.segment_id not in left
            or file.start + len(file.events) <= (head.get(file.segment_id) or 0)
        }


def as_json(cut: Mapping[int, int | None]) -> dict[str, int | str]:
    """A cut as the database writes it."""
    return {segment_name(s): "future" if o is None else o for s, o in sorted(cut.items())}
