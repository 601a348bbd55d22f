"""What was erased does not come back from a backup, and what was not is found."""

import shutil
from pathlib import Path

from tests.annex.erasure.world import Erasing
from tests.annex.recovery.test_compacted_files import (
    Restore,
    check_sound,
    elsewhere,
    recovered,
    replaced,
)
from tests.chance import random_for
from tests.compaction.test_beside import read
from tests.world.garbage import sweep
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.settings import Settings


def test_a_database_of_before_an_erasure_takes_over_the_holes_and_all_else(
    database: Database, settings: Settings, restore: Restore
) -> None:
    world = Erasing.made(database, settings, random_for("erased since"))
    for _ in range(6):
        world.append()
    replaced(world)
    world.append()
    back = restore(database)
    world.erase("k3", "k4")
    sweep(database, settings.warehouse, 0.0)
    before = read(world)
    lane = Lane(back, world.lane.name, world.lane.stream_id)
    restored = Erasing(lane, elsewhere(settings, back), world.random, keys=world.keys)
    done = recovered(back, restored.settings)
    assert (done["found"] > 0, done["lost"]) == (True, [])
    assert read(restored) == before
    [erasure] = restored.lane.rows("SELECT * FROM erasure")
    assert (erasure.requested_by, erasure.events) == ("recovery", len(world.gone))
    assert restored.lane.value("SELECT sum(events) FROM hole") == len(world.gone)
    check_sound(restored)
    assert recovered(back, restored.settings)["missing_files"] == 0
    restored.erase("k5")
    restored.append()
    replaced(restored)
    left = [row for row in before if row["key"] != "k5"]
    assert read(restored)[: len(left)] == left
    check_sound(restored)


def test_a_warehouse_of_before_an_erasure_gives_no_erased_event_back(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    world = Erasing.made(database, settings, random_for("reverse"))
    for _ in range(4):
        world.append()
    shutil.copytree(settings.warehouse, tmp_path / "backup")
    world.erase("k1")
    missing = [file.path for file in world.lane.files() if f"/_weir_tx={5}/" in file.path]
    sweep(database, settings.warehouse, 0.0)
    marker = next(Path(settings.warehouse).glob("_weir_installation*"))
    shutil.copy(marker, tmp_path / "backup")
    shutil.rmtree(settings.warehouse)
    shutil.move(tmp_path / "backup", settings.warehouse)
    done = recovered(database, settings)
    assert done["found"] == 0
    assert sum(one["files"] for one in done["lost"]) == len(missing) > 0
