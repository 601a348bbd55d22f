"""The wheel: what is in it, and that it works where nothing else is."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psycopg2
import pytest

from tests.operations.test_jobs_by_hand import commands, let_a_reader_die, prepared
from weir.local import logins
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.throw_away import throw_away_postgres
from weir.settings import Settings

REPOSITORY = Path(__file__).parents[1]
# What the build backend could find. It writes beside its sources, so it gets a copy of them.
SOURCES = ("plugins", "sql", "spark_jobs", "dags", "tests", "examples", "benchmarks")
PACKAGES = {
    "plugins/weir": "weir", "plugins/pyspark_weir": "pyspark_weir", "sql": "weir/sql",
    "spark_jobs": "weir/spark_jobs", "dags": "weir/dags", "examples": "weir/examples",
}  # fmt: skip


def run(*command: str | Path, **options: object) -> str:
    """What a command prints; all of it is shown when it fails."""
    done = subprocess.run(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, done.stdout
    return str(done.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / name, source / name, ignore=ignored)
    for pattern in ("pyproject.toml", "README*", "LICENSE*"):
        for path in REPOSITORY.glob(pattern):
            shutil.copy(path, source)
    # With the build backend at hand no network is needed; uv's cache is the next best.
    found = [int(d.version.split(".")[0]) for d in metadata.distributions(name="setuptools")]
    options = ["--no-isolation"] if found and found[0] >= 80 else ["--installer", "uv"]
    run(sys.executable, "-m", "build", "--wheel", *options, "--outdir", folder, source)
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    expected = {
        f"{target}/{path.relative_to(REPOSITORY / source)}"
        for source, target in PACKAGES.items()
        for path in (REPOSITORY / source).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
        and (path.suffix != ".sql" or "queries" not in path.parts)  # the library is made of them
    }  # fmt: skip
    assert len([name for name in expected if name.endswith(".sql")]) > 10
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == expected


@dataclass
class Elsewhere:
    """An environment with the wheel and its `spark` extra, and a database, far from the sources."""

    home: Path
    postgres: EmbeddedPostgres

    def run(self, program: str, *arguments: str | Path) -> str:
        """Run a program of the environment, with nothing of ours in its variables."""
        known = ("JAVA_HOME", "HOME", "TMPDIR", "LANG", "WEIR_CONFIG")
        environ = {name: os.environ[name] for name in known if name in os.environ}
        return run(
            self.home / "venv" / "bin" / program,
            *arguments,
            cwd=self.home,
            env=environ
            | {
                "PATH": f"{self.home / 'venv' / 'bin'}:{os.environ['PATH']}",
                "PYSPARK_PYTHON": str(self.home / "venv" / "bin" / "python"),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "WEIR_DATABASE": self.postgres.dsn("weir", "weir_app"),
                "WEIR_DATABASE_OWNER": self.postgres.dsn("weir", "weir_owner"),
                "WEIR_STATE": str(self.home / "state"),
            },
        )


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    home = tmp_path_factory.mktemp("elsewhere")
    uv = Path(sys.executable).parent / "uv"
    run(uv, "venv", "--quiet", "--python", sys.executable, home / "venv")
    python = home / "venv" / "bin" / "python"
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", python]
    install += ["--constraint", REPOSITORY / "requirements.txt", f"weir-streams[spark] @ {wheel}"]
    # What setup.sh installed is in uv's cache: hard links, and no network, if that is still there.
    if subprocess.run([*install, "--offline"], capture_output=True).returncode != 0:
        run(*install)
    with throw_away_postgres() as postgres:
        found = Elsewhere(home, postgres)
        found.run("python", "-m", "weir.database.migrate")
        logins.make_users(postgres)
        yield found


@pytest.mark.release
def test_every_module_can_be_imported_from_where_it_is_installed(elsewhere: Elsewhere) -> None:
    said = elsewhere.run(
        "python",
        "-c",
        "import importlib, pkgutil, weir\n"
        "for found in pkgutil.walk_packages(weir.__path__, 'weir.'):\n"
        "    if not {'airflow', 'local', 'pages', 'sql'} & set(found.name.split('.')[1:3]):\n"
        "        print(importlib.import_module(found.name).__file__)\n",
    )
    files = said.splitlines()
    assert len(files) > 40
    assert all(file.startswith(f"{elsewhere.home}/venv/lib/") for file in files)


@pytest.mark.release
def test_migrating_again_changes_nothing(elsewhere: Elsewhere) -> None:
    assert "up to date" in elsewhere.run("python", "-m", "weir.database.migrate")


@pytest.mark.release
@pytest.mark.jvm
@pytest.mark.timeout(3600)  # 34 starts of Spark
def test_each_job_can_be_submitted_from_the_installed_package(
    elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the commands of its README, which the wheel has, too."""
    (jobs,) = elsewhere.home.glob("venv/lib/python*/site-packages/weir/spark_jobs")
    assert (jobs / "README.md").read_text() == (REPOSITORY / "spark_jobs/README.md").read_text()
    settings = Settings(
        state=elsewhere.home / "state",
        database=elsewhere.postgres.dsn("weir", "weir_app"),
        warehouse=str(elsewhere.home / "state" / "warehouse"),
        input_roots=(str(elsewhere.home / "input"),),
        output_roots=(str(elsewhere.home / "output"),),
    )
    for folder in ("state", "input", "output"):
        (elsewhere.home / folder).mkdir(exist_ok=True)
    monkeypatch.setenv("WEIR_CONFIG", str(prepared(settings)))
    for job, *words in commands():
        let_a_reader_die(job, settings)
        elsewhere.run("spark-submit", jobs / Path(job).name, *words)
    with (
        psycopg2.connect(elsewhere.postgres.dsn("weir", "weir_app")) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT state, count(*) FROM weir_internal.job_run GROUP BY state")
        assert cursor.fetchall() == [("succeeded", len(commands()))]
