"""A test that fails says where the logs are of what it started; one that passes keeps nothing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.failures import folder_of, log_kept
from tests.rooms import REPOSITORY
from weir.local.embedded_postgres import EmbeddedPostgres

TESTS = """
def test_it_fails(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "job.log").write_text("the driver was killed")
    assert False

def test_it_passes(tmp_path):
    (tmp_path / "other.log").write_text("all went well")
"""


def test_the_logs_of_a_failed_test_are_kept_where_its_failure_says(tmp_path: Path) -> None:
    (tmp_path / "test_logs.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.failures", "-p", "no:cacheprovider",
         "--rootdir", str(tmp_path), "--basetemp", str(tmp_path / "base"), "test_logs.py"],
        cwd=tmp_path, env={"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'plugins'}",
                           "TMPDIR": str(tmp_path)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    [folder] = map(Path, re.findall(rf"^({tmp_path}/weir-tests-[^:]*): ", done.stdout, re.M))
    assert folder.name == "test_logs.py-test_it_fails"
    assert [one.read_text() for one in folder.iterdir()] == ["the driver was killed"]
    assert list(folder.parent.iterdir()) == [folder]


def test_the_log_of_a_server_is_kept_that_ends_with_a_failed_test(
    postgres_server: EmbeddedPostgres, request: pytest.FixtureRequest,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with log_kept(postgres_server):
        pass
    assert not folder_of(request.node.nodeid).exists()
    with pytest.raises(ZeroDivisionError), log_kept(postgres_server):
        print(1 / 0)
    [kept] = folder_of(request.node.nodeid).iterdir()
    assert "ready to accept connections" in kept.read_text()
