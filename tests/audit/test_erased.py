"""Streams with compactions, erasures and truncations are proven, with their files."""

import pytest

from tests.chance import random_for
from tests.erasure.world import Erasing
from tests.world.groups import Group
from weir.audit.files import looking_at
from weir.audit.run import audit
from weir.database.connection import Database
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem


@pytest.mark.parametrize("case", range(2))
def test_compactions_and_erasures_are_proven(
    database: Database, settings: Settings, case: int
) -> None:
    world = Erasing.made(database, settings, random_for("erased and audited", case))
    group = Group.made(world.lane)
    for round_ in range(3):
        for _ in range(6):
            world.append()
        group.reader().read_all()
        world.compact()
        world.erase(f"k{3 * round_ + case}", f"k{3 * round_ + 1}")
        if round_ == 1:
            world.lane.truncate(", ".join(f"{k}={v}" for k, v in group.cut().items()))
        look = looking_at(*filesystem(settings.warehouse))
        for everything in (False, True):
            done = audit(database, everything=everything, look=look)
            assert [one.what for one in done.counter_examples] == []
    assert world.lane.value("SELECT sum(events) FROM hole WHERE stream_id = :s") > 0
