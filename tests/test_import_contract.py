"""Who may import whom: dags -> weir.airflow -> weir <- weir.spark <- spark_jobs.

Checked twice: on every import statement, wherever it stands, and by really importing everything in
a process in which the forbidden packages can't be imported.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PLUGINS = REPOSITORY / "plugins"
LIBRARY = PLUGINS / "weir"

# layer: (its folder, what its files may not import)
LAYERS = {
    "weir": (LIBRARY, {"airflow", "pyspark", "weir.airflow", "weir.spark", "weir.local"}),
    "weir.local": (LIBRARY / "local", {"airflow", "pyspark", "weir.airflow", "weir.spark"}),
    "weir.spark": (LIBRARY / "spark", {"airflow", "weir.airflow", "weir.local"}),
    "weir.airflow": (LIBRARY / "airflow", {"pyspark", "weir.spark", "weir.local"}),
    "weir.jobs": (REPOSITORY / "spark_jobs", {"airflow", "weir.airflow", "weir.local"}),
}
ALLOWED = {
    # Most jobs need no Spark session: the one that asks for it gets it, and imports it then.
    ("weir/job.py", "weir.spark.session"),
    ("weir/job.py", "weir.spark.unreadable"),
    ("weir/job.py", "pyspark.sql"),  # a type, for the type checker only
    # A file system that pyarrow does not know, in a process that has a JVM already.
    ("weir/warehouse.py", "weir.spark.hadoop"),
}
# The one door to the database, and the owner's door, through which migrations come: it has another
# login and another way of failing, and must work when the tables of the first one don't exist yet.
DOORS = {"weir/storage.py", "weir/migrate.py"}
# Asks the driver how a connection string is read, and opens nothing.
READING = {"weir/connection_string.py"}


def shown(path: Path) -> str:
    """The path below plugins/ or the repository."""
    return str(path.relative_to(PLUGINS if path.is_relative_to(PLUGINS) else REPOSITORY))


def files_of(layer: str) -> list[Path]:
    """The files of a layer, without those of the layers inside it."""
    folder, _ = LAYERS[layer]
    inside = [other for other, _ in LAYERS.values() if other != folder and folder in other.parents]
    return [
        path
        for path in sorted(folder.rglob("*.py"))
        if not any(other in path.parents for other in inside)
    ]


def imports_of(path: Path) -> Iterator[str]:
    """The modules that a file imports, anywhere in it; `from a import b` may be the module a.b."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{shown(path)} has a relative import"
            assert node.module is not None
            yield node.module
            if node.module == "weir":
                yield from (f"weir.{alias.name}" for alias in node.names)


def below(module: str, packages: set[str]) -> bool:
    """Whether a module is one of the packages or inside one."""
    return any(module == package or module.startswith(package + ".") for package in packages)


@pytest.mark.parametrize("layer", LAYERS)
def test_no_file_imports_what_its_layer_may_not(layer: str) -> None:
    files = files_of(layer)
    assert files
    wrong = [
        f"{shown(path)} imports {module}"
        for path in files
        for module in imports_of(path)
        if below(module, LAYERS[layer][1]) and (shown(path), module) not in ALLOWED
    ]
    assert wrong == []


def test_exceptions_that_nobody_needs_any_more_are_removed() -> None:
    found = {(shown(path), module) for path in files_of("weir") for module in imports_of(path)}
    assert found >= ALLOWED


def test_dags_and_the_plugin_import_airflow_and_weir_airflow_only() -> None:
    files = [*sorted((REPOSITORY / "dags").glob("*.py")), *sorted(PLUGINS.glob("*.py"))]
    assert len(files) > 10
    for path in files:
        for module in imports_of(path):
            assert below(module, {"airflow", "weir.airflow"}), f"{shown(path)} imports {module}"


def test_only_the_storage_module_opens_a_connection() -> None:
    opening = set()
    for path in [p for layer in LAYERS for p in files_of(layer)] + [
        *(REPOSITORY / "dags").rglob("*.py"), *(REPOSITORY / "sql").rglob("*.py"),
    ]:  # fmt: skip
        drivers = {"psycopg2", "psycopg", "asyncpg", "pg8000"}
        named = {
            getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "name", None)
            for node in ast.walk(ast.parse(path.read_text()))
        }
        if any(below(module, drivers) for module in imports_of(path)) or named & {
            "create_engine", "create_async_engine", "engine_from_config", "get_sync_engine",
        }:  # fmt: skip
            opening.add(shown(path))
    assert opening == DOORS | READING


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


def module_names(layer: str) -> list[str]:
    """The names under which the files of a layer are imported; jobs are run as files."""
    if layer == "weir.jobs":
        return [str(path) for path in files_of(layer)]
    names = [".".join(p.relative_to(PLUGINS).with_suffix("").parts) for p in files_of(layer)]
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


def test_the_library_is_importable_without_airflow_and_pyspark(tmp_path: Path) -> None:
    names = [*module_names("weir"), *module_names("weir.local"), *module_names("weir.jobs")]
    assert import_without("airflow,pyspark", names, tmp_path) == {}


def test_what_runs_in_spark_is_importable_without_airflow(tmp_path: Path) -> None:
    assert import_without("airflow", module_names("weir.spark"), tmp_path) == {}


def test_operators_and_dags_are_importable_without_pyspark(tmp_path: Path) -> None:
    dags = [str(path) for path in sorted((REPOSITORY / "dags").glob("*.py"))]
    assert import_without("pyspark", [*module_names("weir.airflow"), *dags], tmp_path) == {}


def test_the_blocking_of_packages_works(tmp_path: Path) -> None:
    assert set(import_without("pyspark", ["weir.spark.session", "weir.job"], tmp_path)) == {
        "weir.spark.session"
    }


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


def test_nothing_beside_the_package_and_the_plugin_is_on_airflows_path() -> None:
    names = {path.stem for path in PLUGINS.iterdir() if not path.name.startswith((".", "__"))}
    assert names == {"weir", "weir_plugin"}
    assert not names & sys.stdlib_module_names
