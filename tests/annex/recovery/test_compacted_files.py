"""A database that knows other files than its warehouse has, because a compaction lies between them,
gets the events from those that are there, or is told what is lost."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.chance import cases, random_for, some
from tests.compaction.test_beside import clean, on_disk, read
from tests.compaction.world import EVER, World
from tests.crash.fault_points import kill_at, moments_of
from tests.world.garbage import sweep
from tests.world.streams import Lane, run, unique
from weir.annex.recovery.recover import RecoverReport, recover
from weir.annex.verification.new_files import checking
from weir.annex.verification.verify import by_pyarrow, verify
from weir.compaction.pack import pack
from weir.compaction.run import compact
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.installation.opened import Installation
from weir.retention.prune import prune
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker

Restore = Callable[[Database], Database]


def recovered(database: Database, settings: Settings, what: str = "keep") -> RecoverReport:
    app = Installation(settings, database)
    return recover(
        database, settings.warehouse, unknown_files=what, check=checking(app),
        request_id=unique("recover"),
    )  # fmt: skip


def replaced(world: World, **how: Any) -> None:
    """Put all files together, and sweep the old ones."""
    compact(world.lane.database, world.settings, EVER, thorough=True, **how)
    sweep(world.lane.database, world.settings.warehouse, 0.0)


def on(world: World, database: Database, settings: Settings) -> World:
    """Return the world as another database knows it."""
    lane = Lane(database, world.lane.name, world.lane.stream_id)
    return World(lane, settings, world.random)


def elsewhere(settings: Settings, database: Database) -> Settings:
    """Return the settings with another database."""
    return Settings(
        state=settings.state, database=database._dsn, warehouse=settings.warehouse,
        input_roots=settings.input_roots, output_roots=settings.output_roots,
    )  # fmt: skip


def check_sound(world: World) -> None:
    app = Installation(world.settings, world.lane.database)
    done = verify(app, contents=by_pyarrow(app, contents=True))
    assert done.error() is None


@pytest.mark.parametrize(
    ("later", "what"),
    [
        pytest.param(0, "keep", id="whole-keep"),
        pytest.param(5, "delete", id="in part-delete"),
        pytest.param(0, "delete", id="whole-delete", marks=pytest.mark.release),
        pytest.param(5, "keep", id="in part-keep", marks=pytest.mark.release),
    ],
)
def test_what_was_put_together_since_the_backup_takes_the_place_of_what_was_swept(
    database: Database, settings: Settings, restore: Restore, later: int, what: str
) -> None:
    world = World.made(database, settings, random_for("since"))
    for _ in range(8):
        world.append()
    before, known = read(world), {file.path for file in world.lane.files()}
    back = restore(database)
    replaced(world)
    for _ in range(later):  # the compacted file has more events than the backup knows of
        world.append()
    replaced(world)
    assert not known & on_disk(world)
    restored = on(world, back, elsewhere(settings, back))
    report = recovered(back, restored.settings, "report")
    assert (report["missing_files"], report["found"], report["lost"]) == (
        len(known),
        len(known),
        [],
    )
    assert {file.path for file in restored.lane.files()} == known, "a report changes nothing"
    done = recovered(back, restored.settings, what)
    assert (done["found"], done["lost"]) == (len(known), [])
    assert read(restored) == before
    check_sound(restored)
    again = recovered(back, restored.settings, what)
    assert (again["missing_files"], again["found"]) == (0, 0)
    sweep(back, settings.warehouse, 0.0)
    assert read(restored) == before
    if what == "delete" or not later:
        clean(restored)
    world_goes_on(restored, before)


def world_goes_on(world: World, before: list[dict[str, Any]]) -> None:
    """What was put back is appended to, and put together again."""
    world.append()
    replaced(world)
    assert read(world)[: len(before)] == before
    check_sound(world)


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(16, least=1)))
@pytest.mark.filterwarnings("ignore::weir.TruncatedWarning")
def test_a_backup_of_any_moment_finds_all_that_nobody_truncated(
    database: Database, settings: Settings, restore: Restore, case: int
) -> None:
    random = random_for("any moment", case)
    world = World.made(database, settings, random)
    world.append()
    for _ in range(random.randint(1, 4)):
        for _ in range(random.randint(2, 8)):
            world.change()
        replaced(world)
    for _ in range(random.randint(0, 5)):
        world.append()
    before = read(world)
    back = restore(database)
    for _ in range(random.randint(1, 4)):
        for _ in range(random.randint(0, 4)):
            world.append()
        world.compact(thorough=True)
        sweep(database, settings.warehouse, 0.0)
    restored = on(world, back, elsewhere(settings, back))
    done = recovered(back, restored.settings, random.choice(["keep", "delete"]))
    assert done["lost"] == []
    assert read(restored) == before
    check_sound(restored)
    world_goes_on(restored, before)


@pytest.mark.parametrize("what", [pytest.param("keep", marks=pytest.mark.release), "delete"])
def test_a_warehouse_of_before_a_compaction_gives_the_files_that_it_was_made_of(
    database: Database, settings: Settings, tmp_path: Path, what: str
) -> None:
    world = World.made(database, settings, random_for("reverse"))
    for _ in range(6):
        world.append()
    replaced(world)
    for _ in range(6):
        world.append()
    before = read(world)
    shutil.copytree(settings.warehouse, tmp_path / "backup")
    replaced(world)
    marker = next(Path(settings.warehouse).glob("_weir_installation*"))
    shutil.copy(marker, tmp_path / "backup")
    shutil.rmtree(settings.warehouse)
    shutil.move(tmp_path / "backup", settings.warehouse)
    report = recovered(database, settings, "report")
    assert report["missing_files"] == report["found"] == 2
    done = recovered(database, settings, what)
    assert (done["found"], done["lost"]) == (2, [])
    assert read(world) == before
    check_sound(world)
    assert recovered(database, settings, what)["missing_files"] == 0
    if what == "delete":
        clean(world)
    world_goes_on(world, before)


def test_a_file_that_straddles_the_head_is_verified_and_found_though_metadata_was_pruned(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    world = World.made(database, settings, random_for("straddling"), segments=1)
    for _ in range(12):
        world.append()
    pack(database, 0.0, 60.0, most=4)
    for _ in range(3):
        world.append()
    shutil.copytree(settings.warehouse, tmp_path / "backup")
    replaced(world)
    [tail] = world.lane.tail().values()
    world.lane.truncate(f"0.0={tail - 1}")
    prune(database, 0.0)
    assert prune(database, 0.0) == []
    before = read(world)
    check_sound(world)
    marker = next(Path(settings.warehouse).glob("_weir_installation*"))
    shutil.copy(marker, tmp_path / "backup")
    shutil.rmtree(settings.warehouse)
    shutil.move(tmp_path / "backup", settings.warehouse)
    done = recovered(database, settings)
    assert (done["found"], done["lost"]) == (1, [])
    assert read(world) == before
    check_sound(world)


def edited(path: Path) -> None:
    """Change a value, and keep what the file says of itself."""
    rows = pq.read_table(path)
    notes = pq.read_metadata(path).metadata
    n = rows.schema.get_field_index("n")
    changed = rows.set_column(n, "n", pc.add(rows["n"], 1))
    with pq.ParquetWriter(path, changed.schema) as writer:
        writer.write_table(changed)
        writer.add_key_value_metadata({"weir": notes[b"weir"].decode()})


@pytest.mark.parametrize("what", [pytest.param("keep", marks=pytest.mark.release), "delete"])
def test_files_with_other_events_replace_nothing_and_what_is_lost_is_said(
    database: Database, settings: Settings, restore: Restore, what: str
) -> None:
    world = World.made(database, settings, random_for("edited"), segments=1)
    for _ in range(8):
        world.append()
    events, known = len(read(world)), {file.path for file in world.lane.files()}
    back = restore(database)
    replaced(world)
    [new] = world.lane.files()
    edited(Path(settings.warehouse, new.path))
    restored = on(world, back, elsewhere(settings, back))
    done = recovered(back, restored.settings, what)
    assert done["found"] == 0
    [lost] = done["lost"]
    assert (lost["stream"], lost["events"]) == (str(world.lane.name), events)
    assert {file.path for file in restored.lane.files()} == known
    sweep(back, settings.warehouse, 0.0)
    assert on_disk(world) == {new.path}, "the last trace of them stays"


def test_a_file_of_other_clocks_or_without_a_description_is_not_taken(
    database: Database, settings: Settings, restore: Restore
) -> None:
    world = World.made(database, settings, random_for("others"), segments=1)
    for _ in range(4):
        world.append()
    back = restore(database)
    replaced(world)
    path = Path(settings.warehouse, world.lane.files()[0].path)
    whole, notes = pq.read_table(path), pq.read_metadata(path).metadata
    told = {"weir": notes[b"weir"].decode()}
    clocks = whole["_weir_clock"].to_pylist()
    at = whole.schema.get_field_index("_weir_clock")
    moved = pa.array([clocks[0], *clocks[:-1]], pa.int64())
    for rows, said in (
        (whole, {}), (whole, {"weir": "[1]"}), (whole, {"weir": told["weir"].replace("0", "1")}),
        (whole.slice(1), told), (whole.drop_columns(["_weir_clock"]), told),
        (whole.set_column(at, "_weir_clock", moved), told),
    ):  # fmt: skip
        with pq.ParquetWriter(path, rows.schema) as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata(said)
        report = recovered(back, elsewhere(settings, back), "report")
        assert (report["found"], len(report["lost"])) == (0, 1)
    path.write_bytes(b"PAR1 is no file PAR1")
    assert recovered(back, elsewhere(settings, back), "report")["found"] == 0


@pytest.mark.server
@pytest.mark.parametrize(
    "copied",
    [
        pytest.param(False, id="as it is", marks=pytest.mark.release),
        pytest.param(True, id="copied"),
    ],
)
def test_a_recovery_that_is_killed_anywhere_puts_back_what_there_is_the_next_time(
    database: Database, settings: Settings, copied: bool
) -> None:
    world = World.made(database, settings, random_for("killed recovery"), segments=1)

    def recovering(database: Database) -> None:
        recovered(database, settings)

    def restored() -> list[dict[str, Any]]:
        """As after a restore of a database from before a compaction, whose file is to be taken as
        it is, or to be copied."""
        for _ in range(4):
            world.append()
        before = read(world)
        rows = world.lane.value("SELECT jsonb_agg(to_jsonb(f)) FROM data_file f")
        known = {file.path for file in world.lane.files()}
        replaced(world)
        [new] = {file.path for file in world.lane.files()} - known
        run(database, "DELETE FROM data_file")
        run(
            database,
            """INSERT INTO data_file SELECT * FROM jsonb_populate_recordset(
                CAST(NULL AS data_file), CAST(:rows AS jsonb))""",
            rows=json.dumps(rows),
        )
        if copied:  # as if somebody had made garbage of it
            run(
                database,
                """INSERT INTO garbage (root, path, stream_id, reason)
                VALUES ('', :p, :s, 'unknown')""",
                p=new,
                s=world.lane.stream_id,
            )
        here = read_installation(database)
        write_marker(settings.warehouse, Marker(here.installation_id, here.sweep_count + 1))
        return before

    restored()
    moments = moments_of(database._dsn, recovering, Path(settings.warehouse))
    begin = next(i for i, moment in enumerate(moments) if "begin_compaction" in moment)
    later = list(enumerate(moments))[begin:]
    opened = [moment for _, moment in later if moment == "after open_output_stream"]
    assert len(opened) == 1 + copied, "the marker, and the copy"
    for number, moment in some(later, "moments", str(copied), least=3):
        before = restored()
        kill_at(database._dsn, recovering, Path(settings.warehouse), number)
        report = recovered(database, settings)
        assert report["lost"] == [], moment
        sweep(database, settings.warehouse, 0.0)
        assert read(world) == before, moment
        check_sound(world)
