"""A compaction is killed at any moment: nothing is lost or doubled, and nothing is left behind."""

from functools import partial
from pathlib import Path

import pytest

from tests.chance import random_for, some
from tests.compaction.test_beside import clean, read
from tests.compaction.world import EVER, World
from tests.crash.fault_points import kill_at, moments_of
from tests.world.streams import run
from weir.compaction.run import compact
from weir.database.connection import Database
from weir.settings import Settings

pytestmark = pytest.mark.server


def test_a_compaction_that_is_killed_at_any_moment_is_done_by_the_next_run(
    database: Database, settings: Settings
) -> None:
    world = World.made(database, settings, random_for("killed"))
    operation = partial(compact, settings=settings, budget=EVER, thorough=True)
    folder = Path(settings.warehouse)

    def small_files() -> None:
        for _ in range(4):
            world.append()

    small_files()
    moments = moments_of(database._dsn, lambda db: operation(db), folder)
    assert {"before open_output_stream", "after open_output_stream"} <= set(moments)
    assert len(world.lane.files()) == 2
    for number, moment in some(enumerate(moments), "moments of a compaction", least=4):
        small_files()
        before = read(world)
        kill_at(database._dsn, lambda db: operation(db), folder, number)
        assert read(world) == before, moment
        world.append()
        before = read(world)
        run(database, "UPDATE compaction SET lease_until = '-infinity' WHERE state = 'open'")
        reports = compact(database, settings, EVER, thorough=True)
        assert not [one for one in reports if "error" in one]
        assert len(world.lane.files()) == 2, moment
        clean(world)
        assert read(world) == before, moment
