"""Whose a warehouse is: the marker in it, and what the database knows."""

from pathlib import Path

import pytest

from tests.raises import raises
from weir.controller.ownership import Installation, check_marker
from weir.warehouse.marker import (
    MARKER,
    RECOVERY_GAP,
    Marker,
    check_unused,
    read_marker,
    write_marker,
)
from weir.warehouse.paths import attempt_folder


def claim(root: str, installation_id: str, new: bool, sweeps: int = 0) -> None:
    check_marker(root, Installation(installation_id, new, sweeps), read_marker(root))


@pytest.mark.parametrize("root", ["wasbs://container@account/weir", "hdfs://host/weir"])
def test_a_file_system_that_nothing_here_knows_is_refused_before_anything_is_touched(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_HOME", "/nowhere")
    with raises("setting_invalid by"):
        claim(root, "one", new=True)


def test_a_new_installation_marks_its_warehouse_and_finds_it_again(tmp_path: Path) -> None:
    root = tmp_path / "not" / "there" / "yet"
    claim(str(root), "one", new=True)
    assert read_marker(str(root))[:2] == ("one", 0)
    claim(str(root), "one", new=True)
    claim(str(root), "one", new=False)
    assert [path.name for path in root.iterdir()] == [MARKER]


def test_the_warehouse_of_another_installation_is_refused(tmp_path: Path) -> None:
    claim(str(tmp_path), "one", new=True)
    for new in (True, False):
        with raises("warehouse_not_owned one two"):
            claim(str(tmp_path), "two", new)
    assert read_marker(str(tmp_path))[:2] == ("one", 0)


def test_an_installation_with_data_never_marks_a_folder(tmp_path: Path) -> None:
    # What should be mounted there is not: writing on would split the data in two.
    with raises(f"warehouse_not_owned {MARKER}"):
        claim(str(tmp_path / "empty"), "one", new=False)
    assert not (tmp_path / "empty").exists()


def test_a_warehouse_that_was_swept_since_the_backup_is_refused(tmp_path: Path) -> None:
    write_marker(str(tmp_path), Marker("one", 7))
    claim(str(tmp_path), "one", new=False, sweeps=7)
    for new in (True, False):
        with raises("database_restored 6 7"):
            claim(str(tmp_path), "one", new, 6)


def test_of_two_sweeps_at_once_the_slower_does_not_lower_the_mark(tmp_path: Path) -> None:
    write_marker(str(tmp_path), Marker("one", 8))
    write_marker(str(tmp_path), Marker("one", 7))
    assert read_marker(str(tmp_path))[:2] == ("one", 8)
    assert [path.name for path in tmp_path.iterdir()] == [MARKER]


def test_a_sweep_that_had_begun_does_not_take_the_alarm_of_an_append_back(tmp_path: Path) -> None:
    claim(str(tmp_path), "one", new=True, sweeps=7)
    folder = attempt_folder(1, 1, 1)
    (tmp_path / folder).mkdir(parents=True)
    with raises("database_restored files"):
        check_unused(str(tmp_path), folder)
    write_marker(str(tmp_path), Marker("one", 8))
    assert read_marker(str(tmp_path))[:2] == ("one", 7 + RECOVERY_GAP)
    with raises("database_restored"):
        claim(str(tmp_path), "one", new=False, sweeps=8)
