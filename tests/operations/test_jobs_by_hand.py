"""The commands of spark_jobs/README.md, as they stand there."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.crash.jobs import process, write_config
from tests.rooms import JOBS
from weir.database.connection import Database
from weir.operations import runner
from weir.operations.jobs import ACTIONS, Jobs
from weir.reader_groups.groups.readers import join
from weir.settings import Settings

ORDERS = "customer,amount\nc1,3\nc2,4\nc1,5\n"
FUNCTION = "def totals(orders):\n    return orders.limit(2)\n"


def commands() -> list[list[str]]:
    """The commands of the page, without the program that runs them."""
    lines = (JOBS / "README.md").read_text().splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("spark-submit ")]


def prepared(settings: Settings) -> Path:
    """Give an installation the file and the function of the page; return its weir.toml."""
    Path(settings.input_roots[0], "orders.csv").write_text(ORDERS)
    functions = settings.state / "functions"
    (functions / "shop").mkdir(parents=True)
    (functions / "shop" / "__init__.py").write_text(FUNCTION)
    return write_config(settings, function_packages=["shop"], function_path=[str(functions)])


@pytest.fixture
def config(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = prepared(settings)
    monkeypatch.setenv("WEIR_CONFIG", str(found))
    return found


def let_a_reader_die(before: str, settings: Settings) -> None:
    """Let the group of the page have the reader that its command takes offline."""
    if before.endswith("reader_offline.py"):
        with Database.of(settings) as database:
            join(database, "totals", "one that died", lease=60.0)


def test_the_page_has_a_command_for_each_job() -> None:
    assert sorted(job for job, *_ in commands()) == sorted(
        f"spark_jobs/{name}.py" for name in ACTIONS
    )


def test_each_command_of_the_page_does_what_it_says(
    config: Path, settings: Settings, spark: Any
) -> None:
    """In this process, with the session that tests share: what spark-submit runs, but its start."""
    for job, *words in commands():
        let_a_reader_die(job, settings)
        assert runner.main(ACTIONS[Path(job).stem], words) == 0, job


@pytest.mark.release
@pytest.mark.jvm
@pytest.mark.timeout(3600)  # 34 starts of Spark
def test_spark_submit_runs_each_command_of_the_page(config: Path, settings: Settings) -> None:
    for job, *words in commands():
        let_a_reader_die(job, settings)
        command = ["spark-submit", "--master", "local[2]", str(JOBS.parent / job), *words]
        with process(command, config) as running:
            assert running.wait() == 0, running.said


def test_a_job_that_cannot_be_imported_is_named_and_the_others_are_there(tmp_path: Path) -> None:
    for name in ("seal_stream", "upkeep"):
        (tmp_path / f"{name}.py").write_text((JOBS / f"{name}.py").read_text())
    (tmp_path / "ingest.py").write_text("import nowhere\n")
    (tmp_path / "process.py").write_text("def (\n")
    (tmp_path / "verify.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "scale.py").write_text("ACTIONS = 1\n")
    found = Jobs(tmp_path)
    broken = found.broken()
    assert list(found) == ["seal_stream", "upkeep"]
    assert sorted(broken) == ["ingest", "process", "scale", "verify"]
    assert f"job {tmp_path}/ingest.py can't be imported (ModuleNotFoundError" in broken["ingest"]
    assert all(why.endswith("correct it.") for why in broken.values())


def test_a_job_takes_its_folder_off_the_path_of_modules(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package of a user may have the name of a job."""
    monkeypatch.syspath_prepend(str(JOBS))
    assert runner.main(ACTIONS["checkpoints"], ["--arguments", "{}"]) == 0
    with pytest.raises(ImportError):
        __import__("reader_offline")
