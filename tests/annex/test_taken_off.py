"""Each annex can be taken off the tree, with what stands on it: the core stays whole, and its tests
green."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tests.controller.statements import WRITE, inlined, read_by
from tests.rooms import (
    JOBS,
    ORDER,
    REPOSITORY,
    ROOM_OF_TABLE,
    files_of,
    imports_of,
    room_of,
    shown,
    sql_of,
)
from tests.test_importable import import_without

ANNEXES = [room for room in ORDER if room.startswith("annex.")]
TREE = ("dags", "docs", "examples", "plugins", "spark_jobs", "sql", "tests", "pyproject.toml")
# Few and fast: streams are appended to, read, truncated, consumed, swept and shown, with pyarrow.
TESTS = (
    "tests/arrow/test_truncated.py::test_what_a_terminal_finds_no_more_it_says",
    "tests/retention/test_capture.py",
    "tests/retention/test_garbage.py::"
    "test_only_batches_of_the_same_stream_opened_before_it_died_pin_a_file",
    "tests/consumers/test_small_batches.py",
    "tests/pages/test_streams.py",
)
CONTRACT = "tests/test_import_contract.py"
WATCHER = "tests/airflow/test_watcher.py"
IN_AIRFLOW = ("weir/airflow", "weir/annex/alerts", "weir/annex/partitions")


def needed_by(path: Path) -> set[str | None]:
    """The rooms that a file imports from, or whose tables it reads or writes."""
    source = path.read_text()
    found = {room_of(module) for module in imports_of(source)}
    for text in sql_of(source):
        tables = read_by(text) | set(WRITE.findall(inlined(text)))
        found |= {ROOM_OF_TABLE.get(table) for table in tables}
    return found


@cache
def stands_on(room: str) -> set[str | None]:
    return {one for path in files_of(room) for one in needed_by(path)} - {room}


def gone_with(room: str) -> list[str]:
    """An annex, and all that stand on it."""
    gone = [room]
    for one in ANNEXES:  # none stands on one above it
        if stands_on(one) & set(gone):
            gone.append(one)
    return gone


def without(annexes: Iterable[str], root: Path) -> Path:
    """A copy of the tree without some annexes: their rooms, their SQL, their jobs and DAG files,
    their tests."""
    for name in TREE:
        source = REPOSITORY / name
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, root / name)
    library = root / "plugins" / "weir"
    places = [library / "annex", library / "queries" / "annex"]
    places += [root / "sql" / "annex", root / "tests" / "annex"]
    for room in annexes:
        for place in places:
            shutil.rmtree(place / room.removeprefix("annex."), ignore_errors=True)
        for file in [*JOBS.glob("*.py"), *(REPOSITORY / "dags").glob("*.py")]:
            if room in {room_of(module) for module in imports_of(file.read_text())}:
                (root / file.relative_to(REPOSITORY)).unlink(missing_ok=True)
    return root


def check_core(root: Path, tmp_path: Path, *chosen: str) -> None:
    """Import all that is left in a tree, and run tests in it."""
    plugins = root / "plugins"
    modules = [
        ".".join(path.relative_to(plugins).with_suffix("").parts).removesuffix(".__init__")
        for path in (plugins / "weir").rglob("*.py")
        if path.name != "__main__.py" and not any(one in str(path) for one in IN_AIRFLOW)
    ]
    names = [*modules, *map(str, (root / "spark_jobs").glob("*.py"))]
    names.remove("weir.warehouse.hadoop")  # it needs a JVM
    assert import_without("airflow", names, tmp_path, plugins) == {}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen],
        cwd=root, capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{plugins}:{root}/examples"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.server
def test_the_core_is_whole_without_any_annex(tmp_path: Path) -> None:
    root = without(ANNEXES, tmp_path / "tree")
    assert [one.name for one in (root / "plugins/weir/annex").iterdir() if one.is_dir()] in (
        [], ["__pycache__"],
    )  # fmt: skip
    check_core(root, tmp_path, *TESTS)


READ_BY_AIRFLOW = """
import json, pathlib, weir.airflow
from airflow.dag_processing.dagbag import BundleDagBag
from weir.airflow.plugin import WeirPlugin
found = BundleDagBag("dags", bundle_path=pathlib.Path("dags"), bundle_name="b")
pieces = [*WeirPlugin.macros, *WeirPlugin.deadline_references]
print(json.dumps([sorted(found.dags), found.import_errors, len(pieces), dir(weir.airflow)]))
"""


@pytest.mark.airflow
def test_airflow_reads_what_is_left_without_any_annex(tmp_path: Path) -> None:
    root = without(ANNEXES, tmp_path / "tree")
    done = subprocess.run(
        [sys.executable, "-c", READ_BY_AIRFLOW],
        cwd=root, capture_output=True, text=True, check=True,
        env={
            "PATH": "/usr/bin:/bin", "PYTHONPATH": str(root / "plugins"),
            "AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        },
    )  # fmt: skip
    dags, errors, pieces, names = json.loads(done.stdout.splitlines()[-1])
    left = {f"weir_{path.stem}" for path in (root / "spark_jobs").glob("*.py")}
    assert (set(dags), errors, pieces) == (left, {}, 0)
    assert "stream_asset" in names
    assert "stream_hours" not in names
    check_core(root, tmp_path, WATCHER)


@pytest.mark.release
@pytest.mark.parametrize("room", ANNEXES)
def test_the_core_is_whole_without_an_annex_and_what_stands_on_it(
    room: str, tmp_path: Path
) -> None:
    root = without(gone_with(room), tmp_path / "tree")
    check_core(root, tmp_path, CONTRACT, *TESTS)


CORE = [one for one in ORDER if not one.startswith("annex.")]
_CREATED = re.compile(r"CREATE (?:OR REPLACE )?(?:TABLE|VIEW|FUNCTION) (weir(?:_internal)?\.\w+)")


@cache
def named_by_annexes() -> re.Pattern[str]:
    """Matches the modules of annexes, and their tables, views and functions."""
    texts = [path.read_text() for path in (REPOSITORY / "sql" / "annex").rglob("*.sql")]
    names = sorted(re.escape(name) for text in texts for name in _CREATED.findall(text))
    every = "|".join([r"weir\.annex\.\w+", *names])
    return re.compile(rf"\b({every})\b")


def is_of_an_annex(path: Path) -> bool:
    """A job that imports one is a part of it, and goes with it."""
    rooms = {room_of(module) for module in imports_of(path.read_text())}
    return path.parent == JOBS and bool(rooms & set(ANNEXES))


@pytest.mark.parametrize("room", CORE)
def test_the_core_names_no_annex(room: str) -> None:
    for path in files_of(room):
        if not is_of_an_annex(path):
            assert not needed_by(path) & set(ANNEXES), shown(path)
            assert not named_by_annexes().findall(path.read_text()), shown(path)


def test_the_schema_of_the_core_names_no_annex() -> None:
    found = {
        shown(path): names
        for path in (REPOSITORY / "sql").rglob("*.sql")
        if "annex" not in path.parts and (names := named_by_annexes().findall(path.read_text()))
    }
    assert found == {}
