"""How the workers share the tests, so that each dear thing is started once and all end together.

All tests of Spark run on one worker, which starts one JVM, all tests of a running Airflow on one
worker, which starts it once, and all tests of the pages on one, which starts Chromium once. Every
other file is a unit of its own. The longest come first.

All workers collect all tests. So that a fresh clone does not compile each file three times, they
compile a part each before they begin.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import (
    PYC_TAIL,
    _read_pyc,
    _rewrite_test,
    _write_pyc,
    assertstate_key,
    get_cache_dir,
    try_makedirs,
)
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# Together, because they share what takes long to start. In the order in which they begin.
TOGETHER = {
    "a running Airflow": ("tests/acceptance/",),
    "Chromium": ("tests/pages/",),
    "Spark": (
        "tests/spark/",
        "tests/documents/test_with_spark.py",
        "tests/crash/test_adjunct_killed.py",
        "tests/crash/test_append_killed.py",
        "tests/crash/test_concurrent_appends.py",
        "tests/crash/test_consumer_killed.py",
        "tests/crash/test_outage.py",
        "tests/crash/test_query_killed.py",
        "tests/crash/test_soak.py",
        "tests/operations/test_jobs_by_hand.py",
        "tests/annex/publication/test_spark.py",
    ),
}
# Files that take longer than the rest; what is not named comes after them.
LONG = """tests/local/test_airflow_stack.py tests/sql/test_migrations.py
    tests/terminal/test_look.py tests/airflow/test_forms.py
    tests/annex/verification/test_damage.py tests/annex/recovery/test_compacted_files.py
    tests/controller/test_interleavings_at_every_statement.py tests/test_importable.py
    tests/annex/declarations/test_apply.py""".split()


def unit_of(nodeid: str) -> str:
    """Return the name of the unit of work to which a test belongs: a group or its file."""
    for name, folders in TOGETHER.items():
        if nodeid.startswith(folders):
            return name
    return nodeid.split("::")[0]


def order_of(unit: str) -> int:
    """Return a number that sorts units of work: the longest first."""
    order = [*TOGETHER, *LONG]
    return order.index(unit) if unit in order else len(order)


class LongestFirst(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Hand out units of work, the longest first."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        first = min(self.workqueue, key=order_of)
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)


def compile_part(config: pytest.Config, worker: int, workers: int) -> None:
    """Compile a worker's part of the files with tests, as pytest does when it imports them."""
    for path in sorted(_asked_for(config))[worker::workers]:
        kept = get_cache_dir(path) / f"{path.stem}{PYC_TAIL}"
        if _read_pyc(path, kept) is None and try_makedirs(kept.parent):
            with suppress(SyntaxError, ValueError):  # whoever imports it says what is wrong
                of_source, code = _rewrite_test(path, config)
                _write_pyc(config.stash[assertstate_key], code, of_source, kept)


def _asked_for(config: pytest.Config) -> Iterator[Path]:
    for asked in config.args:
        path = config.invocation_params.dir / asked.split("::")[0]
        yield from path.rglob("test_*.py") if path.is_dir() else [path] * path.is_file()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """Share the tests out as this module says, whatever `--dist` is."""
    return LongestFirst(config, log)
