"""`python -m weir.local`, `setup.sh` and the Makefile, as a person uses them."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg2
import pytest

from weir.local.__main__ import main
from weir.local.installation import Installation

REPOSITORY = Path(__file__).parents[2]


class Done(NamedTuple):
    """What a command returned and printed."""

    returncode: int
    stdout: str
    stderr: str


Typed = Callable[..., Done]


@pytest.fixture
def weir_local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Typed]:
    """Yield `weir_local(state, ...)`, which does in this process what a person types."""
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    handlers = {number: signal.getsignal(number) for number in numbers}
    monkeypatch.chdir(tmp_path)

    def run(state: Path, *arguments: str) -> Done:
        monkeypatch.setenv("WEIR_STATE", str(state))
        capfd.readouterr()
        try:
            status = main(arguments)
        except SystemExit as refused:
            status = int(str(refused.code))
        return Done(status, *capfd.readouterr())

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """An installation that is not started yet, of which nothing is left."""
    made = Installation(tmp_path / "state", durable=False)
    yield made
    home = made.postgres.home
    made.remove()
    assert not made.state.exists()
    assert not home.exists()


@pytest.mark.server
def test_psql_starts_the_database_for_a_moment(
    weir_local: Typed, installation: Installation
) -> None:
    done = weir_local(installation.state, "psql", "-Atc", "SELECT current_user, 'it''s'")
    assert done.stdout == "weir_view|it's\n"
    address = f"host=127.0.0.1 port={installation.postgres.port} dbname=weir user=weir_view"
    assert address in done.stderr
    assert str(installation.state / "pgpass") in done.stderr
    assert "make psql ROLE=owner" in done.stderr
    assert installation.postgres.state.secret("weir_view") not in done.stdout + done.stderr
    assert not installation.postgres.running()

    assert weir_local(installation.state, "status").returncode == 1
    refused = weir_local(installation.state, "clean")
    assert "YES=1" in refused.stderr
    assert "[argument_missing]" in refused.stderr
    assert installation.postgres.home.exists()
    cleaned = weir_local(installation.state, "clean", "--yes")
    assert str(installation.state) in cleaned.stdout


@pytest.mark.server
def test_psql_may_change_nothing_unless_it_is_asked_to(
    weir_local: Typed, installation: Installation
) -> None:
    installation.start_postgres()
    read = weir_local(installation.state, "psql", "-Atc", "SELECT count(*) FROM lag")
    assert read.stdout == "0\n"
    dropped = weir_local(installation.state, "psql", "-c", "DROP VIEW lag")
    assert "must be owner" in dropped.stderr
    for role, login in (("owner", "weir_owner"), ("jobs", "weir_app")):
        asked = ["psql", "--role", role, "-Atc", "SELECT current_user"]
        assert weir_local(installation.state, *asked).stdout == f"{login}\n"
    unknown = weir_local(installation.state, "psql", "--role", "postgres")
    assert "invalid choice: 'postgres'" in unknown.stderr


@pytest.mark.server
def test_login_prints_what_a_person_and_an_sql_client_need(
    weir_local: Typed, installation: Installation
) -> None:
    nothing = weir_local(installation.state, "login")
    assert f"create it with `make up STATE={installation.state}`" in nothing.stderr
    assert "[not_started]" in nothing.stderr
    installation.start_postgres()
    installation.airflow._write_logins()
    said = weir_local(installation.state, "login").stdout
    users = json.loads(installation.airflow.passwords_file.read_text())
    for name, password in users.items():
        assert f"{name} / {password}" in said
    assert installation.airflow.url in said
    (url,) = re.findall(r"postgresql://\S+", said)
    connection = psycopg2.connect(url)
    cursor = connection.cursor()
    cursor.execute("SELECT count(*) FROM weir.streams")
    assert cursor.fetchone() == (0,)
    connection.close()


def test_only_a_state_folder_is_removed(weir_local: Typed, tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    done = weir_local(tmp_path, "clean", "--yes")
    assert done.returncode == 1
    assert f"{tmp_path} is not a state folder of Weir" in done.stderr
    assert "[argument_invalid]" in done.stderr
    assert (tmp_path / "precious").exists()


@pytest.mark.parametrize("command", ["down", "status", "login", "clean"])
def test_asking_about_nothing_makes_nothing(
    weir_local: Typed, tmp_path: Path, command: str
) -> None:
    done = weir_local(tmp_path / "state", command)
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_setting_is_one_sentence(weir_local: Typed, tmp_path: Path) -> None:
    (tmp_path / "weir.toml").write_text("colour = 'red'\n")
    done = weir_local(tmp_path / "state", "up")
    assert done.returncode == 1
    wrong = f"{tmp_path}/weir.toml has an unknown setting 'colour'."
    assert done.stderr == f"weir: {wrong} [setting_invalid]\n"


def test_setting_up_again_is_quiet_and_programs_import_the_library_without_variables(
    tmp_path: Path,
) -> None:
    done = subprocess.run(["./setup.sh"], cwd=REPOSITORY, capture_output=True, text=True)
    again = subprocess.run(["./setup.sh"], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    code = "import weir, weir.settings; print(weir.__file__)"
    python = REPOSITORY / ".venv" / "bin" / "python"
    done = subprocess.run(
        [python, "-c", code], cwd=tmp_path, env=environ, capture_output=True, text=True
    )
    assert done.stdout.strip() == str(REPOSITORY / "plugins" / "weir" / "__init__.py"), done.stderr


def test_help_lists_every_target() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    told = subprocess.run(["make", "help"], cwd=REPOSITORY, capture_output=True, text=True).stdout
    for target in set(phony[1].split()) - {"setup"}:
        assert re.search(rf"^  make {target} ", told, re.MULTILINE), target


def test_a_state_folder_of_another_user_is_refused_in_one_sentence(
    weir_local: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir(mode=0o000)
    monkeypatch.setenv("WEIR_STATE", str(tmp_path / "closed" / "state"))
    user = os.geteuid()
    if user == 0:  # whom nothing is closed to
        os.seteuid(65534)
    try:
        done = weir_local(tmp_path / "closed", "up", "--no-airflow")
    finally:
        os.seteuid(user)
    assert done.returncode == 1
    wrong = r"weir: \S+ belongs to another user; .* \[not_permitted\]\n"
    assert re.fullmatch(wrong, done.stderr), done.stderr
