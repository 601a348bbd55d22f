"""Finding free ports, and finding and ending processes by what they carry."""

import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.raises import raises
from weir.local import ports, processes


def test_a_port_is_taken_while_somebody_listens() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        taken = listener.getsockname()[1]
        assert not ports.is_free(taken)
        assert ports.free_port(taken) != taken
    assert ports.free_port(taken) == taken


def test_a_listener_on_all_interfaces_takes_the_port_too() -> None:
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))  # noqa: S104
        listener.listen()
        assert not ports.is_free(listener.getsockname()[1])


def test_installations_that_start_together_choose_different_ports() -> None:
    wanted = ports.free_port()
    with ports.reserving() as first, ports.reserving() as second:
        assert first(wanted) == wanted
        assert second(wanted) != wanted
    with ports.reserving() as later:
        assert later(wanted) == wanted


@pytest.fixture
def family() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A process that ignores SIGTERM, with a child in another session."""
    mark = secrets.token_hex(8)
    script = "trap '' TERM; setsid sleep 60 & echo ready; while true; do sleep 1; done"
    process = subprocess.Popen(
        ["bash", "-c", script], env=os.environ | {"WEIR_TEST": mark}, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield mark, process
    processes.kill(lambda: processes.carrying("WEIR_TEST", mark))
    process.communicate()


def test_a_process_is_found_by_what_it_carries_as_soon_as_it_was_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = psutil.Process.environ
    loading: list[dict[str, str]] = [{}] * 3  # what the kernel says while it loads the program
    monkeypatch.setattr(
        psutil.Process, "environ", lambda one: loading.pop() if loading else shown(one)
    )
    with subprocess.Popen(["sleep", "60"], env={"WEIR_TEST": "x"}) as process:
        processes.appear(process)
        process.kill()
    assert not loading, "it waited"
    processes.appear(process)  # one that has ended is not waited for


def test_whoever_carries_the_mark_is_found_and_ended(
    family: tuple[str, subprocess.Popen[bytes]],
) -> None:
    mark, process = family
    found = processes.carrying("WEIR_TEST", mark)
    assert process.pid in {one.pid for one in found}
    assert len(found) >= 2
    processes.end(found, 0.3)
    left = processes.carrying("WEIR_TEST", mark)
    assert process.pid in {one.pid for one in left}
    processes.kill(lambda: processes.carrying("WEIR_TEST", mark))
    assert processes.carrying("WEIR_TEST", mark) == []
    # Nobody has asked for its exit status yet: it is a zombie, and counts as gone.
    assert psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE


def test_what_starts_anew_whenever_it_is_killed_is_named() -> None:
    started = []

    def anew() -> list[psutil.Process]:
        started.append(subprocess.Popen(["sleep", "60"]))
        return [psutil.Process(started[-1].pid)]

    with raises("not_started processes"):
        processes.kill(anew)
    assert {one.wait(timeout=300) for one in started} == {-signal.SIGKILL}


def test_processes_are_found_by_their_folder(tmp_path: Path) -> None:
    sleeper = subprocess.Popen(["sleep", "60"], cwd=tmp_path)
    try:
        assert [one.pid for one in processes.working_in(tmp_path)] == [sleeper.pid]
        assert processes.working_in(tmp_path / "other") == []
    finally:
        sleeper.kill()
        sleeper.wait()


def test_cleaning_up_is_not_interrupted() -> None:
    before = signal.getsignal(signal.SIGINT)
    with processes.uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before
