"""Both ends of the ranges that the extras promise, each with the wheel in an environment of its own
that has no checkout."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import test_package
from tests.test_package import REPOSITORY, run
from weir.database import migrate
from weir.local import logins
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.throw_away import throw_away_postgres
from weir.operations.jobs import ACTIONS

pytestmark = pytest.mark.release
wheel = test_package.wheel
COMMANDS = {  # those of README.md and docs/terminal.md: without extras they work, or need one
    "--version": "works",
    "up --no-airflow": "local",
    "create shop/orders --key customer": "works",
    "create shop/others --key lower(customer)": "spark",
    "ingest orders.csv --stream shop/orders": "spark",
    "tail shop/orders": "works",
    "create-reader-group totals --streams shop/orders": "works",
    "process totals recipes:same --output parquet:totals": "works",
    "process totals recipes:same --engine pyarrow --output parquet:totals": "works",
    "lag": "works",
    "seal-stream shop/orders": "works",
    "streams": "works",
    "down": "local",
}
PROGRAMS = Path(__file__).parent / "ranges"


@pytest.fixture(scope="module")
def postgres() -> Iterator[EmbeddedPostgres]:
    with throw_away_postgres() as server:
        migrate.upgrade(server.dsn("weir", "weir_owner"))
        logins.make_users(server)
        server.psql("ALTER DATABASE weir RENAME TO template_of_weir")
        yield server


def made(postgres: EmbeddedPostgres, name: str) -> str:
    """Return how to reach a new database of Weir, an installation of its own."""
    postgres.psql(f"CREATE DATABASE {name} TEMPLATE template_of_weir OWNER weir_owner")
    postgres.psql(
        "UPDATE weir_internal.installation SET incarnation = weir_internal.incarnation()",
        database=name,
    )
    return postgres.dsn(name, "weir_app")


def installed(wheel: Path, folder: Path, *wanted: str) -> Path:
    """Return the Python of a new environment with the wheel and these packages."""
    uv, python = Path(sys.executable).parent / "uv", folder / "venv" / "bin" / "python"
    run(uv, "venv", "--quiet", "--python", sys.executable, folder / "venv")
    extras, *pins = wanted or [""]
    asked = f"weir-streams{f'[{extras}]' if extras else ''} @ {wheel}"
    run(uv, "pip", "install", "--quiet", "--python", python, asked, *pins)
    return python


def says(python: Path, *command: str | Path, **variables: str) -> dict[str, object]:
    """Return what a program prints last, run with nothing of ours in its variables."""
    known = ("JAVA_HOME", "HOME", "TMPDIR", "LANG")
    environ = {name: os.environ[name] for name in known if name in os.environ}
    environ |= {"PATH": f"{python.parent}:{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    home = python.parents[2]
    printed = run(python, *command, cwd=home, env=environ | variables)
    found: dict[str, object] = json.loads(printed.strip().splitlines()[-1])
    return found


@pytest.mark.jvm
@pytest.mark.parametrize("version", ["4.1.0", "4.3.0"])
def test_weir_works_with_the_first_and_the_last_pyspark(
    version: str, wheel: Path, postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    database = made(postgres, f"weir_{version.replace('.', '_')}")
    python = installed(wheel, tmp_path, "spark", f"pyspark=={version}", "pandas<3")
    found = says(python, PROGRAMS / "with_spark.py", WEIR_DATABASE=database)
    assert found == {
        "version": version,
        "read": [["ann", 1], ["ann", 3], ["bob", 2], ["bob", 4]],
        "kept": [["ann", 1, "north"], ["ann", 3, "north"], ["bob", 2, ""], ["bob", 4, ""]],
    }


def test_without_extras_a_command_works_or_names_the_extra(
    wheel: Path, postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    database = made(postgres, "weir_alone")
    weir = installed(wheel, tmp_path).with_name("weir")
    found = types(weir, tmp_path, WEIR_DATABASE=database)
    assert found == COMMANDS


@pytest.mark.jvm
def test_with_extras_all_commands_work_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    weir = installed(wheel, tmp_path, "spark,local", "pyspark==4.2.0").with_name("weir")
    found = types(weir, tmp_path)
    assert found == dict.fromkeys(COMMANDS, "works")


def types(weir: Path, home: Path, **variables: str) -> dict[str, str]:
    """Return what becomes of each command, typed in a folder with a file and a function."""
    (home / "orders.csv").write_text("customer,amount\nann,3\n")
    (home / "recipes.py").write_text("def same(events):\n    return events\n")
    known = ("PATH", "JAVA_HOME", "TMPDIR")
    environ = {name: os.environ[name] for name in known if name in os.environ}
    found = {}
    for command in COMMANDS:
        done = subprocess.run(
            [weir, *shlex.split(command)], cwd=home, capture_output=True, text=True,
            env=environ | {"HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"} | variables,
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert "Traceback" not in said, f"weir {command}: {said}"
        assert "ModuleNotFoundError" not in said, f"weir {command}: {said}"
        extra = re.search(r"pip install 'weir-streams\[(\w+)\]'`\. \[dependency_missing\]", said)
        assert done.returncode == 0 or extra, f"weir {command}: {said}"
        found[command] = extra[1] if done.returncode and extra else "works"
    return found


@pytest.mark.airflow
@pytest.mark.parametrize("version", ["3.3.0", "3.3.2"])
def test_an_airflow_gets_all_dags_by_a_file_of_three_lines(
    version: str, wheel: Path, tmp_path: Path
) -> None:
    page = (REPOSITORY / "docs" / "recipes.md").read_text()
    [code] = re.findall(r"```python[^\n]*\n# dags/weir_dags.py\n(.*?)```", page, re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 3
    (tmp_path / "weir_dags.py").write_text(code)
    python = installed(wheel, tmp_path, "airflow", f"apache-airflow=={version}")
    found = says(
        python, PROGRAMS / "with_airflow.py", tmp_path / "weir_dags.py", AIRFLOW_HOME=str(tmp_path)
    )
    every = sorted(f"weir_{name}" for name in [*ACTIONS, "partitions"])
    assert found == {"version": version, "dags": every, "plugin": True}
