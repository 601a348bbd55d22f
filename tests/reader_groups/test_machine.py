"""A group of readers that crash, lag and take over from each other, against what was appended.

The model knows every event. Whatever happens, each is delivered to the group exactly once, the
events of a key in their order, or it was truncated before and is counted as lost.
"""

import contextlib
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.controller.driver import Driver
from tests.controller.model import GRID, Event, as_json
from tests.reader_groups.support import Group, Reader
from weir.controller.reads import slices_of_bounds
from weir.errors import Fenced
from weir.reader_groups.batches import Batch
from weir.storage import Database

seeds = st.integers(0, 2**32)
NAMES = ["a", "b", "c"]
budgets = st.sampled_from([1, 3, 10, 1_000])
Read = dict[int, list[Event]]  # per stream id, in the order in which a consumer sees them


@dataclass
class Process:
    """A process that reads: what it knows, whether or not it has been replaced meanwhile."""

    reader: Reader
    until: dict[int, dict[str, object]] | None
    batch: Batch | None = None
    read: Read = field(default_factory=dict)


class GroupMachine(RuleBasedStateMachine):
    """Two streams, one group, up to three readers and any number of their ghosts."""

    def __init__(self, database: Database, truncating: bool) -> None:
        super().__init__()
        self.truncating = truncating
        self.drivers = [Driver(database, segments=2), Driver(database, segments=1)]
        self.group = Group.made(*[d.lane for d in self.drivers], on_gap="skip", subscriber=False)
        self.processes: dict[str, Process] = {}
        self.ghosts: list[Process] = []
        self.holder: dict[int, int] = {}  # per open batch the token that may commit it
        self.bounds: dict[int, object] = {}
        self.delivered: list[list[Event]] = [[], []]
        self.random = Random(0)

    def token(self, reader_id: str) -> int | None:
        found = self.group.rows(
            "SELECT token FROM reader WHERE group_id = :g AND reader_id = :r", r=reader_id
        )
        return found[0].token if found else None

    # Streams change while they are read.

    @rule(which=st.integers(0, 1), seed=seeds)
    def append(self, which: int, seed: int) -> None:
        self.drivers[which].append(Random(seed))

    @rule(which=st.integers(0, 1), seed=seeds)
    def scale(self, which: int, seed: int) -> None:
        self.drivers[which].scale(Random(seed))

    @precondition(lambda self: len(self.drivers[0].open) < 3)
    @rule()
    def begin_an_append(self) -> None:
        self.drivers[0].open.append(self.drivers[0].begin())

    @precondition(lambda self: self.drivers[0].open)
    @rule(seed=seeds)
    def commit_an_append_of_before(self, seed: int) -> None:
        self.drivers[0].commit_some(Random(seed), 1)

    @precondition(lambda self: self.truncating)
    @rule(which=st.integers(0, 1), seed=seeds)
    def truncate(self, which: int, seed: int) -> None:
        self.drivers[which].truncate(Random(seed))

    # Readers come, read, crash, come back.

    @initialize(seed=seeds)
    def begin(self, seed: int) -> None:
        """There is something to read, and there are readers."""
        random = Random(seed)
        for driver in self.drivers:
            driver.scale(random)
            driver.append(random)
        for name in ("a", "b"):
            self.processes[name] = Process(self.group.reader(name), None)

    @rule(bounded=st.booleans())
    def another_joins(self, bounded: bool) -> None:
        for name in NAMES:
            if name not in self.processes:
                self.join(name, bounded)
                return

    def join(self, name: str, bounded: bool) -> None:
        reader = self.group.reader(name)
        self.processes[name] = Process(reader, self.group.tails() if bounded else None)

    @precondition(lambda self: self.processes)
    @rule(seed=seeds, bounded=st.booleans())
    def a_task_is_retried(self, seed: int, bounded: bool) -> None:
        """Under the same name, while its first try may live on."""
        name = self.somebody(Random(seed))
        self.ghosts.append(self.processes[name])
        self.join(name, bounded)

    @precondition(lambda self: self.processes)
    @rule(seed=seeds)
    def one_is_dead_to_the_others(self, seed: int) -> None:
        """Its lease runs out. It may be dead, or only slow."""
        name = self.somebody(Random(seed))
        self.group.lapse(name)
        self.ghosts.append(self.processes.pop(name))

    @precondition(lambda self: self.processes)
    @rule(seed=seeds)
    def a_lease_runs_out(self, seed: int) -> None:
        self.group.lapse(self.somebody(Random(seed)))

    def somebody(self, random: Random) -> str:
        """A reader, rather one that has a batch open."""
        busy = [name for name, p in self.processes.items() if p.batch is not None]
        return random.choice(busy if busy and random.random() < 0.7 else sorted(self.processes))

    @precondition(lambda self: self.processes)
    @rule(seed=seeds, budget=budgets, expected=st.integers(1, 3))
    def open(self, seed: int, budget: int, expected: int) -> None:
        idle = [name for name, p in sorted(self.processes.items()) if p.batch is None]
        name = Random(seed).choice(idle or sorted(self.processes))
        if not self.opened(name, budget, expected):
            del self.processes[name]

    def opened(self, name: str, budget: int, expected: int) -> bool:
        """Open a batch; False if the reader was replaced."""
        process = self.processes[name]
        if self.token(name) != process.reader.token:
            with pytest.raises(Fenced):
                process.reader.open(budget)
            return False
        batch = process.reader.open(budget, until=process.until, expected=expected)
        process.batch = batch
        if batch is None:
            return True
        if batch.batch_id in self.bounds:  # resumed or taken over: with the same bounds
            assert batch.bounds == self.bounds[batch.batch_id]
            assert batch.batch_id in self.holder
        self.bounds[batch.batch_id] = batch.bounds
        self.holder[batch.batch_id] = batch.token
        assert batch.token == process.reader.token
        process.read = self.read(batch)
        return True

    def read(self, batch: Batch) -> Read:
        """What the files hold between the bounds of a batch."""
        found: Read = {}
        for driver in self.drivers:
            files = {file.path: file.events for file in driver.model.files}
            bounds = [
                (b.segment_id, b.start, b.end)
                for b in batch.bounds
                if b.stream_id == driver.lane.stream_id and b.end > b.start
            ]
            slices = self.group.database.transaction(
                lambda c, s=driver.lane.stream_id, b=bounds: slices_of_bounds(c, s, b)
            )
            found[driver.lane.stream_id] = [
                event for s in slices for event in files[s.path][s.first_row : s.end_row]
            ]
        return found

    @precondition(lambda self: any(p.batch for p in self.processes.values()))
    @rule(seed=seeds)
    def commit(self, seed: int) -> None:
        busy = [p for _, p in sorted(self.processes.items()) if p.batch is not None]
        process = Random(seed).choice(busy)
        self.commit_as(process)
        process.batch = None

    @precondition(lambda self: any(p.batch for p in self.ghosts))
    @rule(seed=seeds)
    def a_ghost_commits(self, seed: int) -> None:
        self.commit_as(Random(seed).choice([p for p in self.ghosts if p.batch is not None]))

    def commit_as(self, process: Process) -> None:
        batch = process.batch
        if batch is None:
            return
        wanted = dict.fromkeys(process.read, 0)
        for b in batch.bounds:
            wanted[b.stream_id] += b.end - b.start
        lost = {s: n - len(process.read[s]) for s, n in wanted.items() if n > len(process.read[s])}
        if batch.batch_id not in self.holder:
            # Committed before: by this process, which is harmless, or by another.
            before = self.group.states(self.drivers[0].lane), self.group.batches()
            with contextlib.suppress(Fenced):
                process.reader.commit(batch, lost=lost)
            assert (self.group.states(self.drivers[0].lane), self.group.batches()) == before
            return
        if self.holder[batch.batch_id] != batch.token:
            with pytest.raises(Fenced):
                process.reader.commit(batch, lost=lost)
            return
        process.reader.commit(batch, lost=lost)
        del self.holder[batch.batch_id]
        for i, driver in enumerate(self.drivers):
            self.delivered[i] += process.read[driver.lane.stream_id]

    @precondition(lambda self: self.processes)
    @rule(seed=seeds)
    def renew(self, seed: int) -> None:
        name = Random(seed).choice(sorted(self.processes))
        if self.token(name) == self.processes[name].reader.token:
            self.processes[name].reader.renew()
        else:
            with pytest.raises(Fenced):
                self.processes[name].reader.renew()

    @precondition(lambda self: self.processes)
    @rule(seed=seeds)
    def leave(self, seed: int) -> None:
        """In the middle of a batch, too."""
        process = self.processes.pop(Random(seed).choice(sorted(self.processes)))
        process.reader.leave(lease=0.0)
        self.ghosts.append(process)

    @rule()
    def checkpoint(self) -> None:
        self.group.checkpoint()

    # What must hold after every step.

    @invariant()
    def positions_are_a_frontier(self) -> None:
        self.group.check_positions()

    @invariant()
    def the_events_of_a_key_are_delivered_once_and_in_order(self) -> None:
        for delivered in self.delivered:
            for cell in range(GRID):
                orders = [event.order for event in delivered if event.cell == cell]
                assert orders == sorted(set(orders))

    @invariant()
    def what_the_positions_have_passed_was_delivered_or_lost(self) -> None:
        for driver, delivered in zip(self.drivers, self.delivered, strict=True):
            cut = self.position(driver)
            passed, _ = driver.model.size_till(cut)
            lost = self.group.lost(driver.lane)
            assert passed == len(delivered) + lost
            left = driver.model.unpassed(cut)
            head, unread = driver.model.head, driver.model.unpassed(driver.model.head)
            seen = set(delivered)
            for s, segment in driver.model.segments.items():
                behind = (cut.get(s) or 0) if s in left else len(segment.events)
                readable = (head.get(s) or 0) if s in unread else len(segment.events)
                for i, event in enumerate(segment.events[:behind]):
                    assert event in seen or i < readable

    def position(self, driver: Driver) -> dict[int, int | None]:
        ids = {segment.name: s for s, segment in driver.model.segments.items()}
        cut = self.group.cut(driver.lane)
        return {ids[name]: None if o == "future" else o for name, o in cut.items()}

    @invariant()
    def a_segment_is_in_one_batch_at_most_and_pinned_by_it(self) -> None:
        found = self.group.rows(
            """SELECT b.batch_id, b.reader_id, b.bounds FROM reader_batch b
            WHERE group_id = :g AND state = 'open'"""
        )
        assert {b.batch_id for b in found} == set(self.holder)
        bound = [(x["stream"], x["segment"]) for b in found for x in b.bounds]
        assert len(bound) == len(set(bound))
        pinned = self.group.rows(
            """SELECT stream_id, segment_id, reader_id, batch_id FROM reader_group_segment
            WHERE group_id = :g AND batch_id IS NOT NULL"""
        )
        holders = {b.batch_id: b.reader_id for b in found}
        listed = self.group.rows(
            """SELECT stream_id, segment_id FROM reader_group_segment
            WHERE group_id = :g AND state <> 'future'"""
        )
        assert {(p.stream_id, p.segment_id) for p in pinned} == set(bound) & {
            (x.stream_id, x.segment_id) for x in listed
        }
        assert all(holders[p.batch_id] == p.reader_id for p in pinned)

    def teardown(self) -> None:
        """Everybody dies; one reader that comes later reads all the rest."""
        self.group.lapse(*NAMES)
        self.join("last", bounded=False)
        process = self.processes["last"]
        while self.opened("last", self.random.choice([2, 7, 1_000]), 1) and process.batch:
            self.commit_as(process)
        self.the_events_of_a_key_are_delivered_once_and_in_order()
        self.what_the_positions_have_passed_was_delivered_or_lost()
        for driver in self.drivers:
            assert self.group.cut(driver.lane) == as_json(driver.model.tail())


def check(
    database: Database, truncating: bool, examples: int, steps: int, *, shrink: bool = False
) -> None:
    """A failure is made small only by the long tests: that takes minutes."""
    phases = [Phase.explicit, Phase.reuse, Phase.generate, *[Phase.shrink] * shrink]
    run_state_machine_as_test(
        lambda: GroupMachine(database, truncating),
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, phases=phases
        ),
    )


@pytest.mark.parametrize("truncating", [False, True])
def test_each_event_is_delivered_once_and_in_order(
    shared_database: Database, truncating: bool
) -> None:
    check(shared_database, truncating, examples=25, steps=35)


@pytest.mark.soak
@pytest.mark.parametrize("truncating", [False, True])
def test_each_event_is_delivered_once_and_in_order_in_long_histories(
    shared_database: Database, truncating: bool
) -> None:
    check(shared_database, truncating, examples=300, steps=80, shrink=True)


@pytest.mark.soak
def test_each_event_is_delivered_once_however_little_of_the_graph_is_looked_at(
    shared_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weir.reader_groups.positions.MOST_SEGMENTS_AHEAD", 2)
    check(shared_database, truncating=True, examples=100, steps=80, shrink=True)
