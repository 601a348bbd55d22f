"""One real Airflow for all acceptance tests."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from flights import demo
from weir.local.installation import Installation
from weir.local.throw_away import reaped
from weir.settings import Settings, load

REPOSITORY = Path(__file__).parents[2]
EVERY = 40  # of the flights: 8,420 of them
FUNCTIONS = Path(__file__).parent / "functions"
PERIODIC = (
    "weir_stream_cuts",
    "weir_checkpoints",
    "weir_adjunct",
    "weir_retention",
    "weir_upkeep",
    "weir_scale",
    "weir_audit",
)

ENVIRONMENT = {
    "WEIR_CONFIG": str(demo.SETTINGS),
    "WEIR_BATCH_EVENTS": str(100_000 // EVERY),
    "WEIR_FUNCTION_PACKAGES": "flights,slowly,shop,mending",
    # The last is below the state folder: for what tests write, as readers of README.md do.
    "WEIR_FUNCTION_PATH": f"{REPOSITORY / 'examples'},{FUNCTIONS},{{state}}/../functions",
}


@pytest.fixture(scope="package")
def seconds_to_start() -> list[float]:
    """Return a list for the seconds that the start of Postgres and Airflow took. It is empty until
    they run."""
    return []


# Airflow reads this beside its configuration.
PAUSING = """
def dag_policy(dag):
    if "periodic" in dag.tags:
        dag.is_paused_upon_creation = True
"""


@pytest.fixture(scope="package")
def stack(
    tmp_path_factory: pytest.TempPathFactory, seconds_to_start: list[float]
) -> Iterator[Installation]:
    """Yield Postgres and Airflow in a temporary state folder, with the demo's settings. Periodic
    DAGs are paused: each of their runs would be a job beside the tests."""
    folder = tmp_path_factory.mktemp("weir")
    (folder / "state/airflow/config").mkdir(parents=True, mode=0o700)
    (folder / "state/airflow/config/airflow_local_settings.py").write_text(PAUSING)
    for made in (folder / "state", folder / "state/airflow"):
        made.chmod(0o700)
    start = time.monotonic()
    with begun(folder) as installation:
        seconds_to_start.append(time.monotonic() - start)
        yield installation


@contextmanager
def begun(folder: Path) -> Iterator[Installation]:
    """Start Postgres and Airflow, and stop them at the end."""
    # A copy, to which tests add the DAGs that people write.
    dags = shutil.copytree(
        REPOSITORY / "dags", folder / "dags", ignore=shutil.ignore_patterns("__pycache__")
    )
    installation = Installation(folder / "state", dags=dags, durable=False)
    with reaped(installation.postgres, installation.state):
        try:
            with environment(installation):
                installation.start()
            yield installation
        finally:
            installation.stop()
            installation.postgres.remove()


@pytest.fixture(scope="module")
def installation(stack: Installation) -> Iterator[Installation]:
    """Yield `stack`, with its settings in the environment while the tests of a file run. Other
    tests have settings of their own."""
    with environment(stack):
        yield stack


@contextmanager
def environment(installation: Installation) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value.replace("{state}", str(installation.state)))
        yield


def settings_of(installation: Installation) -> Settings:
    """Return the settings of an installation, with the login of jobs."""
    found = load(dict(os.environ) | installation.environment())
    return replace(found, database=installation.postgres.dsn("weir", "weir_app"))


@pytest.fixture
def settings(installation: Installation) -> Settings:
    """Return the settings of the installation of these tests."""
    return settings_of(installation)
