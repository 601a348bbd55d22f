"""Readers of one group, each a process, that are killed at work, at any statement and any change of
a file: nothing is lost, nothing is there twice in any kind of output, and in the end they share
fairly.
"""

import contextlib
import itertools
import os
import random
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import weir
from tests.chance import cases, random_for, some
from tests.committed_folders import committed_numbers
from tests.conftest import TestDatabase
from tests.controller.operations import Operation
from tests.crash.fault_points import kill_at, moments_of
from tests.crash.forks import Child, children
from tests.crash.jobs import execute, job, wait_for, write_config
from tests.world.groups import Group
from tests.world.streams import Lane, rows
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.errors import Fenced
from weir.programs.opening import shared
from weir.reader_groups.outputs.records import write_manifest
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker

KEYS = 29
EVENTS = 120  # appended per round
READERS = 3


@pytest.fixture
def made(
    settings: Settings, database: Database, test_database: TestDatabase
) -> Callable[[int], Settings]:
    """Return what makes the tables and the output root of a try, by its number."""
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))

    def make(number: int) -> Settings:
        execute(
            test_database.owner_dsn,
            f"""CREATE TABLE public.all_{number} (key text, n bigint PRIMARY KEY);
            CREATE TABLE public.last_{number} (key text PRIMARY KEY, n bigint);
            GRANT SELECT, INSERT, UPDATE ON public.all_{number}, public.last_{number}
                TO weir_jobs, weir_publisher""",
        )
        root = settings.state / str(number)
        root.mkdir()
        return replace(settings, output_roots=(str(root),), reader_lease=5.0)

    return make


@pytest.fixture
def chance() -> random.Random:
    """Return random numbers that the run's seed repeats."""
    return random_for("readers")


@pytest.fixture
def hasty(made: Callable[[int], Settings]) -> Settings:
    """Return an installation whose leases are short."""
    return replace(made(0), reader_lease=1.0, transaction_lease=5.0)


def append_numbers(settings: Settings, stream: str, numbers: Iterable[int]) -> None:
    """Append an event for each number. Those of a key are appended in their order."""
    numbers = list(numbers)
    table = pa.table({"key": [f"key {n % KEYS}" for n in numbers], "n": numbers})
    shared(settings).append(stream, table, writer_id="test", batch_id=f"from {numbers[0]}")


def outputs(number: int, out: Lane) -> tuple[str, ...]:
    return (
        f"stream:{out.name}", f"table:public.all_{number}", "parquet:copies",
        f"table:public.last_{number} mode=upsert key=key",
    )  # fmt: skip


def read_all(
    settings: Settings, database: Database, group: str, name: str, to: tuple[str, ...],
    moment: Callable[[], None] = lambda: None, **options: Any,
) -> None:  # fmt: skip
    """Read what there is, as a program does. `moment`: what happens before and after a commit."""
    store = weir.StreamStore(settings, database, name)
    with store.reader(group, reader_id=name, **options) as reader:
        for batch in reader:
            moment()
            batch.commit(dict.fromkeys(to, batch.events))
            moment()


def check(
    database: Database, settings: Settings, group: str, number: int, out: Lane, total: int
) -> None:
    """Check that every event is once in every output, those of a key in their order."""
    numbers = list(range(total))
    found = shared(settings).read(str(out.name), order="stream").to_pylist()
    assert sorted(event["n"] for event in found) == numbers, "the stream"
    last: dict[str, int] = {}
    for event in found:
        assert event["n"] > last.get(event["key"], -1), "not in order in the stream"
        last[event["key"]] = event["n"]
    table = rows(database, f"SELECT n FROM public.all_{number} ORDER BY n")
    assert [row.n for row in table] == numbers, "the table"
    kept = rows(database, f"SELECT key, n FROM public.last_{number}")
    assert {row.key: row.n for row in kept} == last, "the upserted table"
    copied = committed_numbers(database, settings.output_roots[0], group, "copies")
    assert copied == numbers, "Parquet"


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
        self.out = Lane.made(database, segments=2, retention="consumed")
        self.group, self.to = Group.made(self.lane), outputs(0, self.out)
        self.total = 0
        self.stop = settings.state / "stop"
        self.readers: dict[str, Child] = {}
        self.names = (f"reader {number}" for number in itertools.count())

    def append(self) -> None:
        numbers = range(self.total, self.total + EVENTS)
        append_numbers(self.settings, str(self.lane.name), numbers)
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

        def moment() -> None:
            if first or chance.random() < 0.02:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(chance.random() / 100)

        def work() -> None:
            database = Database.of(self.settings)
            while not self.stop.exists():
                with contextlib.suppress(Fenced):  # another one has taken over; it joins again
                    read_all(
                        self.settings, database, self.group.name, name, self.to, moment,
                        batch_events=chance.choice([3, 20, 1000]), expected_readers=READERS,
                    )  # fmt: skip
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
        """Whether all is read."""
        self.replace_the_dead()
        return self.group.cut() == self.lane.tail()

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
            wait_for("all to be read", world.done)
        except AssertionError:
            print(world.state())
            raise
        world.finish()
    read_all(settings, database, world.group.name, "last", world.to)
    check(database, settings, world.group.name, 0, world.out, world.total)
    check_fair(world.group)
    committed = [batch for batch in world.group.batches() if batch.state == "committed"]
    assert sum(batch.events for batch in committed) == world.total
    assert any(batch.attempt > 1 for batch in committed), "nobody was killed at work"


def check_fair(group: Group) -> None:
    """Check that readers who come when all others are dead share the segments evenly."""
    group.lapse(*group.readers())
    readers = [group.reader(f"later {number}") for number in range(READERS)]
    assert [reader.open() for reader in readers] == [None] * READERS
    shares = [len(group.owned(reader.reader_id)) for reader in readers]
    assert max(shares) - min(shares) <= 1


@pytest.mark.random
def test_readers_killed_again_and_again_read_each_event_once_and_share_fairly(
    database: Database, hasty: Settings, chance: random.Random
) -> None:
    rounds_of_killing(cases(100, least=12), database, hasty, chance)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_readers_killed_two_hundred_times_read_each_event_once_and_share_fairly(
    database: Database, hasty: Settings, chance: random.Random
) -> None:
    rounds_of_killing(200, database, hasty, chance)


@pytest.mark.random
def test_a_reader_killed_anywhere_is_taken_over_and_each_event_is_there_once(
    database: Database, settings: Settings, made: Callable[[int], Settings]
) -> None:
    """At every statement and every change of a file, from joining to leaving."""
    lane = Lane.made(database, retention="consumed")
    append_numbers(settings, str(lane.name), range(20))
    lane.scale("1.0")
    append_numbers(settings, str(lane.name), range(20, 30))

    def world(number: int) -> tuple[Group, Lane, Settings]:
        out = Lane.made(database, segments=1, retention="consumed")
        return Group.made(lane), out, made(number)

    def reading(number: int, group: Group, out: Lane, its: Settings) -> Operation:
        return lambda opened: read_all(its, opened, group.name, "dead", outputs(number, out))

    moments = moments_of(settings.database, reading(0, *world(0)), settings.state)
    for number, moment in some(enumerate(moments), "killed on pyarrow", least=3):
        group, out, its = world(1 + number)
        kill_at(settings.database, reading(1 + number, group, out, its), settings.state, number)
        group.lapse("dead")
        read_all(its, database, group.name, "heir", outputs(1 + number, out))
        again = weir.StreamStore(its, database, "heir").reader(group.name)
        assert list(again) == [], f"killed {moment}"
        its_root = Path(its.output_roots[0]) / f"copies/group={group.name}"
        if not (its_root / "_manifest.json").exists():  # killed after the commit: the next run's
            write_manifest(database, group.name, "copies", its.output_roots[0], "copies")
        check(database, its, group.name, 1 + number, out, 30)
    assert len(moments) > 60, moments


@pytest.mark.release
@pytest.mark.jvm
def test_readers_of_both_engines_that_are_killed_again_and_again_read_each_event_once(
    database: Database, made: Callable[[int], Settings]
) -> None:
    chance: random.Random = random_for("readers of both engines")
    settings = replace(made(0), reader_lease=4.0, transaction_lease=8.0)
    config = write_config(settings)
    lane = Lane.made(database, segments=4, retention="consumed")
    out = Lane.made(database, segments=2, retention="consumed")
    group = Group.made(lane)
    to = outputs(0, out)
    reading: dict[str, Any] = {"batch_events": 300}
    arguments = {
        "reader_group": group.name, "function": "tests.crash.functions:same", "engine": "spark",
        "outputs": list(to), "readers": 2, **reading,
    }  # fmt: skip

    def on_pyarrow(number: int) -> Child:
        def work() -> None:
            database = Database.of(settings)
            while True:
                with contextlib.suppress(Fenced):
                    read_all(settings, database, group.name, f"pyarrow {number}", to,
                             expected_readers=2, **reading)  # fmt: skip
                time.sleep(0.5)

        return Child(work, seconds=600)

    def append(total: int) -> int:
        append_numbers(settings, str(lane.name), range(total, total + 200))
        return total + 200

    total = 0
    with children() as started:
        for number in range(4):
            for _ in range(5):  # while nobody reads, so that there is work for both
                total = append(total)
            with job("process", arguments, config, run=f"spark {number}") as on_spark:
                wait_for("Spark", lambda: group_has(database, "/spark ") or not on_spark.running())
                assert on_spark.running(), on_spark.said
                reader = on_pyarrow(number)
                started.append(reader)
                for _ in range(chance.randrange(6)):
                    total = append(total)
                    time.sleep(0.5)
                if chance.random() < 0.4:
                    lane.scale(chance.choice(lane.active()))
                if number % 2:  # one of them dies in the middle of what it does
                    on_spark.kill()
                else:
                    reader.signal(signal.SIGKILL)
                    assert on_spark.wait(300) in (0, 1), on_spark.said
            reader.signal(signal.SIGKILL)
            reader.wait()
    read_all(settings, database, group.name, "last", to)
    check(database, settings, group.name, 0, out, total)
    by = {row.reader_id for row in rows(database, "SELECT reader_id FROM reader_batch")}
    assert {"/spark " in one for one in by - {"last"}} == {True, False}, "both engines have read"


def group_has(database: Database, engine: str) -> bool:
    """Whether a reader of this engine is in the group."""
    readers = rows(database, "SELECT reader_id FROM reader")
    return any(engine in row.reader_id for row in readers)
