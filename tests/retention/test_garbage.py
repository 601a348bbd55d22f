"""Deleting: folders and files, in whatever state a killed sweep left them."""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs
from sqlalchemy import event

from tests.conftest import TestDatabase
from tests.raises import raises
from tests.small_disk import fill
from tests.world.garbage import sweep
from tests.world.groups import Group
from tests.world.retention import write, write_files
from tests.world.streams import Lane, at_once, rows, run, unique
from weir.controller.ownership import check_warehouse_ownership, read_installation
from weir.controller.seal import seal_stream
from weir.controller.transactions import abort
from weir.database.connection import Database
from weir.reader_groups.outputs.records import sweep_manifests
from weir.retention import garbage
from weir.retention.delete_stream import delete_stream
from weir.warehouse.file_deletion import _delete, delete_here
from weir.warehouse.marker import MARKER, Marker, read_marker, write_marker


def mark_as_own(lane: Lane, root: Path) -> None:
    write_marker(str(root), Marker(read_installation(lane.database).installation_id))


@pytest.fixture
def lane(database: Database) -> Lane:
    return Lane.made(database, retention="consumed")


def record_garbage(lane: Lane, path: str, root: Path | str = "", ago: float = 0.0) -> None:
    run(
        lane.database,
        """INSERT INTO garbage (root, path, stream_id, reason, garbage_since)
        VALUES (:root, :path, :s, 'truncated', clock_timestamp() - :ago * interval '1 second')""",
        root=str(root), path=path, s=lane.stream_id, ago=ago,
    )  # fmt: skip


def garbage_file(lane: Lane, warehouse: Path, ago: float = 100.0) -> Path:
    path = f"{lane.stream_id}/_weir_tx=1/{unique('file')}"
    record_garbage(lane, path, ago=ago)
    return write(warehouse, path)


def left(lane: Lane) -> list[str]:
    return [row.path for row in rows(lane.database, "SELECT path FROM garbage ORDER BY path")]


def test_what_a_frozen_writer_writes_into_its_folder_after_the_sweep_is_found(
    lane: Lane, tmp_path: Path
) -> None:
    frozen = lane.opened()
    abort(lane.database, frozen)
    [folder] = left(lane)
    swept = partial(sweep, lane.database, str(tmp_path), 0.0, again_after=3600.0)
    assert swept()["deleted"] == 1
    late = write(tmp_path, f"{frozen.folder}_weir_segment=0/_weir_task=0/late.parquet")
    assert (swept()["deleted"], left(lane), late.exists()) == (0, [folder], True)
    later = "UPDATE garbage SET garbage_since = garbage_since - interval '1 hour'"
    run(lane.database, later)
    assert swept()["deleted"] == 0, "it is counted once"
    assert (left(lane), late.exists()) == ([], False)


def test_of_two_sweeps_at_once_none_takes_the_other_for_the_second_one_of_a_folder(
    lane: Lane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = lane.opened()
    abort(lane.database, frozen)
    folders = left(lane)
    delete_rows = garbage._delete_rows
    swept = partial(sweep, lane.database, str(tmp_path), 0.0, again_after=3600.0)

    def later(*given: Any, **named: Any) -> None:
        """Another sweep does the same between deleting files and rows."""
        monkeypatch.setattr(garbage, "_delete_rows", delete_rows)
        swept()
        delete_rows(*given, **named)

    monkeypatch.setattr(garbage, "_delete_rows", later)
    swept()
    assert left(lane) == folders, "what the writer writes now is deleted by a later sweep"


def test_much_garbage_is_swept_in_portions(
    lane: Lane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage, "AT_ONCE", 3)
    files = []
    for i in range(10):
        files.append(write(tmp_path, f"{lane.stream_id}/_weir_tx={i}/file"))
        record_garbage(lane, f"{lane.stream_id}/_weir_tx={i}/file")
    assert sweep(lane.database, str(tmp_path), 0.0)["deleted"] == 10
    assert not [file for file in files if file.exists()]
    assert left(lane) == []


def test_outputs_lie_below_their_own_root(lane: Lane, tmp_path: Path) -> None:
    warehouse, output = tmp_path / "warehouse", tmp_path / "output"
    kept = write(warehouse, "delays/attempt=1/part")
    garbage = write(output, "delays/attempt=1/part")
    record_garbage(lane, "delays/attempt=1/", output)
    sweep(lane.database, str(warehouse), 0.0)
    assert (kept.exists(), garbage.exists()) == (True, False)


def test_a_full_disk_is_freed_by_a_sweep_and_shows_that_it_was_swept(
    lane: Lane, small_disk: Path
) -> None:
    mark_as_own(lane, small_disk)
    doomed = garbage_file(lane, small_disk)
    fill(small_disk)
    for _ in range(2):
        sweep(lane.database, str(small_disk), 50.0)
        marker = read_marker(str(small_disk))
        assert marker.sweep_count == read_installation(lane.database).sweep_count > 0
    assert not doomed.exists()
    assert sorted(path.name for path in small_disk.iterdir() if path.is_file()) == [
        MARKER, "filler",
    ]  # fmt: skip


def aged(folder: Path, name: str, seconds: float) -> Path:
    file = write(folder, name)
    then = time.time() - seconds
    os.utime(file, (then, then))
    return file


def test_what_killed_writers_of_a_marker_left_is_swept_when_it_is_old(
    lane: Lane, tmp_path: Path
) -> None:
    mark_as_own(lane, tmp_path)
    names = [f"{MARKER}.{'0a' * 16}", f".{MARKER}.{'1b' * 16}.crc"]
    old = [aged(tmp_path, name, 4000) for name in names]
    kept = [
        aged(tmp_path, f"{MARKER}.{'2c' * 16}", 60), aged(tmp_path, f"{MARKER}.mine", 4000),
        aged(tmp_path, "0a" * 16, 4000), tmp_path / MARKER,
    ]  # fmt: skip
    sweep(lane.database, str(tmp_path), 0.0)
    assert [file.exists() for file in (*old, *kept)] == [False] * 2 + [True] * 4


def test_what_killed_writers_of_a_manifest_left_is_swept_when_it_is_old(
    lane: Lane, tmp_path: Path
) -> None:
    group = Group.made(lane)
    run(
        lane.database,
        """INSERT INTO parquet_output (group_id, group_name, output, number, batch_id, root, path,
            committed_at)
        SELECT group_id, name, 'parquet:x', 0, 1, :root, 'x/group=g/batch=1.1/attempt=1', now()
        FROM reader_group WHERE name = :group""",
        root=str(tmp_path), group=group.name,
    )  # fmt: skip
    folder = tmp_path / "x" / "group=g"
    names = ["_manifest.json", "_manifest-12-0-0123456789ab.json"]
    old = [aged(folder, f"{name}.{'0a' * 16}", 4000) for name in names]
    kept = [aged(folder, name, 4000) for name in names]
    kept.append(aged(folder, f"_manifest.json.{'2c' * 16}", 60))
    assert sweep_manifests(lane.database) == []
    assert [file.exists() for file in (*old, *kept)] == [False] * 2 + [True] * 3
    run(lane.database, "UPDATE parquet_output SET root = 'wasbs://box@account'")
    assert "can't be listed" in sweep_manifests(lane.database)[0]


@pytest.mark.parametrize(
    "path", ["d/group=g/batch=1.1/attempt=1/", "_weir_adjunct=7/version=1/attempt=1/part.parquet",
             "7/_weir_tx=1/_weir_attempt=1/_weir_segment=0/part.parquet"]
)  # fmt: skip
def test_no_empty_folders_and_checksums_stay_where_something_was_swept(
    lane: Lane, tmp_path: Path, path: str
) -> None:
    mark_as_own(lane, tmp_path)
    file = write(tmp_path, path if path.endswith("parquet") else f"{path}part.parquet")
    write(file.parent, f".{file.name}.crc")
    record_garbage(lane, path, tmp_path)
    sweep(lane.database, str(tmp_path), 0.0)
    made = {name for name in path.split("/") if "=" in name} - {"group=g", "_weir_adjunct=7"}
    assert not {found.name for found in tmp_path.rglob("*")} & {*made, f".{file.name}.crc"}


def test_a_disk_that_takes_no_first_mark_is_named_and_keeps_no_litter(
    lane: Lane, small_disk: Path
) -> None:
    fill(small_disk)
    with raises(f"disk_full {small_disk} free space") as failed:
        mark_as_own(lane, small_disk)
    assert failed.value.retryable
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


def test_a_root_that_can_not_be_opened_is_told_and_keeps_nothing_else(
    lane: Lane, tmp_path: Path
) -> None:
    garbage_file(lane, tmp_path)
    record_garbage(lane, "x", "wasbs://box@account")
    report = sweep(lane.database, str(tmp_path), 0.0)
    assert report["deleted"] == 1
    [said] = report["failed"]
    assert said.startswith("wasbs://box@account/x can't be deleted: 'wasbs://box@account' can't be")
    assert left(lane) == ["x"]


def test_only_batches_of_the_same_stream_opened_before_it_died_pin_a_file(
    lane: Lane, tmp_path: Path
) -> None:
    other = Lane.made(lane.database, retention="consumed")
    for one in (lane, other):
        one.append({"0.0": [3, 3]})
    mark_as_own(lane, tmp_path)
    before, elsewhere = Group.made(lane), Group.made(other)
    batch = before.reader().must_open()
    elsewhere.reader().must_open()
    lane.truncate("0.0=3, 1.0=0")
    after = Group.made(lane, on_gap="skip")
    assert after.reader().must_open().events == 3
    assert sweep(lane.database, str(tmp_path), 0.0)["deleted"] == 0
    Group(lane.database, before.name, (lane,)).reader("other")
    before.lapse("reader")
    reader = before.reader("other")
    reader.commit(reader.must_open())
    assert batch.batch_id == 1
    assert sweep(lane.database, str(tmp_path), 0.0)["deleted"] == 1


def test_garbage_goes_after_the_grace_period_with_the_folders_it_leaves_empty(
    lane: Lane, tmp_path: Path
) -> None:
    old, young = garbage_file(lane, tmp_path), garbage_file(lane, tmp_path, ago=1.0)
    assert sweep(lane.database, str(tmp_path), 50.0)["deleted"] == 1
    assert not old.exists()
    assert young.exists()
    assert sweep(lane.database, str(tmp_path), 0.0)["deleted"] == 1
    assert not young.parent.exists()
    assert rows(lane.database, "SELECT * FROM garbage") == []


def test_the_warehouse_of_another_installation_is_not_touched(lane: Lane, tmp_path: Path) -> None:
    path = garbage_file(lane, tmp_path)
    (tmp_path / MARKER).write_text("somebody else")
    with raises("warehouse_not_owned somebody else"):
        sweep(lane.database, str(tmp_path), 0.0)
    assert path.exists()


def test_a_warehouse_that_lost_its_mark_is_not_touched(lane: Lane, tmp_path: Path) -> None:
    lane.append({"0.0": 3})
    path = garbage_file(lane, tmp_path)
    with raises("warehouse_not_owned file mounted"):
        sweep(lane.database, str(tmp_path), 0.0)
    assert path.exists()
    assert len(rows(lane.database, "SELECT * FROM garbage")) == 1


@pytest.mark.parametrize("truncated", [False, True])
def test_the_folder_of_a_deleted_stream_goes_though_what_lies_in_it_is_garbage_too(
    lane: Lane, tmp_path: Path, truncated: bool
) -> None:
    mark_as_own(lane, tmp_path)
    for _ in range(40):
        lane.append({"0.0": [1] * 10, "1.0": [1] * 10})
    write_files(lane, tmp_path)
    # Rows of their own: for files of the stream, or for what was open when it was sealed.
    if truncated:
        lane.truncate("0.0=100, 1.0=100")
    for attempt in [lane.opened() for _ in range(0 if truncated else 20)]:
        for task in range(10):
            write(tmp_path, f"{attempt.folder}_weir_segment=0/_weir_task={task}/part.parquet")
    seal_stream(lane.database, lane.name, request_id=unique("seal"))
    delete_stream(lane.database, lane.name, request_id=unique("delete"))
    assert len(left(lane)) > 20
    assert sweep(lane.database, str(tmp_path), 0.0)["failed"] == []
    assert left(lane) == []
    assert not (tmp_path / str(lane.stream_id)).exists()


@pytest.mark.parametrize("local", [True, False], ids=["local", "any other file system"])
def test_a_folder_is_gone_when_several_delete_in_it_at_once(tmp_path: Path, local: bool) -> None:
    system = fs.LocalFileSystem() if local else fs.SubTreeFileSystem("/", fs.LocalFileSystem())
    for attempt in range(20):
        for number in range(100):
            write(tmp_path, f"7/_weir_tx={attempt}/_weir_attempt=1/{number}")
    delete = partial(_delete, system, folder=True)
    outer = partial(delete, f"{tmp_path}/7")
    within = [partial(delete, f"{tmp_path}/7/_weir_tx={i}/_weir_attempt=1") for i in range(15)]
    assert at_once(outer, *within) == [None] * 16
    assert not (tmp_path / "7").exists()


def test_a_folder_that_can_not_be_deleted_is_told() -> None:
    # Of the kernel's own folders root can't delete any, either.
    failures = delete_here([("/proc", "sys/kernel/"), ("/proc", "version"), ("/proc", "none/")])
    assert sorted(failures) == [0, 1]


def test_where_an_output_root_is_not_mounted_nothing_is_forgotten(
    lane: Lane, tmp_path: Path
) -> None:
    garbage_file(lane, tmp_path)
    root = tmp_path / "mount"
    for path in ("d/group=g/batch=1.1/attempt=1/", "d/file"):
        record_garbage(lane, path, root)
    report = sweep(lane.database, str(tmp_path), 0.0)
    assert (report["deleted"], len(report["failed"])) == (1, 2)
    assert report["failed"][0].endswith(
        f"the folder {root} does not exist; mount it here, or create it"
    )
    assert left(lane) == ["d/file", "d/group=g/batch=1.1/attempt=1/"]
    garbage = write(root, "d/group=g/batch=1.1/attempt=1/part")
    assert sweep(lane.database, str(tmp_path), 0.0)["failed"] == []
    assert (garbage.exists(), left(lane)) == (False, [])


def beside(test_database: TestDatabase, moment: str, other: Callable[[], object]) -> Database:
    """A database, of which `other` happens just before or after it is asked which one it is."""
    database = test_database.open()

    def heard(*sent: object) -> None:
        if "FROM installation" in str(sent[2]):
            other()

    event.listen(database.engine, f"{moment}_cursor_execute", heard)
    return database


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_sweep_beside_it_does_not_make_a_database_look_restored(
    lane: Lane, test_database: TestDatabase, tmp_path: Path, moment: str
) -> None:
    root = str(tmp_path)
    lane.append({"0.0": 1})
    write_marker(root, Marker(read_installation(lane.database).installation_id))
    for _ in range(2):
        sweeping = partial(sweep, lane.database, root, 0.0)
        check_warehouse_ownership(beside(test_database, moment, sweeping), root)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_the_first_append_of_all_beside_it_does_not_make_a_warehouse_look_lost(
    lane: Lane, test_database: TestDatabase, tmp_path: Path, moment: str
) -> None:
    root = str(tmp_path)

    def append() -> None:
        check_warehouse_ownership(lane.database, root)
        lane.append({"0.0": 1})

    check_warehouse_ownership(beside(test_database, moment, append), root)


def test_a_copy_of_an_installation_deletes_no_output_of_the_original(
    lane: Lane, tmp_path: Path
) -> None:
    mark_as_own(lane, tmp_path)
    folder = "d/group=g/batch=1.1/attempt=1/"
    roots = [tmp_path / "copy", tmp_path / "original"]
    files = [write(root, f"{folder}part.parquet") for root in roots]
    for root in roots:
        record_garbage(lane, folder, root)
    report = sweep(lane.database, str(tmp_path), 0.0, output_roots=[str(roots[0])])
    assert [file.exists() for file in files] == [False, True]
    assert (report["deleted"], report["kept"], left(lane)) == (1, 1, [folder])
    [said] = report["failed"]
    assert said.startswith(f"{roots[1]}/{folder} is kept (it is not below output_roots")
