"""Whoever lacks a package of others can import the rest of `weir`.

Checked by really importing everything in a process in which the forbidden packages can't be
imported.
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.rooms import (
    ORDER,
    PLUGINS,
    REPOSITORY,
    files_of,
)
from weir.spark.base import _files_first

_BLOCKING = """
import importlib, json, os, runpy, sys
blocked = set(sys.argv[1].split(","))
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked:
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Blocker())
wrong = {}
for name in json.load(sys.stdin):
    try:
        runpy.run_path(name) if os.sep in name else importlib.import_module(name)
    except Exception as error:
        wrong[name] = repr(error)
print(json.dumps(wrong))
"""


def import_without(
    blocked: str, names: list[str], home: Path, path: Path = PLUGINS
) -> dict[str, str]:
    """Import modules and run files in a new process; returns what failed, and why."""
    done = subprocess.run(
        [sys.executable, "-c", _BLOCKING, blocked],
        input=json.dumps(names),
        env={"PYTHONPATH": str(path), "AIRFLOW_HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    wrong: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return wrong


def module_names(*rooms: str) -> list[str]:
    """The names under which the files of rooms are imported; jobs are run as files."""
    names = []
    for path in (path for room in rooms for path in files_of(room)):
        if path.is_relative_to(PLUGINS):
            name = ".".join(path.relative_to(PLUGINS).with_suffix("").parts)
            names.append(name.removesuffix(".__init__"))
        else:
            names.append(str(path))
    needs_a_jvm = {"weir.warehouse.hadoop"}
    return [n for n in names if not n.endswith("__main__") and n not in needs_a_jvm]


def test_the_library_is_importable_without_airflow_and_pyspark(tmp_path: Path) -> None:
    inside = ("spark", "airflow", "annex.alerts", "annex.partitions")
    names = module_names(*(room for room in ORDER if not room.startswith(inside)))
    assert import_without("airflow,pyspark", names, tmp_path) == {}


def test_what_runs_in_spark_is_importable_without_airflow(tmp_path: Path) -> None:
    assert (
        import_without(
            "airflow", module_names(*(room for room in ORDER if room.startswith("spark"))), tmp_path
        )
        == {}
    )


def test_operators_and_dags_are_importable_without_pyspark(tmp_path: Path) -> None:
    dags = [str(path) for path in sorted((REPOSITORY / "dags").glob("*.py"))]
    rooms = [room for room in ("airflow", "annex.alerts", "annex.partitions") if room in ORDER]
    assert import_without("pyspark", [*module_names(*rooms), *dags], tmp_path) == {}


def test_a_dag_file_loads_pyarrow_only_for_operators_of_actions(tmp_path: Path) -> None:
    names = ["operators", "queries", "sensors", "decorators"]
    rooms = [room for room in ("annex.alerts", "annex.partitions") if room in ORDER]
    wanted = [*(f"weir.airflow.{name}" for name in names), *(f"weir.{room}" for room in rooms)]
    assert import_without("pyarrow", wanted, tmp_path) == {}


def test_the_blocking_of_packages_works(tmp_path: Path) -> None:
    assert set(
        import_without("pyspark", ["weir.spark.base.session", "weir.operations.runner"], tmp_path)
    ) == {"weir.spark.base.session"}


_LOAD_PLUGINS = """
import json, os, sys
import airflow.plugins_manager as manager
from airflow import settings
settings.prepare_syspath_for_config_and_plugins()
before = dict(sys.modules)
manager.ensure_plugins_loaded()
folder = os.path.realpath(sys.argv[1]) + os.sep
print(json.dumps({
    "plugins": [plugin["name"] for plugin in manager.get_plugin_info()],
    "errors": manager.get_import_errors(),
    "replaced": [name for name in before if sys.modules.get(name) is not before[name]],
    "executed": [name for name, module in sys.modules.items()
                 if os.path.realpath(getattr(module, "__file__", None) or "").startswith(folder)],
}))
"""


def load_plugins(folder: Path, home: Path) -> dict[str, object]:
    """What Airflow's own plugin loader makes of a folder."""
    done = subprocess.run(
        [sys.executable, "-c", _LOAD_PLUGINS, folder],
        env={
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(folder),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",  # which are plugins as well
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_airflows_plugin_loader_finds_one_plugin_and_replaces_no_module(tmp_path: Path) -> None:
    found = load_plugins(PLUGINS, tmp_path)
    assert found["errors"] == {}
    assert found["plugins"] == ["weir"]
    assert found["replaced"] == []
    executed = found["executed"]
    assert isinstance(executed, list)
    assert [name for name in executed if name.split(".")[0] != "weir"] == ["weir_plugin"]


def test_nothing_beside_the_packages_and_the_plugin_is_on_airflows_path() -> None:
    entries = [path for path in PLUGINS.iterdir() if not path.name.startswith((".", "__"))]
    # The metadata of the distribution, by which Airflow finds the provider, is no module.
    names = {path.stem for path in entries if path.suffix != ".dist-info"}
    assert names == {"pyspark_weir", "weir", "weir_plugin"}
    assert not names & sys.stdlib_module_names


def test_pyspark_is_loaded_from_its_files_only_if_the_archive_is_theirs(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):
        (folder / "pyspark/python/lib").mkdir(parents=True)
        (folder / "pyspark/__init__.py").touch()
    archive = str(own / "pyspark/python/lib/pyspark.zip")  # which Spark names first
    elsewhere = str(tmp_path / "spark/python/lib/pyspark.zip")
    assert _files_first([archive, "x", str(own)]) == ["x", str(own), archive]
    for path in ([archive, str(other), str(own)], [elsewhere, str(own)], [archive, "x"]):
        assert _files_first(path) == path, "a version that may not be the JVM's"
