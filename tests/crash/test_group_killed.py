"""Readers of one group, each a process, that are killed while they work: nothing is lost, nothing
is there twice, and in the end they share fairly.
"""

import contextlib
import itertools
import os
import random
import signal
import time
from dataclasses import replace

import pytest

from tests.chance import cases, random_for, some
from tests.conftest import TestDatabase
from tests.controller.operations import Operation
from tests.crash.fault_points import kill_at, moments_of
from tests.crash.forks import Child, children
from tests.crash.group_reader import (
    FOLDER,
    GroupReader,
    append_numbers,
    check_exactly_once,
    make_table,
)
from tests.crash.jobs import wait_for
from tests.world.groups import Group
from tests.world.streams import Lane, rows
from weir.database.connection import Database
from weir.errors import Fenced
from weir.reader_groups.outputs.records import write_manifest
from weir.settings import Settings

KEYS = 29
EVENTS = 120  # appended per round
READERS = 3


@pytest.fixture
def chance() -> random.Random:
    """Return random numbers that the run's seed repeats."""
    return random_for("readers")


@pytest.fixture
def settings(settings: Settings, test_database: TestDatabase) -> Settings:
    """An installation whose leases are short, and with a table for results."""
    make_table(test_database.owner_dsn)
    return replace(settings, reader_lease=1.0, transaction_lease=5.0)


class World:
    """A stream of several segments, a group that reads it, and processes that do."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        chance: random.Random,
        children: list[Child],
    ) -> None:
        self.database, self.settings, self.chance = database, settings, chance
        self.children = children
        self.lane = Lane.made(database, segments=8, retention="consumed")
        self.out = Lane.made(database, retention="consumed")
        self.group = Group.made(self.lane)
        self.total = 0
        self.stop = settings.state / "stop"
        self.readers: dict[str, Child] = {}
        self.names = (f"reader {number}" for number in itertools.count())

    def append(self) -> None:
        numbers = range(self.total, self.total + EVENTS)
        append_numbers(self.settings, str(self.lane.name), numbers, KEYS)
        self.total += EVENTS

    def scale(self) -> None:
        """Split a segment, or merge two neighbours."""
        active = self.lane.active()
        merge = len(active) > 10 or (len(active) > 1 and self.chance.random() < 0.5)
        i = self.chance.randrange(len(active) - merge)
        seal = active[i : i + 2] if merge else [active[i]]
        self.lane.scale(*seal, parts=1 if merge else 2)

    def start(self, name: str) -> None:
        """A process that reads until it is told to stop; now and then it kills itself, between two
        things that belong together. The first of all does so with its first batch."""
        chance, first = random.Random(self.chance.random()), not self.children

        def moment(what: str) -> None:
            if first or chance.random() < 0.02:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(chance.random() / 100)

        def work() -> None:
            reader = GroupReader(
                self.settings, Database.of(self.settings), self.group.name, name, self.out.name,
                moment,
            )  # fmt: skip
            while not self.stop.exists():
                with contextlib.suppress(Fenced):  # it was replaced, and joins again
                    reader.join()
                    with reader.alive():
                        while not self.stop.exists():
                            if reader.read_batch(chance.choice([3, 20, 1000]), READERS) is None:
                                time.sleep(0.02)

        self.readers[name] = Child(work, seconds=600)
        self.children.append(self.readers[name])

    def replace_the_dead(self) -> None:
        """By a task that is retried, or by another that takes over."""
        for name, child in list(self.readers.items()):
            if not child.alive():
                assert child.wait() == (-signal.SIGKILL, "")
                del self.readers[name]
                self.start(name if self.chance.random() < 0.5 else next(self.names))

    def disturb(self) -> None:
        """Kill one, or let it hang until it was replaced, which it finds out when it goes on."""
        child = self.chance.choice(list(self.readers.values()))
        if self.chance.random() < 0.2:
            child.signal(signal.SIGSTOP)
            time.sleep(1.5 * self.settings.reader_lease)
            child.signal(signal.SIGCONT)
        else:
            child.signal(signal.SIGKILL)
            child.wait()

    def done(self) -> bool:
        """Whether all is read, and shared evenly by those who are there."""
        self.replace_the_dead()
        shares = [len(self.group.owned(name)) for name in self.readers]
        return self.group.cut() == self.lane.tail() and max(shares) - min(shares) <= 1

    def state(self) -> dict[str, object]:
        """Return what tells why it is not done: who reads, up to where, and what is held. Let the
        readers print what they are doing."""
        for child in self.readers.values():
            child.signal(signal.SIGUSR1)
        return {
            "tail": self.lane.tail(),
            "positions": self.group.states(),
            "here": {name: child.alive() for name, child in self.readers.items()},
            "readers": self.group.rows("SELECT * FROM reader WHERE group_id = :g"),
            "open": [batch for batch in self.group.batches() if batch.state == "open"],
            "sessions": rows(self.database, "SELECT * FROM pg_stat_activity"),
            "locks": rows(self.database, "SELECT * FROM pg_locks"),
        }

    def finish(self) -> None:
        self.stop.touch()
        for child in self.readers.values():
            assert child.wait() in ((0, ""), (-signal.SIGKILL, ""))


def rounds_of_killing(
    number: int, database: Database, settings: Settings, chance: random.Random
) -> None:
    with children() as started:
        world = World(database, settings, chance, started)
        for _ in range(READERS):
            world.start(next(world.names))
        for _ in range(number):
            world.append()
            if chance.random() < 0.3:
                world.scale()
            time.sleep(chance.random() / 5)
            world.disturb()
            world.replace_the_dead()
        try:
            wait_for("all to be read and shared evenly", world.done)
        except AssertionError:
            print(world.state())
            raise
        world.finish()
    # As the next run does: the last one may have been killed between its commit and the manifest.
    write_manifest(database, world.group.name, FOLDER, settings.output_roots[0], FOLDER)
    check_exactly_once(database, settings, world.group.name, world.out.name, world.total)
    committed = [batch for batch in world.group.batches() if batch.state == "committed"]
    assert sum(batch.events for batch in committed) == world.total
    assert any(batch.attempt > 1 for batch in committed), "nobody was killed at work"


@pytest.mark.random
def test_readers_killed_again_and_again_read_each_event_once_and_share_fairly(
    database: Database, settings: Settings, chance: random.Random
) -> None:
    rounds_of_killing(cases(100, least=12), database, settings, chance)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_readers_killed_two_hundred_times_read_each_event_once_and_share_fairly(
    database: Database, settings: Settings, chance: random.Random
) -> None:
    rounds_of_killing(200, database, settings, chance)


@pytest.mark.random
def test_a_reader_killed_anywhere_in_a_batch_is_taken_over_and_each_event_is_there_once(
    database: Database, settings: Settings
) -> None:
    """At every statement and every change of a file, from joining to the manifest."""
    lane = Lane.made(database, retention="consumed")
    append_numbers(settings, str(lane.name), range(20), KEYS)
    lane.scale("1.0")
    append_numbers(settings, str(lane.name), range(20, 30), KEYS)

    def world(number: int) -> tuple[Group, Lane, Settings]:
        """A group and its outputs."""
        made = replace(settings, output_roots=(str(settings.state / str(number)),))
        return Group.made(lane), Lane.made(database, segments=1, retention="consumed"), made

    def reading(group: Group, out: Lane, made: Settings) -> Operation:
        def operation(opened: Database) -> None:
            reader = GroupReader(made, opened, group.name, "dead", out.name)
            reader.join()
            reader.read_batch(1000)

        return operation

    moments = moments_of(settings.database, reading(*world(0)), settings.state)
    for number, moment in some(enumerate(moments), "killed readers", least=6):
        group, out, made = world(1 + number)
        kill_at(settings.database, reading(group, out, made), settings.state, number)
        group.lapse("dead")
        heir = GroupReader(made, database, group.name, "heir", out.name)
        heir.join()
        while heir.read_batch(1000) is not None:
            pass
        write_manifest(database, group.name, FOLDER, made.output_roots[0], FOLDER)
        check_exactly_once(database, made, group.name, out.name, 30)
        assert group.readers() == ["heir"], f"killed {moment}"
    assert len(moments) > 60, moments
