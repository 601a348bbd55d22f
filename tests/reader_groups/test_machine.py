"""Groups of readers that crash, lag and take over from each other, that are moved and forked,
against what was appended.

The model knows every event. Whatever happens, each is delivered to a group exactly once, into every
kind of sink, the events of a key in their order; or it was truncated before and is counted as lost.
"""

from collections.abc import Callable
from random import Random
from typing import cast

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

from tests.chance import cases
from tests.controller.driver import Driver
from tests.controller.model import as_json
from tests.reader_groups.driver import GroupDriver, Out, group_of
from tests.reader_groups.operators import Operator
from weir.compaction.pack import pack
from weir.database.connection import Database

seeds = st.integers(0, 2**32)
NAMES = ["a", "b", "c"]
budgets = st.sampled_from([1, 3, 10, 1_000])


class GroupMachine(RuleBasedStateMachine):
    """Two streams, a group and perhaps forks of it, readers and any number of their ghosts."""

    def __init__(self, database: Database, truncating: bool) -> None:
        super().__init__()
        self.database, self.truncating = database, truncating
        self.drivers = [Driver(database, segments=2), Driver(database, segments=1)]
        self.out = Out(database)
        self.operator = Operator(database, self.drivers)
        self.groups: list[GroupDriver] = []

    def group(self, random: Random) -> GroupDriver:
        """Most often the first one."""
        return random.choice([self.groups[0], *self.groups])

    # Streams change while they are read.

    @rule(which=st.integers(0, 1), seed=seeds)
    def append(self, which: int, seed: int) -> None:
        self.drivers[which].append(Random(seed))

    @rule(which=st.integers(0, 1), seed=seeds)
    def scale(self, which: int, seed: int) -> None:
        self.drivers[which].scale(Random(seed))

    @rule(seed=seeds)
    def commit_an_append_of_before(self, seed: int) -> None:
        """Often by a roll."""
        driver = self.drivers[0]
        driver.commit_some(Random(seed), 1)
        driver.open.append(driver.begin())

    @precondition(lambda self: self.truncating)
    @rule(which=st.integers(0, 1), seed=seeds)
    def truncate(self, which: int, seed: int) -> None:
        self.drivers[which].truncate(Random(seed))

    @rule(most=st.integers(4, 9))
    def pack_commits(self, most: int) -> None:
        pack(self.drivers[0].lane.database, 0.0, 1e9, most)

    # Readers come, read, crash, come back.

    @initialize(seed=seeds, subscriber=st.booleans())
    def begin(self, seed: int, subscriber: bool) -> None:
        """There is something to read, and there are readers."""
        cuts = {d.lane.stream_id: dict(d.model.head) for d in self.drivers}
        on_gap = "skip" if seed % 3 else "fail"
        made = group_of(self.drivers, cuts, self.out, on_gap=on_gap, subscriber=subscriber)
        self.groups.append(made)
        random = Random(seed)
        for driver in self.drivers:
            driver.scale(random)
            driver.append(random)
        for name in ("a", "b"):
            made.join(name)

    @rule(seed=seeds, bounded=st.booleans())
    def another_joins(self, seed: int, bounded: bool) -> None:
        group = self.group(Random(seed))
        new = [name for name in NAMES if name not in group.processes]
        if new:
            group.join(new[0], bounded)

    @rule(seed=seeds, budget=budgets, expected=st.integers(1, 3))
    def work(self, seed: int, budget: int, expected: int) -> None:
        """Some readers do what comes next."""
        random = Random(seed)
        for _ in range(random.randint(1, 6)):
            group = self.group(random)
            if not group.processes:
                group.join(NAMES[0])
            name = random.choice(sorted(group.processes))
            process = group.processes[name]
            if process.batch is None:
                group.open(name, budget, expected)
            elif process.staged is None and random.random() < 0.2:
                group.split(process)
                process.batch = None
            elif process.staged is None:
                group.write(process)
            else:
                group.commit(process)
                process.batch = process.staged = None

    @rule(seed=seeds)
    def something_happens_to_a_reader(self, seed: int) -> None:
        """To one that has a batch open, rather."""
        random = Random(seed)
        group = self.group(random)
        busy = [name for name, p in group.processes.items() if p.batch is not None]
        names = busy if busy and random.random() < 0.8 else sorted(group.processes)
        if names:
            name = random.choice(names)
            happens: list[Callable[[str], object]] = [
                group.dies, group.lapse, group.join, group.leaves,
            ]  # fmt: skip
            random.choice(happens)(name)
            heirs = [name for name, p in sorted(group.processes.items()) if p.batch is None]
            if heirs and random.random() < 0.7:
                group.open(random.choice(heirs), 10)

    @rule(seed=seeds)
    def a_ghost_goes_on(self, seed: int) -> None:
        random = Random(seed)
        group = self.group(random)
        found = [process for process in group.ghosts if process.batch is not None]
        for process in random.sample(found, min(len(found), 2)):
            for work in (group.renew, group.split, group.write, group.commit):
                if random.random() < 0.6:
                    work(process)

    @rule(seed=seeds)
    def renew_or_commit_twice(self, seed: int) -> None:
        """The answer to a commit was lost on the way, so it is asked for again."""
        random = Random(seed)
        group = self.group(random)
        for _, process in sorted(group.processes.items()):
            group.renew(process)
            if process.staged is not None and random.random() < 0.5:
                for _ in range(2):
                    group.commit(process)

    # Somebody looks after them.

    @rule(seed=seeds)
    def checkpoint(self, seed: int) -> None:
        random = Random(seed)
        group = self.group(random)
        self.operator.look_at_the_clock()
        ask = random.choice([self.operator.checkpoint] * 3 + [self.operator.cancel])
        ask(group, random)
        if random.random() < 0.3:
            self.operator.settle(self.groups)

    @rule(seed=seeds)
    def fill_in_a_form(self, seed: int) -> None:
        random = Random(seed)
        group = self.group(random)
        operator = self.operator
        forms = [operator.offline, operator.reset, operator.update, operator.mistake, self.fork]
        if len(group.model.cuts) == 1 or random.random() < 0.3:
            forms.append(operator.change_streams)
        random.choice(forms)(group, random)

    def fork(self, group: GroupDriver, random: Random) -> None:
        """Under a name that one had before who was deleted, too."""
        if len(self.groups) > 2:
            self.operator.delete(self.groups.pop(random.choice([1, 2])))
            return
        names = {f"{self.groups[0].group.name}-{i}" for i in (1, 2)}
        name = min(names - {other.group.name for other in self.groups})
        if (made := self.operator.fork(group, name, random, self.out)) is not None:
            self.groups.append(made)

    # What must hold.

    @invariant()
    def every_group_stands_where_its_events_say(self) -> None:
        for group in self.groups:
            group.check()

    def teardown(self) -> None:
        """Everybody dies; readers that come later read all the rest, and share it fairly."""
        for group in self.groups:
            group.model.on_gap = "skip"
            group.go_on_over_gaps()
            group.lapse(*list(group.model.readers))
            group.join("last")
            group.finish("last")
            group.check()
            group.check_outputs()
            for s, cut in group.model.cuts.items():
                assert as_json(cut) == as_json(self.operator.drivers[s].model.tail())
            group.check_fair(*NAMES)
        self.out.check()


def check(
    database: Database, truncating: bool, examples: int, steps: int, *, shrink: bool = False
) -> None:
    """A failure is made small only by the long tests: that takes minutes."""
    phases = [Phase.explicit, Phase.reuse, Phase.generate, *[Phase.shrink] * shrink]
    run_state_machine_as_test(
        # A function that makes one will do, its documentation says.
        cast(type[RuleBasedStateMachine], lambda: GroupMachine(database, truncating)),
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, phases=phases
        ),
    )


@pytest.mark.random
@pytest.mark.parametrize("truncating", [False, True])
def test_each_event_is_delivered_once_and_in_order(
    shared_database: Database, truncating: bool
) -> None:
    check(shared_database, truncating, examples=cases(30, least=3), steps=40)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("truncating", [False, True])
def test_each_event_is_delivered_once_and_in_order_in_long_histories(
    shared_database: Database, truncating: bool
) -> None:
    check(shared_database, truncating, examples=300, steps=80, shrink=True)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_each_event_is_delivered_once_however_little_of_the_graph_is_looked_at(
    shared_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weir.reader_groups.positions.MOST_SEGMENTS_AHEAD", 2)
    check(shared_database, truncating=True, examples=100, steps=80, shrink=True)
