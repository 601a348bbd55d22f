"""`make test-changed` plays all that a change can break, and not all tests for each change."""

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.changed import ALWAYS, changed_since, chosen, files_with_tests, ground
from tests.rooms import ORDER, REPOSITORY, files_of, imports_of, room_of


def file_of(room: str) -> str:
    """A file of a room, by its path in the repository."""
    return str(files_of(room)[-1].relative_to(REPOSITORY))


@pytest.mark.parametrize("room", ORDER)
def test_a_change_in_a_room_plays_its_tests_those_above_and_all_that_import_from_there(
    room: str,
) -> None:
    above = ORDER[ORDER.index(room) :]
    folders = {f"tests/{one.split('.')[0]}" for one in above}
    played = set(chosen([file_of(room)]))
    assert {one for one in files_with_tests() if str(Path(one).parent) in folders} <= played
    for left_out in files_with_tests() - played:
        imported = set(imports_of((REPOSITORY / left_out).read_text())) - ground()
        assert not {room_of(name) for name in imported} & set(above), left_out


def test_the_higher_a_change_is_the_fewer_tests_it_plays() -> None:
    played = [set(chosen([file_of(room)])) for room in ORDER]
    for below, above in pairwise(played):
        assert above <= below
    assert len(played[-1]) < len(files_with_tests()) / 2
    assert "tests/sql/test_cost.py" in played[-1], "a folder that is no room is above them"


def test_what_reaches_a_room_by_a_file_beside_it_is_played_too() -> None:
    # It has the operations of all rooms from tests/controller/operations.py.
    assert "tests/controller/test_lock_order.py" in chosen([file_of("retention")])
    assert "tests/controller/test_rolls.py" not in chosen([file_of("retention")])


@pytest.mark.parametrize(
    "file",
    [
        "Makefile", "pyproject.toml", "sql/functions/reads.sql", "plugins/weir/errors.py",
        "plugins/weir/__init__.py", "plugins/weir/a_new_room/run.py", "a_new_folder/job.py",
        "plugins/weir/terminal/is_gone.py", "tests/conftest.py", "tests/raises.py",
        "tests/world/streams.py", "tests/controller/is_gone.py",
    ],
)  # fmt: skip
def test_what_is_not_in_the_order_plays_everything(file: str) -> None:
    assert chosen([file_of("terminal"), file]) == ["tests"]


def test_a_change_of_tests_plays_these_and_those_that_need_them() -> None:
    rolls, cost = "tests/controller/test_rolls.py", "tests/sql/test_cost.py"
    assert chosen([rolls]) == sorted([rolls, ALWAYS])
    assert "tests/controller/test_lock_order.py" in chosen(["tests/controller/operations.py"])
    assert cost not in chosen(["tests/controller/conftest.py"])
    assert rolls in chosen(["tests/controller/conftest.py"])
    cases = chosen(["tests/conformance/cases.json"])
    assert "tests/conformance/test_cases.py" in cases
    assert rolls not in cases


def test_a_change_of_documents_plays_the_tests_that_read_them() -> None:
    played = chosen(["docs/testing.md"])
    assert {"tests/test_links.py", "tests/test_tiers.py", ALWAYS} <= set(played)
    assert "tests/controller/test_rolls.py" not in played


def test_what_is_committed_on_a_branch_and_what_is_not_are_both_changes(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-c", "user.name=w", "-c", "user.email=w@example.com", *arguments],
                       cwd=tmp_path, check=True, capture_output=True)  # fmt: skip

    def commit(name: str) -> None:
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-m", name)

    git("init", "-b", "main")
    commit("before")
    git("switch", "-c", "branch")
    commit("committed")
    git("switch", "main")
    commit("after, on main")
    git("switch", "branch")
    (tmp_path / "before").write_text("edited")
    (tmp_path / "new").write_text("")
    assert changed_since("main", tmp_path) == ["before", "committed", "new"]
    assert changed_since("HEAD", tmp_path) == ["before", "new"]
