"""An installation that was just made, without Airflow, as a person meets it in a terminal."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from weir.local.installation import Installation

REPOSITORY = Path(__file__).parents[2]
pytestmark = [pytest.mark.drawn(1), pytest.mark.server]


def type_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What a person types in a folder, in the virtual environment."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("WEIR_", "PG"))}
    environ["PYTHONPATH"] = str(REPOSITORY / "plugins")
    return subprocess.run(
        [sys.executable, "-m", "weir.terminal", *words],
        env=environ, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A folder with a weir.toml; what is started there is stopped."""
    (tmp_path / "weir.toml").write_text("")
    yield tmp_path
    Installation(tmp_path / ".weir").remove()


def test_an_installation_is_started_examined_and_stopped(home: Path) -> None:
    before = type_in(home, "streams")
    assert before.returncode == 2
    assert "start one with `weir up`" in before.stderr
    assert not (home / ".weir").exists()
    ill = type_in(home, "doctor")
    assert ill.returncode == 1
    assert "WRONG  database" in ill.stdout
    assert "start one with `weir up`" in ill.stdout

    started = type_in(home, "up", "--no-airflow")
    assert started.returncode == 0, started.stderr
    assert str(home / ".weir" / "input") in started.stdout
    assert "`weir psql` opens the database; `weir down` stops it" in started.stdout

    below = home / "some" / "folder"
    below.mkdir(parents=True)
    well = type_in(below, "doctor")
    assert well.returncode == 0, well.stdout
    for what in ("Java", "database", "rights", "warehouse", "input", "output"):
        assert f"ok     {what} " in well.stdout
    assert "note   upkeep" in well.stdout, "the periodic DAGs have not run"
    assert type_in(below, "streams", "--json").stdout == "[]\n"

    assert type_in(home, "down").returncode == 0
    stopped = type_in(home, "lag")
    assert stopped.returncode == 2
    assert "does not run; start it with `weir up`" in stopped.stderr


def test_doctor_finds_what_is_wrong_and_says_what_to_do(home: Path) -> None:
    made = Installation(home / ".weir", durable=False)
    made.start_postgres()
    (home / "warehouse").mkdir()
    (home / "warehouse" / "_weir_installation").write_text("somebody-else\n0\n")
    (home / "weir.toml").write_text(
        "warehouse = 'warehouse'\nfunction_packages = ['nowhere']\ninput_roots = ['none']\n"
    )
    made.postgres.psql("GRANT CONNECT ON DATABASE weir TO weir_app; REVOKE weir_jobs FROM weir_app")
    lacking = type_in(home, "doctor")
    assert lacking.returncode == 1
    assert "this login may not use Weir" in lacking.stdout

    made.postgres.psql("GRANT weir_jobs TO weir_app")
    made.postgres.psql("UPDATE weir_internal.alembic_version SET version_num = '9.9'", "weir")
    assert "its layout is 9.9" in type_in(home, "doctor").stdout
    made.postgres.psql("UPDATE weir_internal.alembic_version SET version_num = '0.1.0'", "weir")
    wrong = type_in(home, "doctor").stdout
    assert "belongs to installation somebody-else" in wrong
    assert "there is no package 'nowhere'" in wrong
    assert f"{home / 'none'} does not exist" in wrong
    assert "ok     rights" in wrong

    (home / "weir.toml").write_text("warehouse = 'hdfs://somewhere:8020/weir'\n")
    far = type_in(home, "doctor").stdout
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
