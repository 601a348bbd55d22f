"""An installation that was just made, without Airflow, as a person meets it in a terminal."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.terminal.conftest import Done
from weir.local.installation import Installation
from weir.terminal.__main__ import main

REPOSITORY = Path(__file__).parents[2]
pytestmark = pytest.mark.server


TypeIn = Callable[..., Done]


@pytest.fixture
def type_in(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[TypeIn]:
    """Yield `type_in(folder, ...)`, which does in this process what a person types in a folder."""
    for name in [name for name in os.environ if name.startswith(("WEIR_", "PG"))]:
        monkeypatch.delenv(name)
    path = list(sys.path)
    handlers = {number: signal.getsignal(number) for number in (*signal.valid_signals(),)}

    def run(folder: Path, *words: str) -> Done:
        before = dict(os.environ)
        monkeypatch.chdir(folder)
        capfd.readouterr()
        try:
            return Done(main(words), *capfd.readouterr())
        finally:  # a command puts its installation into the environment of its process
            os.environ.clear()
            os.environ.update(before)

    yield run
    sys.path[:] = path
    for number, handler in handlers.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A folder with a weir.toml; what is started there is stopped."""
    (tmp_path / "weir.toml").write_text("")
    yield tmp_path
    Installation(tmp_path / ".weir").remove()


def test_an_installation_is_started_examined_and_stopped(home: Path, type_in: TypeIn) -> None:
    before = type_in(home, "streams")
    assert before.status == 2
    assert "start one with `weir up`" in before.err
    assert not (home / ".weir").exists()
    ill = type_in(home, "doctor")
    assert ill.status == 1
    assert "WRONG  database" in ill.out
    assert "start one with `weir up`" in ill.out

    started = type_in(home, "up", "--no-airflow")
    assert started.status == 0, started.err
    assert str(home / ".weir" / "input") in started.out
    assert "`weir psql` opens the database; `weir down` stops it" in started.out

    below = home / "some" / "folder"
    below.mkdir(parents=True)
    well = type_in(below, "doctor")
    assert well.status == 0, well.out
    for what in ("Java", "database", "rights", "warehouse", "input", "output"):
        assert f"ok     {what} " in well.out
    assert "not run" not in well.out, "there is no work for the periodic jobs"
    assert type_in(below, "streams", "--json").out == "[]\n"

    assert type_in(home, "down").status == 0
    stopped = type_in(home, "lag")
    assert stopped.status == 2
    assert "does not run; start it with `weir up`" in stopped.err


def test_doctor_finds_what_is_wrong_and_says_what_to_do(home: Path, type_in: TypeIn) -> None:
    made = Installation(home / ".weir", durable=False)
    made.start_postgres()
    (home / "warehouse").mkdir()
    (home / "warehouse" / "_weir_installation").write_text("somebody-else\n0\n")
    (home / "weir.toml").write_text(
        "warehouse = 'warehouse'\nfunction_packages = ['nowhere']\ninput_roots = ['none']\n"
    )
    made.postgres.psql("GRANT CONNECT ON DATABASE weir TO weir_app; REVOKE weir_jobs FROM weir_app")
    lacking = type_in(home, "doctor")
    assert lacking.status == 1
    assert "this login may not use Weir" in lacking.out

    made.postgres.psql("GRANT weir_jobs TO weir_app")
    made.postgres.psql("UPDATE weir_internal.alembic_version SET version_num = '9.9'", "weir")
    assert "its layout is 9.9" in type_in(home, "doctor").out
    made.postgres.psql("UPDATE weir_internal.alembic_version SET version_num = '0.1.0'", "weir")
    wrong = type_in(home, "doctor").out
    assert "belongs to installation somebody-else" in wrong
    assert "there is no package 'nowhere'" in wrong
    assert f"{home / 'none'} does not exist" in wrong
    assert "ok     rights" in wrong


@pytest.mark.release
@pytest.mark.jvm
def test_doctor_says_that_a_warehouse_in_hdfs_can_not_be_reached(
    home: Path, type_in: TypeIn
) -> None:
    Installation(home / ".weir", durable=False).start_postgres()
    (home / "weir.toml").write_text("warehouse = 'hdfs://somewhere:8020/weir'\n")
    far = type_in(home, "doctor").out
    assert "WRONG  warehouse   'hdfs://somewhere:8020/weir' can't be opened (by Hadoop: " in far
    assert "UnknownHostException" in far


def test_the_command_of_the_virtual_environment_needs_no_variables(tmp_path: Path) -> None:
    """`setup.sh` writes it; here in a tree of its own, so that nothing is installed."""
    tree = tmp_path / "tree"
    (tree / ".venv" / "bin").mkdir(parents=True)
    for name in ("plugins", "spark_jobs", "sql"):
        (tree / name).symlink_to(REPOSITORY / name)
    setup = (REPOSITORY / "setup.sh").read_text()
    begin = setup.index("# `import weir` and `weir` without PYTHONPATH")
    step = setup[begin : setup.index("\n\n", begin)]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=tree, check=True)
    subprocess.run(["sh", "-eu", "-c", step], cwd=tree, check=True)
    (packages,) = (tree / ".venv" / "lib").glob("python3*/site-packages")
    theirs = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    (packages / "others.pth").write_text(f"{theirs}\n")
    environ = {"PATH": "/usr/bin:/bin"}
    program = tree / ".venv" / "bin" / "weir"
    done = subprocess.run([program, "--help"], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "usage: weir" in done.stdout
    python = str(tree / ".venv" / "bin" / "python")
    asked = [python, "-c", "import weir; print(weir.__file__)"]
    where = subprocess.run(asked, env=environ, capture_output=True, text=True, check=True).stdout
    assert str(REPOSITORY / "plugins") in where or str(tree / "plugins") in where
