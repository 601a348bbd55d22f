"""The state folder's files: whole, private, and changed by one process at a time."""

import stat
import subprocess
import sys
import threading
from pathlib import Path

from weir.local.state_folder import StateFolder


def test_what_is_written_is_read_and_private(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    assert state.read("x.json") == {}
    state.write("x.json", {"a": 1})
    state.write("x.json", {"b": 2})
    assert state.read("x.json") == {"b": 2}
    assert stat.S_IMODE((state.path / "x.json").stat().st_mode) == 0o600
    assert [path.name for path in state.path.iterdir()] == ["x.json"]


def test_folders_that_are_made_are_private_and_those_that_are_there_are_left(
    tmp_path: Path,
) -> None:
    state = StateFolder(tmp_path / "new" / "state")
    made = [state.folder("a/b"), state.folder("a"), state.folder()]
    assert made == [state.path / "a" / "b", state.path / "a", state.path]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in made} == {0o700}
    (state.path / "a").chmod(0o770)
    state.write("a/c/x.json", {})
    assert stat.S_IMODE((state.path / "a").stat().st_mode) == 0o770
    assert stat.S_IMODE((state.path / "a" / "c").stat().st_mode) == 0o700


def test_a_secret_stays_the_same(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(state.secret("jwt", 64))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found[0]) >= 64
    assert state.secret("other") != found[0]


def test_a_lock_waits_for_its_holder_and_outlives_nobody(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    code = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX);"
        "print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "x.lock")], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    entered = threading.Event()

    def enter() -> None:
        with state.lock("x"):
            entered.set()

    thread = threading.Thread(target=enter)
    thread.start()
    assert not entered.wait(0.3)
    holder.kill()
    holder.communicate()
    assert entered.wait(300)
    thread.join()
