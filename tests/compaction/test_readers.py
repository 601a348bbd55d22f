"""Readers go on while the files that they read are put together and swept."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from tests.chance import cases, random_for
from tests.compaction.test_beside import on_disk
from tests.compaction.world import EVER, World
from tests.world.garbage import sweep
from tests.world.groups import ALL, Group
from weir.compaction.run import compact
from weir.controller.commit import commit
from weir.database.connection import Database
from weir.kernel import stage as staging
from weir.kernel.writer import stage_table
from weir.reader_groups.batches.alignment import end_of_run
from weir.settings import Settings


@pytest.mark.random
@pytest.mark.parametrize("aligned", [False, True], ids=["plain", "aligned"])
@pytest.mark.parametrize("case", range(cases(8)))
def test_a_reader_gets_each_event_once_and_in_order_while_files_are_replaced_at_random(
    database: Database, settings: Settings, case: int, aligned: bool
) -> None:
    random = random_for("readers", case, aligned)
    world = World.made(database, settings, random)
    for _ in range(20):
        world.append()
    group = Group.made(world.lane, subscriber=False, aligned=aligned)
    until, closed = database.transaction(lambda c: end_of_run(c, group.name))
    how: dict[str, Any] = {"until": until, "closed": closed} if aligned else {}
    reader = group.reader()
    read: list[tuple[int, int, int]] = []
    old: set[str] = set()
    while batch := reader.open(random.choice([1, 20, 100, ALL]), order="stream", **how):
        planned = world.lane.files()
        # Files are swept that became garbage before the batch was opened, and no others.
        if random.random() < 0.6:
            if not aligned:
                world.append()
            compact(database, settings, EVER, thorough=True)
        sweep(database, settings.warehouse, 0.0)
        assert {file.path for file in planned} <= on_disk(world)
        assert not old & on_disk(world)
        read += world.ranked(batch.bounds)
        reader.commit(batch)
        old = {file.path for file in planned} - {file.path for file in world.lane.files()}
        sweep(database, settings.warehouse, 0.0)
        assert on_disk(world) == {file.path for file in world.lane.files()}
    assert read == sorted(read)
    assert [n for _, _, n in read] == [row["n"] for row in world._read({"order": "stream"})]


def test_halves_follow_one_another_though_an_append_shares_its_first_and_last_file_with_others(
    database: Database, settings: Settings
) -> None:
    world = World.made(database, settings, random_for("halves"), segments=1)
    for rows in (23, 33, 63):
        table = pa.table({"key": ["a"] * rows, "n": [next(world.keys) for _ in range(rows)]})
        with patch.object(staging, "ROWS_PER_FILE", 10):
            commit(database, stage_table(settings.warehouse, world.lane.opened(), table))
    size = max((Path(settings.warehouse) / one.path).stat().st_size for one in world.lane.files())
    pairs = replace(settings, file_bytes=size * 5 // 2)
    compact(database, pairs, EVER, [world.lane.name], thorough=True)
    assert [one.events for one in world.lane.files()[:4]] == [20, 13, 20, 13]
    batch = Group.made(world.lane, subscriber=False).reader().open(ALL, order="stream")
    assert batch
    first, rest = (world.ranked(half) for half in world.halves(batch.bounds))
    assert [len(first), len(rest)] == [56, 63]
    assert first + rest == world.ranked(batch.bounds)
