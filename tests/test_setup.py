"""make setup recovers from whatever an earlier one left, and installs nothing that is there."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chance import random_for

REPOSITORY = Path(__file__).parents[1]
pytestmark = pytest.mark.server  # reads the index of packages


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder in which setup.sh installs just one package, the installer."""
    (tmp_path / "setup.sh").write_text((REPOSITORY / "setup.sh").read_text())
    (tmp_path / "setup.sh").chmod(0o755)
    lock = (REPOSITORY / "requirements-dev.txt").read_text()
    found = re.search(r"^uv==[^\n]*\n(?: +--hash[^\n]*\n)+", lock, re.MULTILINE)
    assert found is not None
    (tmp_path / "requirements-dev.txt").write_text(found[0])
    return tmp_path


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory, clone: Path) -> Iterator[dict[str, str]]:
    """What make gives, on a machine where calling apt-get leaves a trace."""
    trap = tmp_path_factory.mktemp("trap")
    called = trap / "called"
    (trap / "apt-get").write_text(f"#!/bin/sh\necho $* >>{called}\nexit 1\n")
    (trap / "apt-get").chmod(0o755)
    own = Path(sys.executable).parent
    rest = [one for one in os.environ["PATH"].split(":") if Path(one) != own]
    path = [str(clone / ".venv" / "bin"), str(trap), *rest]
    yield os.environ | {"PATH": ":".join(path)}
    assert not called.exists(), called.read_text()


def set_up(clone: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [clone / "setup.sh"], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    version = subprocess.run(
        [clone / ".venv" / "bin" / "uv", "--version"], capture_output=True, text=True, check=True
    )
    assert version.stdout.startswith("uv ")
    return done.stderr


@pytest.mark.release
def test_it_recovers_from_half_of_an_earlier_one(clone: Path, environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", clone / ".venv"], check=True)
    (clone / ".venv" / "unfinished").touch()
    said = set_up(clone, environment)
    assert f"making .venv with {clone}" not in said
    assert "making .venv" not in set_up(clone, environment)


@pytest.mark.release
def test_it_recovers_wherever_it_is_killed(clone: Path, environment: dict[str, str]) -> None:
    chance = random.Random(random_for("setup").random())
    for _ in range(6):
        running = subprocess.Popen(
            [clone / "setup.sh"], env=environment, start_new_session=True, stderr=subprocess.DEVNULL
        )
        time.sleep(chance.uniform(0.1, 8))  # any moment will do
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    set_up(clone, environment)


@pytest.mark.release
def test_a_package_whose_hash_is_another_is_not_installed(
    clone: Path, environment: dict[str, str]
) -> None:
    lock = clone / "requirements-dev.txt"
    lock.write_text(re.sub(r"sha256:[0-9a-f]{8}", "sha256:00000000", lock.read_text()))
    done = subprocess.run(
        [clone / "setup.sh"], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1
    assert "pip can't install uv" in done.stderr
