"""A reader on pyarrow that is killed at work, at any statement and any change of a file: nothing is
lost, and nothing is there twice, in any kind of output.
"""

import contextlib
import random
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weir
from tests.chance import cases, random_for, some
from tests.committed_folders import committed_numbers
from tests.conftest import TestDatabase
from tests.controller.operations import Operation
from tests.crash.fault_points import kill_at, moments_of
from tests.crash.forks import Child, children
from tests.crash.group_reader import append_numbers
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

KEYS = 7


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


def outputs(number: int, out: Lane) -> tuple[str, ...]:
    return (
        f"stream:{out.name}", f"table:public.all_{number}", "parquet:copies",
        f"table:public.last_{number} mode=upsert key=key",
    )  # fmt: skip


def read_all(
    settings: Settings, database: Database, group: str, name: str, to: tuple[str, ...],
    **options: Any,
) -> None:  # fmt: skip
    """Read what there is, as a program does."""
    store = weir.StreamStore(settings, database, name)
    with store.reader(group, reader_id=name, **options) as reader:
        for batch in reader:
            batch.commit(dict.fromkeys(to, batch.events))


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


@pytest.mark.random
def test_a_reader_on_pyarrow_killed_anywhere_is_taken_over_and_each_event_is_there_once(
    database: Database, settings: Settings, made: Callable[[int], Settings]
) -> None:
    """At every statement and every change of a file, from joining to leaving."""
    lane = Lane.made(database, retention="consumed")
    append_numbers(settings, str(lane.name), range(20), KEYS)
    lane.scale("1.0")
    append_numbers(settings, str(lane.name), range(20, 30), KEYS)

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


@pytest.mark.random
def test_readers_on_pyarrow_that_are_killed_again_and_again_read_each_event_once(
    database: Database, made: Callable[[int], Settings]
) -> None:
    chance: random.Random = random_for("readers on pyarrow")
    settings = replace(made(0), reader_lease=1.0, transaction_lease=5.0)
    lane = Lane.made(database, segments=4, retention="consumed")
    out = Lane.made(database, segments=2, retention="consumed")
    group, stop = Group.made(lane), settings.state / "stop"
    to = outputs(0, out)

    def start(name: str) -> Child:
        mine = random.Random(chance.random())

        def work() -> None:
            database = Database.of(settings)
            while not stop.exists():
                with contextlib.suppress(Fenced):  # another one has taken over; it joins again
                    read_all(
                        settings, database, group.name, name, to,
                        batch_events=mine.choice([3, 20, 1000]), expected_readers=2,
                    )  # fmt: skip
                time.sleep(0.02)

        return Child(work, seconds=300)

    with children() as started:
        readers = [start(f"reader {i}") for i in range(2)]
        started += readers
        total = 0
        for number in range(cases(30, least=3)):
            append_numbers(settings, str(lane.name), range(total, total + 60), KEYS)
            total += 60
            if chance.random() < 0.3:
                lane.scale(chance.choice(lane.active()))
            time.sleep(chance.random() / 4)
            which = chance.randrange(2)
            readers[which].signal(signal.SIGKILL)
            readers[which].wait()
            readers[which] = start(f"reader {which}" if chance.random() < 0.5 else f"new {number}")
            started.append(readers[which])
        wait_for("all to be read", lambda: group.cut() == lane.tail())
        stop.touch()
        for reader in readers:
            assert reader.wait()[0] in (0, -signal.SIGKILL)
    read_all(settings, database, group.name, "last", to)
    check(database, settings, group.name, 0, out, total)


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
    reading = {"batch_events": 300}
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
        append_numbers(settings, str(lane.name), range(total, total + 200), KEYS)
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
