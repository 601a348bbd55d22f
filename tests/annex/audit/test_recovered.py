"""A database that was restored and recovered is proven, with its files, and goes on."""

import pytest

from tests.annex.erasure.world import Erasing
from tests.annex.recovery.test_compacted_files import Restore, elsewhere, recovered, replaced
from tests.chance import random_for
from tests.compaction.world import World
from tests.world.garbage import sweep
from tests.world.groups import Group
from tests.world.streams import Lane
from weir.annex.audit.files import looking_at
from weir.annex.audit.run import audit
from weir.compaction.pack import pack
from weir.database.connection import Database
from weir.retention.prune import prune
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem


def check_proven(world: World) -> None:
    look = looking_at(*filesystem(world.settings.warehouse))
    for everything in (False, True):
        done = audit(world.lane.database, everything=everything, look=look)
        assert [one.what for one in done.counter_examples] == []


@pytest.mark.parametrize("later", ["nothing", "compacted", "erased"])
def test_a_recovered_database_is_proven(
    database: Database, settings: Settings, restore: Restore, later: str
) -> None:
    """Its warehouse is newer: files were put together since, or events erased, and swept."""
    world = Erasing.made(database, settings, random_for("recovered", later), retention="consumed")
    group, slow = Group.made(world.lane), Group.made(world.lane)
    for _ in range(4):
        world.append()
    group.reader().read_all()
    world.erase("k1")
    world.lane.scale("0.0", parts=2)
    world.append()
    slow.reader().must_open(5)
    check_proven(world)
    back = restore(database)
    world.append()
    group.reader().read_all()
    if later == "erased":
        world.erase("k3", "k4")
    if later != "nothing":
        replaced(world)
    sweep(database, settings.warehouse, 0.0)
    lane = Lane(back, world.lane.name, world.lane.stream_id)
    restored = Erasing(lane, elsewhere(settings, back), world.random, keys=world.keys)
    done = recovered(back, restored.settings)
    assert done["lost"] == []
    check_proven(restored)
    for one in (group, slow):
        again = Group(back, one.name, (lane,))
        again.reader("another").read_all()
    restored.append()
    replaced(restored)
    restored.erase("k5")
    pack(back, 0, 1e9)
    prune(back, 0)
    check_proven(restored)
    lane.truncate(", ".join(f"{k}={v}" for k, v in Group(back, group.name, (lane,)).cut().items()))
    check_proven(restored)
