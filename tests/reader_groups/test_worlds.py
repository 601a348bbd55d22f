"""Random worlds: what batches hold, planned without a database, whatever the streams' past.

`first_units` says by brute force what a budget allows; the last test compares it with what the
database finds.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import NamedTuple

import pytest

from tests.chance import FULL, cases, random_for
from tests.model.test_stream_cut import GRID, Stream, cells
from tests.reader_groups.ranked import Place, Ranked
from tests.world.groups import ALL
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.model.bounds import Bound, Graph, SegmentState, bounds_of_stream
from weir.model.segment import Segment
from weir.reader_groups.batches.budget import Budget, Fit, Unit, fit

WORLDS = 20_000 if FULL else cases(10_000)


class File(NamedTuple):
    """A file, or the part of it that is not read. Sorts by when it was written."""

    clock: int
    stream_id: int
    first_seq: int
    last_seq: int
    segment_id: int
    start: int
    end: int


def units_of(files: Iterable[File], unit: Unit) -> list[list[File]]:
    """The files as runs or as commits, in the order in which a batch takes them."""
    found: list[list[File]] = []
    for file in sorted(files):
        same = found and (found[-1][-1].clock == file.clock if unit == "commit" else (
            found[-1][-1][:2] == file[:2]
            and file.first_seq <= max(one.last_seq for one in found[-1])
        ))  # fmt: skip
        found[-1].append(file) if same else found.append([file])
    return found


def first_units(units: Sequence[Sequence[File]], budget: Budget) -> list[File]:
    """The first unit, and as many of those after it as the budget allows with it."""
    taken = list(units[0]) if units else []
    for unit in units[1:]:
        more = [*taken, *unit]
        if sum(f.end - f.start for f in more) > budget.events or len(more) > budget.files:
            break
        taken = more
    return taken


@dataclass
class World:
    """A stream: segments that are split, merged and rolled between commits; and a group in it."""

    stream_id: int
    stream: Stream
    files: list[File] = field(default_factory=list)
    places: dict[tuple[int, int], tuple[Place, int]] = field(default_factory=dict)  # and the cell
    offsets: dict[Segment, int] = field(default_factory=dict)  # of the group
    passed: set[Segment] = field(default_factory=set)

    @classmethod
    def made(cls, stream_id: int, random: Random, clock: int) -> "World":
        world = cls(stream_id, Stream(0, *sorted(random.sample(range(1, GRID), 2)), GRID))
        world.stream.sizes = dict.fromkeys(world.stream.segments, 0)
        hot = random.sample(range(GRID), 2)
        for _ in range(random.randint(1, 12)):
            clock += random.choice([1, 1, 7])
            what = random.random()
            if what < 0.15:
                world.change(random)
            elif what < 0.2:
                world.sizes_kept(
                    lambda: world.stream.roll(random.randrange(len(world.stream.epochs)))
                )
            world.commit(random, clock, hot)
        return world

    def change(self, random: Random) -> None:
        """Split or merge some neighbours."""
        edges = sorted({0, GRID, *(int(s.key_low * GRID) for s in self.stream.active)})
        first = random.randrange(len(edges) - 1)
        past = min(len(edges) - 1, first + random.randint(1, 2))
        low, high = edges[first], edges[past]
        inner = [edge for edge in range(low + 1, high) if random.random() < 0.4]
        self.sizes_kept(lambda: self.stream.scale(low, *inner, high))

    def sizes_kept(self, work: Callable[[], object]) -> None:
        known = set(self.stream.sizes)
        work()
        for segment in self.stream.sizes.keys() - known:
            self.stream.sizes[segment] = 0

    def commit(self, random: Random, clock: int, hot: list[int]) -> None:
        """What some tasks wrote, each a run of ranks; mostly a few rows, sometimes many."""
        rank = 0
        for _ in range(random.choice([1, 1, 2, 4])):
            rows: dict[Segment, list[tuple[int, int]]] = {}
            for _ in range(random.choice([1, 3, 10, 80])):
                cell = random.choice([random.randrange(GRID), *hot])
                [segment] = [s for s in self.stream.active if cell in cells([s])]
                rows.setdefault(segment, []).append((rank, cell))
                rank += 1
            for segment, found in rows.items():
                start = self.stream.sizes[segment]
                self.stream.sizes[segment] += len(found)
                self.files.append(
                    File(clock, self.stream_id, found[0][0], found[-1][0], segment.segment_id,
                         start, start + len(found))
                )  # fmt: skip
                for i, (row, cell) in enumerate(found):
                    self.places[segment.segment_id, start + i] = ((clock, row), cell)

    def graph(self) -> Graph:
        sealed: dict[Segment, int] = {}
        for epoch, (before, after) in enumerate(pairwise(self.stream.epochs), 1):
            sealed |= {segment: epoch for segment in before if segment not in after}
        return Graph(
            SegmentState(s, self.stream.sizes[s], sealed.get(s)) for s in self.stream.segments
        )

    def readable(self, graph: Graph, within: Fit) -> list[Bound]:
        """The bounds of a batch of the group's only reader."""
        before = self.stream.predecessors
        left = [s for s in self.stream.segments if s not in self.passed]
        present = {s: self.offsets.get(s, 0) for s in left if before[s] <= self.passed}
        future = [s for s in left if s not in present and before[s] & self.passed]

        def cap(segment: Segment, start: int, end: int) -> int:
            return within.end(self.stream_id, segment, start, end)

        return bounds_of_stream(self.stream_id, present, future, graph, None, cap)

    def unread(self, bounds: Sequence[Bound]) -> list[File]:
        """What lies between bounds, as parts of files."""
        ends = {b.segment_id: b for b in bounds if b.stream_id == self.stream_id}
        return [
            f._replace(start=max(f.start, b.start), end=min(f.end, b.end))
            for f in self.files
            if (b := ends.get(f.segment_id)) and f.start < b.end and b.start < f.end
        ]

    def read(self, bounds: Sequence[Bound]) -> list[tuple[Place, int]]:
        """Move the group to the end of these bounds; what it has read, sorted."""
        segments = {s.segment_id: s for s in self.stream.segments}
        found = []
        for b in bounds:
            if b.stream_id != self.stream_id:
                continue
            segment = segments[b.segment_id]
            assert self.offsets.get(segment, 0) == b.start, "it was read before, or is left out"
            assert self.stream.predecessors[segment] <= self.passed, "something lies before it"
            self.offsets[segment] = b.end
            found += [self.places[b.segment_id, n] for n in range(b.start, b.end)]
            if b.completes:
                assert b.end == self.stream.sizes[segment]
                self.passed.add(segment)
        return sorted(found)


def planned(
    worlds: Sequence[World], graphs: Sequence[Graph], budget: Budget, unit: Unit
) -> list[Bound]:
    """What `weir.reader_groups.batches.plan` does, with `first_units` in place of the database."""

    def bounds(within: Fit) -> list[Bound]:
        return [
            b for w, graph in zip(worlds, graphs, strict=True) for b in w.readable(graph, within)
        ]

    wanted = bounds(Fit(None, 0))
    taken = first_units(units_of([f for w in worlds for f in w.unread(wanted)], unit), budget)
    ends: dict[tuple[int, int], int] = {}
    for file in taken:
        key = file.stream_id, file.segment_id
        ends[key] = max(file.end, ends.get(key, 0))
    return bounds(Fit(ends, 0))


def check_world(random: Random, plan: Callable[..., list[Bound]]) -> None:
    """Read a random world batch after batch, and check what is promised."""
    count = random.choice([1, 1, 2])
    streams = [World.made(i, random, random.randrange(5)) for i in range(count)]
    graphs = [world.graph() for world in streams]
    unit: Unit = random.choice(["run", "commit"])
    budget = Budget(random.choice([1, 7, 60, 1_000]), ALL, random.choice([3, ALL]))
    delivered: list[list[tuple[Place, int]]] = [[] for _ in streams]
    while bounds := plan(streams, graphs, budget, unit):
        assert plan(streams, graphs, budget, unit) == bounds, "another plan"
        files = [f for world in streams for f in world.unread(bounds)]
        size = sum(f.end - f.start for f in files)
        within = size <= budget.events and len(files) <= budget.files
        assert len(units_of(files, unit)) <= 1 or within, "more than the budget"
        for world, found in zip(streams, delivered, strict=True):
            found += world.read(bounds)
        if unit == "commit" and files:
            bound = max(file.clock for file in files)
            for world, found in zip(streams, delivered, strict=True):
                left = set(world.places.values()) - {*found}
                assert all(clock > bound for (clock, _), _ in left), "left behind below the bound"
    for world, found in zip(streams, delivered, strict=True):
        assert found == sorted(world.places.values()), "not in write order, or not once"


@pytest.mark.random
@pytest.mark.parametrize("part", range(4))
def test_batches_of_random_worlds_keep_what_is_promised(part: int) -> None:
    for case in range(part, WORLDS, 4):
        check_world(random_for(case), planned)


def test_a_plan_that_divides_commits_by_segment_and_offset_is_found_out() -> None:
    def by_offset(
        worlds: Sequence[World], graphs: Sequence[Graph], budget: Budget, _unit: Unit
    ) -> list[Bound]:
        def wrong(file: File) -> File:
            return file._replace(first_seq=file.start, last_seq=file.start)

        changed = [replace(world, files=list(map(wrong, world.files))) for world in worlds]
        return planned(changed, graphs, budget, "run")

    broken = 0
    for case in range(100):
        try:
            check_world(Random(case), by_offset)
        except AssertionError:
            broken += 1
    assert broken > 50


@pytest.mark.random
def test_the_database_finds_as_many_whole_units_as_a_budget_allows(
    shared_database: Database,
) -> None:
    random = random_for("fit")
    streams = [
        Ranked(Lane.made(shared_database, segments=3, retention="consumed")) for _ in range(2)
    ]
    for _ in range(8):
        for one in streams:
            if random.random() < 0.3:
                one.lane.scale(random.choice(one.lane.active()), parts=random.choice([1, 2]))
            one.append_some(random)
    files = [
        File(row.clock, one.lane.stream_id, row.first_seq, row.last_seq, row.segment_id,
             row.start_offset, row.start_offset + row.events)
        for one in streams
        for row in one.lane.rows(
            "SELECT f.*, t.clock FROM data_file f JOIN transaction t USING (stream_id, "
            "transaction_number) WHERE f.stream_id = :s"
        )
    ]  # fmt: skip
    for _ in range(40):
        # From somewhere in write order on.
        left = [f for unit in units_of(files, "run")[random.randrange(20) :] for f in unit]
        keys = {(f.stream_id, f.segment_id) for f in left}
        mine = {key: [f for f in left if (f.stream_id, f.segment_id) == key] for key in keys}
        wanted = [
            Bound(*key, min(f.start for f in here), max(f.end for f in here), False)
            for key, here in sorted(mine.items())
        ]
        budget = Budget(random.choice([1, 5, 20, 60]), ALL, random.choice([1, 4, 9, 1_000]))
        for unit in ("run", "commit"):
            found = shared_database.transaction(
                partial(fit, wanted=wanted, budget=budget, unit=unit)
            )
            units = units_of(left, unit)
            taken = first_units(units, budget)
            if found.ends is None:
                assert taken == [f for one in units for f in one]
                continue
            ends: dict[tuple[int, int], int] = {}
            for file in taken:
                key = file.stream_id, file.segment_id
                ends[key] = max(file.end, ends.get(key, 0))
            assert found.ends == ends, (unit, budget)
            assert found.clock == max(file.clock for file in taken)
