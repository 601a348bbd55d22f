"""`weir doctor` says of a cluster whether its executors can write."""

import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.jobs import write_config
from tests.spark.standalone import Standalone, bare_python, standalone
from weir.database.connection import Database
from weir.settings import Settings

pytestmark = [pytest.mark.jvm, pytest.mark.release, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("cluster"), workers=1) as found:
        yield found


@pytest.fixture
def doctor(cluster: Standalone, database: Database, settings: Settings) -> Callable[..., str]:
    config = str(write_config(settings))
    Path(settings.warehouse).mkdir(exist_ok=True)

    def run(python: Path | str, *settings: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "weir.terminal", "doctor"], capture_output=True, text=True,
            env=cluster.driver(python, *settings) | {"WEIR_CONFIG": config}, timeout=300,
        )  # fmt: skip
        assert "database" in done.stdout, done.stderr
        return done.stdout

    return run


def test_executors_whose_python_has_all_are_right(
    doctor: Callable[..., str], cluster: Standalone, settings: Settings, tmp_path: Path
) -> None:
    python = bare_python(tmp_path / "all", packages=True)
    said = doctor(python)
    assert f"ok     executors   {cluster.master} on " in said, said
    assert f"{python} (spark.pyspark.python)" in said
    assert "not tried" not in said
    assert not list(Path(settings.warehouse).glob("_weir_installation.*")), "a probe is left"


def test_a_python_may_be_shipped_as_an_archive(
    doctor: Callable[..., str], cluster: Standalone, tmp_path: Path
) -> None:
    bare_python(tmp_path / "env", packages=True)
    with tarfile.open(tmp_path / "weir.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "env", ".")
    shipped = f"{tmp_path / 'weir.tar.gz'}#weir"
    said = doctor("./weir/bin/python", f"spark.archives={shipped}")
    assert f"ok     executors   {cluster.master} on " in said, said
    assert f"./weir/bin/python (spark.pyspark.python, with file://{shipped})" in said, said


def test_a_python_of_executors_that_lacks_packages_or_is_missing_is_wrong(
    doctor: Callable[..., str], tmp_path: Path
) -> None:
    python = bare_python(tmp_path / "bare", packages=False)
    said = doctor(python)
    lacks = f"their Python {python} (spark.pyspark.python) lacks pyarrow, numpy, xxhash"
    assert f"WRONG  executors   {lacks}" in said, said
    said = doctor("/nowhere/python")
    assert "WRONG  executors   they have no Python /nowhere/python" in said, said
