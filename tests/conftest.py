"""Resources that tests share: one Postgres server per run, a database per test, one Spark session.

Tests get the login that jobs have (it may not change tables), so a missing grant shows.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import psycopg2
import pytest

from tests.chance import SEED, cases
from tests.distribution import compile_part
from tests.distribution import pytest_xdist_make_scheduler as pytest_xdist_make_scheduler
from tests.failures import pytest_runtest_makereport as pytest_runtest_makereport
from tests.failures import pytest_runtest_setup as pytest_runtest_setup
from tests.reaper import Run
from tests.small_disk import mounted
from tests.tiers import COLLECTED, mark
from weir.database import migrate
from weir.database.connection import Database
from weir.installation.opened import close_shared
from weir.local import logins
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.spark_start import class_archive
from weir.local.throw_away import throw_away_postgres
from weir.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

for _area in ("controller", "crash", "reader_groups", "retention", "spark", "sql"):
    pytest.register_assert_rewrite(f"tests.{_area}")  # models and drivers say what differed, too

# Deadlines say how busy the machine is, not whether the code is right.
hypothesis.settings.register_profile(
    "weir", deadline=None, print_blob=True, max_examples=cases(100)
)
hypothesis.settings.load_profile("weir")

for _name in [name for name in os.environ if name.startswith("WEIR_")]:
    if not _name.startswith(("WEIR_TEST_", "WEIR_SOAK_")):
        del os.environ[_name]  # an installation's settings must not leak into tests
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
# Jobs of tests are over before the optimising compiler pays.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS", f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {class_archive()}"
)


# Kept for the whole run: its reaper takes the end of the pipe for the end of the run.
RUN = pytest.StashKey[Run]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let SIGTERM stop the run as Ctrl-C does, and Hypothesis draw from the seed of this run."""
    if hasattr(config, "workerinput"):
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        given = config.workerinput
        if not sys.dont_write_bytecode:
            compile_part(config, int(given["workerid"].removeprefix("gw")), given["workercount"])
    else:
        config.stash[RUN] = Run()
        config.stash[RUN].stop_at_signals()
    if config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(SEED)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests with what they need, before some are chosen by their marks."""
    for item in items:
        mark(item)
    config.stash[COLLECTED] = list(items)


def pytest_report_header() -> str:
    """Name the seed."""
    return f"seed: {SEED}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how to draw the same random cases again."""
    terminalreporter.write_line(
        f"Random cases came from seed {SEED}; the same make target with SEED={SEED} repeats them."
    )


def memory() -> Path | None:
    """Return a folder in memory where a server of tests keeps its data; None if there is too little
    room for all that a run makes (containers often have little)."""
    folder = Path("/dev/shm")  # noqa: S108 -- the server makes a folder of its own in it
    return folder if folder.is_dir() and shutil.disk_usage(folder).free > 4 << 30 else None


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[EmbeddedPostgres]:
    """Yield a throw-away server with a migrated database `weir`, of which tests get copies. It is
    in memory, where a copy takes a fifth of the time."""
    with throw_away_postgres(memory()) as server:
        migrate.upgrade(server.dsn("weir", "weir_owner"))
        logins.make_users(server)
        # Plans depend on when autovacuum runs, and tests compare what plans read.
        _as_superuser(server, "ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()")
        yield server


@dataclass
class TestDatabase:
    """A fresh database of one test."""

    __test__ = False
    name: str
    dsn: str
    owner_dsn: str

    def open(self, patience: float = 60.0) -> Database:
        """Return another set of connections to the database, as another process would have."""
        return Database(self.dsn, patience=patience, connect_patience=60.0)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a disk of its own with hardly any space."""
    with mounted(tmp_path / "disk") as disk:
        yield disk


_made = 0


@pytest.fixture
def test_database(postgres_server: EmbeddedPostgres) -> Iterator[TestDatabase]:
    """Yield a fresh copy of the migrated database."""
    global _made
    _made += 1
    name = f"test_{_made}"
    make_database(postgres_server, name)
    yield TestDatabase(
        name, postgres_server.dsn(name, "weir_app"), postgres_server.dsn(name, "weir_owner")
    )
    _as_superuser(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


def make_database(server: EmbeddedPostgres, name: str, template: str = "weir") -> None:
    """Make a copy of the migrated database, or of another one that nobody uses, as an installation
    of its own. One that has the name is dropped."""
    _as_superuser(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    _copy(server, template, name)
    connection = psycopg2.connect(server.dsn(name, "postgres"))
    connection.cursor().execute(
        "UPDATE weir_internal.installation SET incarnation = weir_internal.incarnation()"
    )
    connection.commit()
    connection.close()


def _copy(server: EmbeddedPostgres, template: str, name: str) -> None:
    # A copy of the files has the caches that a first connection would have to make.
    _as_superuser(
        server,
        f"CREATE DATABASE {name} TEMPLATE {template} OWNER weir_owner STRATEGY FILE_COPY",
        f"GRANT CONNECT ON DATABASE {name} TO weir_app, weir_view, weir_watch",
    )


_superusers: dict[str, Any] = {}  # a connection to each server, kept from test to test


def _as_superuser(server: EmbeddedPostgres, *statements: str) -> None:
    dsn = server.dsn("postgres", "postgres")
    for again in (True, False):
        try:
            if dsn not in _superusers:
                _superusers[dsn] = psycopg2.connect(dsn)
                _superusers[dsn].autocommit = True
            for statement in statements:
                _superusers[dsn].cursor().execute(statement)
            return
        except (psycopg2.OperationalError, psycopg2.InterfaceError):
            _superusers.pop(dsn, None)  # a test has stopped the server meanwhile
            if not again:
                raise


@pytest.fixture
def restore(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> Iterator[Callable[[Database], Database]]:
    """Yield a function that takes a backup of a database, and opens it as if restored."""
    name = f"{test_database.name}_backup"
    opened: list[Database] = []

    def copy(database: Database) -> Database:
        database.dispose()
        close_shared()
        _copy(postgres_server, test_database.name, name)
        opened.append(
            Database(postgres_server.dsn(name, "weir_app"), patience=60.0, connect_patience=60.0)
        )
        return opened[0]

    yield copy
    for one in opened:
        one.dispose()
    _as_superuser(postgres_server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture
def database(test_database: TestDatabase) -> Iterator[Database]:
    """Yield the test's database as a job sees it."""
    opened = test_database.open()
    yield opened
    opened.dispose()


@pytest.fixture
def settings(tmp_path: Path, test_database: TestDatabase) -> Settings:
    """Return the settings of an installation below a temporary folder."""
    for folder in ("input", "output", "warehouse"):
        (tmp_path / folder).mkdir()
    return Settings(
        state=tmp_path,
        database=test_database.dsn,
        warehouse=str(tmp_path / "warehouse"),
        input_roots=(str(tmp_path / "input"),),
        output_roots=(str(tmp_path / "output"),),
        grace_period=0.0,
        transaction_lease=30.0,
        reader_lease=30.0,
    )


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Yield the session that all Spark tests share, which is small and has no UI."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("weir tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
