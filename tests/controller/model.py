"""A stream by brute force: every event is kept, and every question is answered by counting them.

Key ranges are counted in cells, so that a key is a cell. A segment is passed, present or future as
the graph of segments says, which is walked epoch by epoch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import NamedTuple

from weir.model.segment import segment_id, segment_name

GRID = 16


class Event(NamedTuple):
    """One event: where its key lies, and its rank; once committed, its place among all commits."""

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

    def __init__(self, segments: int, first: int = 0) -> None:
        assert GRID % segments == 0
        self.segments: dict[int, ModelSegment] = {}
        self.epochs: list[list[int]] = []
        self.references: list[int] = []
        self.files: list[File] = []
        self.commits = 0
        self.next_number = 0
        width = GRID // segments
        self._advance([], [(first + i, i * width, (i + 1) * width) for i in range(segments)], None)
        self.next_number = first + segments
        self.head: Cut = dict.fromkeys(self.epochs[0], 0)

    # What changes it.

    def scale(self, sealed: Iterable[int], ranges: list[tuple[int, int]]) -> None:
        gone = set(sealed)
        kept = [s for s in self.epochs[-1] if s not in gone]
        created = [(self.next_number + i, low, high) for i, (low, high) in enumerate(ranges)]
        self._advance(kept, created, None)
        self.next_number += len(ranges)

    def commit(self, epoch: int, written: Written, *, rolling: int | None = None) -> int | None:
        """Place files that were written for the segments of an epoch, and return the epoch that was
        rolled, if any.

        `rolling`: the epoch of a roll that this may join.
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
        for source, events, path in sorted(written, key=lambda f: f[1][0].order):
            target = self.segments[targets[source]]
            placed = tuple(e._replace(order=self.commits << 32 | e.order) for e in events)
            self.files.append(File(target.segment_id, len(target.events), placed, path))
            target.events += placed
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
        """Return the active segments that can take the files; None if they cannot."""
        found = {}
        for source in {s for s, _, _ in written}:
            for active in self.epochs[-1]:
                if self.segments[source].cells <= self.segments[active].cells:
                    found[source] = active
        if len(found) < len({s for s, _, _ in written}):
            return None
        last: dict[int, int] = {}
        for source, events, _ in sorted(written, key=lambda f: f[1][0].order):
            if events[0].order < last.get(found[source], 0):
                return None  # after a merge: offsets would not follow the ranks
            last[found[source]] = max(e.order for e in events)
        return found

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
        """Return the segments of a cut and all their descendants."""
        found = set(cut)
        for s in sorted(self.segments):
            if self.predecessors(s) & found:
                found.add(s)
        return found

    def size_till(self, cut: Mapping[int, int | None]) -> tuple[int, int]:
        """Return the events and bytes before a cut."""
        left = self.unpassed(cut)
        before = [
            event
            for s, segment in self.segments.items()
            for event in segment.events[: (cut.get(s) or 0) if s in left else None]
        ]
        return len(before), sum(event.bytes for event in before)

    def splits_and_merges(self) -> list[tuple[int, int]]:
        """Return, up to each epoch, how many segments lie in several of the next epoch, and the
        reverse."""
        found = [(0, 0)]
        for before, after in pairwise(self.epochs):
            split, merged = (
                sum(
                    sum(bool(self.segments[a].cells & self.segments[b].cells) for b in others) > 1
                    for a in some
                )
                for some, others in ((before, after), (after, before))
            )
            found.append((found[-1][0] + split, found[-1][1] + merged))
        return found

    def tail(self) -> Cut:
        return {s: len(self.segments[s].events) for s in self.epochs[-1]}

    def chain(self, cell: int) -> list[Event]:
        """Return the events of a key as a reader meets them: segment after segment."""
        return [
            event
            for s in sorted(self.segments)
            if cell in self.segments[s].cells
            for event in self.segments[s].events
            if event.cell == cell
        ]

    def listing(self, positions: Mapping[int, int], left: set[int]) -> Cut:
        """Return the canonical cut of positions in the segments that are left."""
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
        """Return a random cut at or after another: read on from there, some keys faster than
        others."""
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

    # What can be asked about it.

    def active_at(self, epoch: int) -> Cut:
        """Return the cut at which the segments of an epoch begin, or the head if it is further."""
        return self.join(dict.fromkeys(self.epochs[epoch], 0), self.head)

    def successors(self, s: int) -> set[int]:
        return {n for n in self.segments if s in self.predecessors(n)}

    def span(self, cut: Mapping[int, int | None]) -> dict[int, int]:
        """Return per segment the highest epoch that has it, up to the newest creation epoch of the
        cut."""
        newest = max(cut) >> 32
        return {s: max(e for e in range(newest + 1) if s in self.epochs[e]) for s in cut}

    def between(self, start: Cut, end: Cut) -> dict[int, tuple[int, int]]:
        """Return, per segment to read from one cut to another, the first offset and the one to stop
        at."""
        passed = self.unpassed(start) - self.unpassed(end)
        ends = {s: len(self.segments[s].events) for s in passed}
        ends |= {s: offset for s, offset in end.items() if offset is not None}
        return {s: (start.get(s) or 0, past) for s, past in sorted(ends.items())}

    def join(self, a: Mapping[int, int | None], b: Mapping[int, int | None]) -> Cut:
        """Return the cut that has passed what at least one of two cuts has passed."""
        offsets = {s: max(a.get(s) or 0, b.get(s) or 0) for s in {*a, *b}}
        return self.listing(offsets, self.unpassed(a) & self.unpassed(b))

    def tail_at(self, epoch: int, orders: set[int]) -> Cut:
        """Return where the tail was in an epoch when only these events had been committed."""
        return {
            s: sum(event.order in orders for event in self.segments[s].events)
            for s in self.epochs[epoch]
        }

    def next_cut(self, cut: Cut, distance: int) -> Cut:
        """Return the cut that is `distance` events further, to which every segment moves by its
        share. A segment at its end is left as soon as one of its successors waits for nothing
        unread."""
        present = {s: offset for s, offset in cut.items() if offset is not None}
        share = max(1, distance // len(present))
        left = self.unpassed(cut)
        done = {s for s, offset in present.items() if offset == len(self.segments[s].events)}
        gets: dict[int, int] = {}
        for s in done:
            following = self.successors(s)
            for n in following:
                gets[n] = gets.get(n, 0) + share // len(following)
        ready = {n for n in gets if not self.predecessors(n) & left - done}
        departed = {s for s in done if self.successors(s) & ready}
        moves = {s: (offset, share) for s, offset in present.items() if s not in departed}
        moves |= {n: (0, max(1, gets[n])) for n in ready}
        ends = {s: len(self.segments[s].events) for s in moves}
        offsets = {s: min(offset + by, ends[s]) for s, (offset, by) in moves.items()}
        return self.listing(offsets, left - departed)

    def behind(self, cut: Mapping[int, int | None], other: Mapping[int, int | None]) -> bool:
        """Return whether `other` has passed all that `cut` has: nothing passed is left."""
        left, others = self.unpassed(cut), self.unpassed(other)
        return others <= left and all(
            (cut.get(s) or 0) <= (other.get(s) or 0) for s in others if cut.get(s) is not None
        )

    def files_below(self, head: Mapping[int, int | None]) -> set[str]:
        """Return the paths of the files wholly below a cut."""
        left = self.unpassed(head)
        return {
            file.path
            for file in self.files
            if file.segment_id not in left
            or file.start + len(file.events) <= (head.get(file.segment_id) or 0)
        }


def as_json(cut: Mapping[int, int | None]) -> dict[str, int | str]:
    """Return a cut as the database writes it."""
    return {segment_name(s): "future" if o is None else o for s, o in sorted(cut.items())}
