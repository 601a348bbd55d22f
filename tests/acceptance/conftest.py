"""One real Airflow for all acceptance tests."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from flights import demo
from weir.local.airflow_environment import REPOSITORY
from weir.local.installation import Installation

EVERY = 40  # of the flights: 8,420 of them
FUNCTIONS = Path(__file__).parent / "functions"


@pytest.fixture(scope="package")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Postgres and Airflow in a temporary state folder, with the demo's settings."""
    # A CI that gives up sends SIGTERM: as Ctrl-C it stops the stack, too.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    installation = Installation(tmp_path_factory.mktemp("weir") / "state", durable=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEIR_CONFIG", str(demo.SETTINGS))
        patch.setenv("WEIR_BATCH_EVENTS", str(100_000 // EVERY))
        patch.setenv("WEIR_FUNCTION_PACKAGES", "flights,slowly")
        patch.setenv("WEIR_FUNCTION_PATH", f"{REPOSITORY / 'examples'},{FUNCTIONS}")
        try:
            installation.start()
            yield installation
        finally:
            installation.stop()
            installation.postgres.remove()
            signal.signal(signal.SIGTERM, before)
