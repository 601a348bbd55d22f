"""Erasures beside readers, appends, compactions and each other, and killed at any moment."""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.annex.erasure.world import Erasing
from tests.chance import cases, random_for, some
from tests.compaction.test_beside import on_disk, read
from tests.compaction.world import EVER
from tests.crash.fault_points import kill_at, moments_of
from tests.world.garbage import sweep
from tests.world.groups import ALL, Group
from tests.world.streams import at_once, run
from weir.compaction.run import compact
from weir.database.connection import Database
from weir.reader_groups.batches.alignment import end_of_run
from weir.settings import Settings

KEYS = [f"k{n}" for n in range(13)]


@pytest.mark.random
@pytest.mark.parametrize("aligned", [False, True], ids=["plain", "aligned"])
@pytest.mark.parametrize("case", range(cases(8)))
def test_a_reader_gets_each_event_that_is_left_once_and_in_order_while_others_are_erased(
    database: Database, settings: Settings, case: int, aligned: bool
) -> None:
    random = random_for("erased under a reader", case, aligned)
    world = Erasing.made(database, settings, random)
    for _ in range(20):
        world.append()
    group = Group.made(world.lane, subscriber=True, aligned=aligned)
    until, closed = database.transaction(lambda c: end_of_run(c, group.name))
    how: dict[str, Any] = {"until": until, "closed": closed} if aligned else {}
    reader = group.reader()
    got: list[tuple[int, int, int]] = []
    while batch := reader.open(random.choice([1, 20, 100, ALL]), order="stream", **how):
        assert batch.events == len(world.ranked(batch.bounds))
        planned = {file.path for file in world.lane.files()}
        if random.random() < 0.5:
            world.erase(random.choice(KEYS))
        if random.random() < 0.3:
            compact(database, settings, EVER, thorough=True)
        sweep(database, settings.warehouse, 3600.0)
        assert planned <= on_disk(world)  # the batch may be reading them
        got += world.ranked(batch.bounds)
        reader.commit(batch)
        sweep(database, settings.warehouse, 3600.0)
        assert world.lane.value("SELECT count(*) FROM garbage WHERE reason = 'erased'") == 0
    assert got == sorted(got)
    numbers = [n for _, _, n in got]
    assert len(numbers) == len(set(numbers))
    left = {row["n"] for row in world._read({})}
    assert left <= set(numbers) <= left | world.gone
    [lag] = world.lane.rows("SELECT unread_events FROM lag WHERE reader_group = :g", g=group.name)
    assert lag.unread_events == 0


def test_what_was_erased_is_in_no_file_once_it_is_swept(
    database: Database, settings: Settings
) -> None:
    world = Erasing.made(database, settings, random_for("bytes"))
    for _ in range(6):
        world.append()
    compact(database, settings, EVER, thorough=True)  # the old files are garbage, with the events
    world.append()
    world.erase("k7")
    sweep(database, settings.warehouse, 3600.0, compacted_grace=1e6)
    paths = [path for path in Path(settings.warehouse).rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" for path in paths)
    for path in paths:
        assert b"k7" not in path.read_bytes()
        if path.suffix == ".parquet":
            assert "k7" not in str(pq.read_table(path).to_pylist())


def erasing(world: Erasing, key: str, database: Database) -> None:
    world.erasing(database, key)


def test_an_erasure_that_is_killed_at_any_moment_is_done_by_the_next_run(
    database: Database, settings: Settings
) -> None:
    world = Erasing.made(database, settings, random_for("killed"))
    folder = Path(settings.warehouse)
    for _ in range(4):
        world.append()
    key = iter(KEYS)
    moments = moments_of(database._dsn, partial(erasing, world, next(key)), folder)
    assert {"before open_output_stream", "after open_output_stream"} <= set(moments)
    for number, moment in some(enumerate(moments), "moments of an erasure", least=4):
        world.append()
        one, before = next(key, "k0"), read(world)
        erase = partial(erasing, world, one)
        kill_at(database._dsn, erase, folder, number)
        left = [row for row in before if row["key"] != one]
        assert read(world) in (before, left), moment
        run(database, "UPDATE compaction SET lease_until = '-infinity' WHERE state = 'open'")
        world.erase(one)
        assert read(world) == left, moment
        holes = world.lane.value("SELECT sum(events) FROM hole WHERE stream_id = :s")
        assert holes == world.lane.value("SELECT sum(erased) FROM data_file WHERE stream_id = :s")
        assert holes == world.lane.value("SELECT sum(events) FROM erasure WHERE stream_id = :s")


def test_erasures_compactions_and_appends_at_once_lose_nothing_else(
    database: Database, settings: Settings
) -> None:
    world = Erasing.made(database, settings, random_for("at once"))
    for _ in range(12):
        world.append()
    before = read(world)

    done = at_once(
        partial(world.erasing, database, "k1", "k2"), partial(world.erasing, database, "k2", "k3"),
        partial(compact, database, settings, EVER, thorough=True), world.append,
    )  # fmt: skip
    failed = [one for one in done if isinstance(one, Exception)]
    assert [getattr(one, "code", one) for one in failed] in ([], ["erasure_waits"])
    world.erase("k1", "k2", "k3")
    after = read(world)
    kept = [row["n"] for row in before if row["key"] not in ("k1", "k2", "k3")]
    assert [row["n"] for row in after][: len(kept)] == kept
    assert {row["key"] for row in after} & {"k1", "k2", "k3"} == set()
    holes = world.lane.value("SELECT sum(events) FROM hole WHERE stream_id = :s")
    assert holes == world.lane.value("SELECT sum(events) FROM erasure WHERE stream_id = :s")
