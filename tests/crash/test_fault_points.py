"""Each operation is killed at every moment at which it can be, and asked for again: done once."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import TestDatabase
from tests.controller.operations import (
    Operation,
    aborting,
    beginning,
    committing,
    creating,
    deleting,
    retaining,
    scaling,
    scaling_by_load,
    sealing,
    truncating,
    updating,
)
from tests.crash.fault_points import Scene, kill_at, kill_everywhere, moments_of
from tests.world.groups import Group
from tests.world.scaling import by_rate, write
from tests.world.streams import FIELDS, Lane, database_of_file, rows, run, staged, unique
from weir.annex.recovery.recover import recover
from weir.controller.expiry import expire
from weir.controller.ownership import check_warehouse_ownership, read_installation
from weir.controller.staged import announce
from weir.controller.transactions import abort
from weir.database.connection import Database
from weir.errors import InvariantViolation
from weir.model.names import stream_name
from weir.model.schema import Field
from weir.retention.capture import capture
from weir.retention.garbage import sweep
from weir.retention.prune import prune
from weir.retention.release import release
from weir.warehouse.marker import MARKER, RECOVERY_GAP, Marker, write_marker

database = database_of_file


def create(lane: Lane) -> Scene:
    name = f"test/{unique('stream')}"
    return Scene([stream_name(name)], creating(name, "create"))


def begin(lane: Lane) -> Scene:
    return Scene([lane.name], beginning(lane, "one"))


def commit(lane: Lane) -> Scene:
    lane.append({"0.0": 1}, batch="before")
    return Scene([lane.name], committing(lane.opened("one")))


def commit_of_new_columns(lane: Lane) -> Scene:
    return Scene([lane.name], committing(lane.opened("one")))


def commit_with_a_roll(lane: Lane) -> Scene:
    late = lane.opened("late")
    lane.scale("0.0")
    return Scene([lane.name], committing(late))


def commit_of_two_streams(lane: Lane) -> Scene:
    other = Lane.made(lane.database, retention="consumed")
    both = [lane.opened("one"), other.opened("one")]
    return Scene([lane.name, other.name], committing(*both))


def abort_one(lane: Lane) -> Scene:
    return Scene([lane.name], aborting(lane.opened("one")))


def expire_two(lane: Lane) -> Scene:
    for batch in ("one", "other"):
        lane.opened(batch, lease=0.0)
    return Scene([lane.name], lambda database: expire(database, 0.0) and None)


def scale(lane: Lane) -> Scene:
    lane.append({"0.0": 3}, batch="one")
    return Scene([lane.name], scaling(lane, "0.0"))


def truncate(lane: Lane) -> Scene:
    lane.append({"0.0": [2, 3]}, batch="one")
    return Scene([lane.name], truncating(lane, "0.0=3, 1.0=0"))


def update(lane: Lane) -> Scene:
    fields: list[Field] = [{**FIELDS[0], "name": "more"}]
    return Scene([lane.name], updating(lane, fields, min_segments=3, tags=("tag",)))


def seal(lane: Lane) -> Scene:
    lane.opened("one")
    return Scene([lane.name], sealing(lane))


def seal_with_an_append_that_waits(lane: Lane) -> Scene:
    late = lane.opened("late")
    lane.scale("0.0")
    lane.database.transaction(lambda c: announce(c, staged(late, {"0.0": 3})))
    return Scene([lane.name], sealing(lane))


def delete(lane: Lane) -> Scene:
    lane.append({"0.0": 3}, batch="one")
    sealing(lane)(lane.database)
    return Scene([lane.name], deleting(lane))


def retain_what_is_consumed(lane: Lane) -> Scene:
    group = Group.made(lane)
    lane.append({"0.0": [2, 3]}, batch="one")
    group.reader().read_all()
    group.checkpoint()
    return Scene([lane.name], retaining(lane))


def capture_what_moved(lane: Lane) -> Scene:
    lane.append({"0.0": 3}, batch="one")
    return Scene([lane.name], lambda database: capture(database) and None)


def prune_what_is_truncated(lane: Lane) -> Scene:
    lane.append({"0.0": 3}, batch="one")
    lane.scale("0.0")
    prune(lane.database, 0.0)  # all others
    lane.truncate("2.1=0, 3.1=0, 1.0=0")
    return Scene([lane.name], lambda database: prune(database, 0.0) and None)


def release_by_hand(lane: Lane) -> Scene:
    group = Group.made(lane, release="manual")
    lane.append({"0.0": 3}, batch="one")
    request = unique("release")
    return Scene(
        [lane.name],
        lambda database: (
            release(database, group.name, "0.0=2, 1.0=0", request_id=request)["released"].values()
            and None
        ),
    )


def split_what_is_hot(lane: Lane) -> Scene:
    by_rate(lane)
    write(lane, {"0.0": 25.0, "1.0": 5.0})
    return Scene([lane.name], scaling_by_load(lane))


def merge_what_is_cold(lane: Lane) -> Scene:
    by_rate(lane)
    write(lane, {"0.0": 1.0, "1.0": 1.0})
    return Scene([lane.name], scaling_by_load(lane))


SCENES = [
    create,
    begin,
    commit,
    commit_of_new_columns,
    commit_with_a_roll,
    commit_of_two_streams,
    abort_one,
    expire_two,
    scale,
    truncate,
    update,
    seal,
    seal_with_an_append_that_waits,
    delete,
    split_what_is_hot,
    merge_what_is_cold,
    retain_what_is_consumed,
    capture_what_moved,
    prune_what_is_truncated,
    release_by_hand,
]

# The second run of retention, or of scaling by load, records that there is nothing more.
AGAIN_IS_MORE = (begin, split_what_is_hot, merge_what_is_cold, retain_what_is_consumed)


@pytest.mark.random
@pytest.mark.parametrize("made", SCENES, ids=lambda made: made.__name__)
def test_killed_anywhere_and_asked_for_again_it_is_done_once(
    made: Callable[[Lane], Scene], database: Database, tmp_path: Path
) -> None:
    kill_everywhere(
        database,
        tmp_path,
        lambda: made(Lane.made(database, retention="consumed")),
        again_is_more=made in AGAIN_IS_MORE,
    )


def test_what_is_done_twice_is_noticed(database: Database, tmp_path: Path) -> None:
    lane = Lane.made(database, retention="consumed")
    count = "UPDATE stream SET next_transaction_number = next_transaction_number + 1"

    def counting(database: Database) -> None:
        for _ in range(2):
            run(database, f"{count} WHERE stream_id = :s", s=lane.stream_id)

    found = []
    moments = moments_of(database._dsn, counting, tmp_path)
    for number in range(len(moments)):
        run(database, "UPDATE stream SET next_transaction_number = 1")
        kill_at(database._dsn, counting, tmp_path, number)
        counting(database)
        found.append(lane.value("SELECT next_transaction_number FROM stream WHERE stream_id = :s"))
    assert found == [3, 3, 4, 4, 4, 5], "2 for the killed one, and what it had done"


def test_a_sweep_killed_anywhere_is_finished_by_the_next(
    test_database: TestDatabase, tmp_path: Path
) -> None:
    database = test_database.open()

    def made(number: int) -> tuple[Path, list[str]]:
        """Return a warehouse with garbage beside files that are kept, and these files."""
        root = tmp_path / str(number)
        lane = Lane.made(database, retention="consumed")
        dead, alive = lane.opened(), lane.opened()
        below = "_weir_segment=0/_weir_task=0/"
        lives = [f"{alive.folder}{below}alive.parquet"]
        truncated = [
            f"{alive.folder}{below}dead.parquet",
            f"{lane.opened().folder}{below}a.parquet",
        ]
        checksums = [f"{alive.folder}{below}.dead.parquet.crc"]  # as Spark writes them
        for path in (f"{dead.folder}{below}a.parquet", f"{dead.folder}b", *lives, *truncated,
                     *checksums):  # fmt: skip
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("rows")
        abort(database, dead)
        for path in truncated:
            insert = "INSERT INTO garbage (root, path, reason) VALUES ('', :path, 'truncated')"
            run(database, insert, path=path)
        return root, lives

    def sweeping(root: Path) -> Operation:
        return lambda database: sweep(database, str(root), 0.0, output_roots=())

    def left(root: Path) -> list[str]:
        """The files, and folders that are empty."""
        found = [p for p in root.rglob("*") if not (p.is_dir() and any(p.iterdir()))]
        return [str(p.relative_to(root)) for p in found if not p.name.startswith(MARKER)]

    root, lives = made(0)
    moments = moments_of(test_database.dsn, sweeping(root), root)
    assert left(root) == lives
    for number, moment in enumerate(moments, start=1):
        root, lives = made(number)
        kill_at(test_database.dsn, sweeping(root), root, number - 1)
        assert set(lives) <= set(left(root)), f"killed {moment}"
        assert sweep(database, str(root), 0.0, output_roots=())["failed"] == []
        assert left(root) == lives, f"killed {moment}"
        assert rows(database, "SELECT path FROM garbage") == []
    assert len(moments) == 41, moments
    database.dispose()


@pytest.mark.parametrize(
    "unknown_files", ["delete", pytest.param("keep", marks=pytest.mark.release)]
)
def test_a_recovery_killed_anywhere_is_finished_by_the_next(
    test_database: TestDatabase, tmp_path: Path, unknown_files: str
) -> None:
    database = test_database.open()
    lanes = [Lane.made(database, retention="consumed"), Lane.made(database, retention="consumed")]
    root = str(tmp_path)
    check_warehouse_ownership(database, root)

    def recovering(database: Database) -> None:
        recover(database, root, unknown_files=unknown_files, request_id=unique("recover"))

    def restored() -> list[str]:
        """As after a restore: more sweeps in the warehouse, and files of later appends."""
        for lane in lanes:
            lane.opened()
        known = read_installation(database)
        write_marker(root, Marker(known.installation_id, known.sweep_count + 1))
        later = lanes[0].value(
            "SELECT next_transaction_number + 5 FROM stream WHERE stream_id = :s"
        )
        paths = [
            f"{folder}/_weir_tx={later}/_weir_attempt=1/_weir_segment=0/_weir_task=0/part"
            for folder in (lanes[0].stream_id, 1_000_000)  # of a stream that nobody knows, too
        ]
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True)
            (tmp_path / path).write_text("rows")
        return paths

    def check_recovered(paths: list[str]) -> None:
        assert rows(database, "SELECT FROM transaction WHERE state = 'open'") == []
        written = int(paths[0].split("_weir_tx=")[1].split("/")[0])
        [[number]] = lanes[0].rows(
            "SELECT next_transaction_number FROM stream WHERE stream_id = :s"
        )
        assert number > written + RECOVERY_GAP
        there = [(tmp_path / path).exists() for path in paths]
        assert there == [unknown_files == "keep"] * 2

    paths = restored()
    moments = moments_of(test_database.dsn, recovering, tmp_path)
    sweep(database, root, 0.0, output_roots=())
    check_recovered(paths)
    refused = 0
    for number, moment in enumerate(moments):
        for path in paths:
            shutil.rmtree(tmp_path / path.split("/")[0], ignore_errors=True)
        paths = restored()
        kill_at(test_database.dsn, recovering, tmp_path, number)
        try:
            sweep(database, root, 0.0, output_roots=())
        except InvariantViolation:
            refused += 1
            assert all((tmp_path / path).exists() for path in paths), f"killed {moment}"
            recovering(database)
            sweep(database, root, 0.0, output_roots=())
        check_recovered(paths)
    assert 0 < refused < len(moments)
    database.dispose()
