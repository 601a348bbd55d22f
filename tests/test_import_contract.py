"""The rooms of `weir` have one order: none imports from a room above it, or reads or writes its
tables.

Checked on every import statement and every SQL text, wherever it stands, and by really importing
everything in a process in which the forbidden packages can't be imported.
"""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from tests.controller.statements import WRITE, inlined, read_by

REPOSITORY = Path(__file__).parents[1]
PLUGINS = REPOSITORY / "plugins"
LIBRARY = PLUGINS / "weir"

# The rooms from bottom to top, with the tables of each: a room reads and writes its own, and those
# of the rooms below it. `weir.errors`, `weir.front_ends` and `weir.settings` lie below all of them.
ROOMS = {
    "model": "",
    "database": "request",
    "warehouse": "",
    "installation": "",
    "controller": """installation garbage stream stream_schema epoch segment segment_tail data_file
        time_index transaction transaction_input stream_writer capture_queue retention_queue
        retention_decision""",
    "reader_groups": """reader_group reader_group_stream reader_group_segment reader_group_pin
        reader reader_batch batch_input adjunct_pin checkpoint parquet_output""",
    "scaling": "scale_decision scale_evaluation scale_measurement hot_key",
    "adjunct": """adjunct_store adjunct_definition adjunct_version adjunct_file
        adjunct_version_file""",
    "retention": "stream_cut",
    "recovery": "",
    "history": "job_run",
    "arrow": "",
    "spark": "",
    "operations": "",
    "declarations": "",
    "programs": "",
    "jobs": "",
    "airflow": "",
    "local": "",
    "terminal": "",
}
ORDER = list(ROOMS)
ROOM_OF_TABLE = {table: room for room, tables in ROOMS.items() for table in tables.split()}
FOLDERS = {room: REPOSITORY / "spark_jobs" if room == "jobs" else LIBRARY / room for room in ORDER}
# Who may import a package of others. The JVM's file systems are pyarrow's for all above them.
ONLY = {
    "pyspark": {"spark", "jobs", "terminal"},
    "py4j": {"spark", "jobs"},
    "airflow": {"airflow"},
}
ALLOWED = {
    ("weir/warehouse/hadoop.py", "pyspark"),
    ("weir/warehouse/hadoop.py", "pyspark.errors.exceptions.captured"),
    ("weir/warehouse/hadoop.py", "py4j.java_gateway"),
    ("weir/warehouse/hadoop.py", "py4j.protocol"),
    # A type, for the type checker only.
    ("weir/installation/opened.py", "pyspark.sql"),
    ("weir/operations/expressions.py", "pyspark.sql"),
    ("weir/operations/runner.py", "pyspark.sql"),
    ("weir/programs/opening.py", "pyspark.sql"),
}
# What one room may not import, though it is below: they are never installed in the same place.
APART = {
    "airflow": {"weir.spark", "weir.jobs"},
    "local": {"weir.spark", "weir.jobs", "weir.airflow"},
    "terminal": {"weir.airflow"},
}
# The runner finds the file of a job by name, for another process or a terminal to run.
RUN_AS_FILES = {"operations": {"weir/operations/runner.py": ["weir.jobs"]}}
# The one door to the database, and the owner's door, through which migrations come: it has another
# login and another way of failing, and must work when the tables of the first one don't exist yet.
DOORS = {"weir/database/connection.py", "weir/database/migrate.py"}
# Asks the driver how a connection string is read, and opens nothing.
READING = {"weir/database/connection_string.py"}


def shown(path: Path) -> str:
    """The path below plugins/ or the repository."""
    return str(path.relative_to(PLUGINS if path.is_relative_to(PLUGINS) else REPOSITORY))


def files_of(room: str) -> list[Path]:
    """The files of a room."""
    return sorted(FOLDERS[room].rglob("*.py"))


def exported() -> dict[str, str]:
    """From what `weir` itself offers to the module that has it."""
    tree = ast.parse((LIBRARY / "__init__.py").read_text())
    return {
        f"weir.{alias.name}": str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


EXPORTED = exported()
_MODULE = re.compile(rf"weir\.({'|'.join(ORDER)})(\.\w+)*")


def imports_of(source: str) -> Iterator[str]:
    """The modules that a text imports, anywhere in it, and those that it names in full, as for
    importlib or after `import weir`; `from a import b` may be the module a.b."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "there is a relative import"
            assert node.module is not None
            yield node.module
            if node.module == "weir":
                names = [f"weir.{alias.name}" for alias in node.names]
                yield from [EXPORTED.get(name, name) for name in names]
        elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("weir."):
            yield EXPORTED.get(ast.unparse(node), ast.unparse(node))
        elif isinstance(node, ast.Constant) and _MODULE.fullmatch(str(node.value)):
            yield str(node.value)


def sql_of(source: str) -> Iterator[str]:
    """The strings of a text, and those that it adds up; other values in one are left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.JoinedStr, ast.BinOp)):
            parts = [part for part in ast.walk(node) if isinstance(part, ast.Constant)]
            parts.sort(key=lambda part: (part.lineno, part.col_offset))
            yield " ".join(str(part.value) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def upward_imports(room: str, source: str) -> list[str]:
    """What a file of a room imports from the rooms above it."""
    above = {f"weir.{other}" for other in ORDER[ORDER.index(room) + 1 :]}
    return [module for module in imports_of(source) if below(module, above)]


def upward_writes(room: str, source: str) -> list[str]:
    """The tables that a file of a room writes to although they belong to a room above it, itself or
    by a function that it calls."""
    mine = ORDER[: ORDER.index(room) + 1]
    written = [table for text in sql_of(source) for table in WRITE.findall(inlined(text))]
    return [table for table in written if ROOM_OF_TABLE.get(table) not in mine]


def upward_reads(room: str, source: str) -> dict[str, str]:
    """The tables that a file of a room reads although they belong to a room above it, itself or by
    a function or a view that it names; by table, the statement."""
    above = ORDER[ORDER.index(room) + 1 :]
    return {
        table: text
        for text in sql_of(source)
        for table in read_by(text)
        if ROOM_OF_TABLE.get(table) in above
    }


def below(module: str, packages: set[str]) -> bool:
    """Whether a module is one of the packages or inside one."""
    return any(module == package or module.startswith(package + ".") for package in packages)


@pytest.mark.parametrize("room", ORDER)
def test_no_room_imports_from_one_above_it(room: str) -> None:
    assert files_of(room)
    wrong = {
        shown(p): found for p in files_of(room) if (found := upward_imports(room, p.read_text()))
    }
    assert wrong == RUN_AS_FILES.get(room, {})


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("model", "from weir.database.connection import Database"),
        ("controller", "from weir.reader_groups import batches"),
        ("reader_groups", "import weir.retention.run"),
        ("retention", "def work():\n    from weir import spark"),
        ("controller", "from weir import append"),
        ("controller", "import weir\nweir.create_reader_group"),
        ("controller", "import weir.model\nweir.retention.run.run_due"),
        ("arrow", "importlib.import_module('weir.spark.append')"),
        ("controller", "__import__('weir.adjunct')"),
    ],
)
def test_an_upward_import_is_found(room: str, source: str) -> None:
    assert upward_imports(room, source) != []
    assert upward_imports("local", source) == []


def modules() -> dict[str, Path]:
    """The files of the library, by the names under which they are imported."""
    found = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        name = ".".join(path.relative_to(PLUGINS).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def imported_by(source: str, known: Collection[str]) -> set[str]:
    """The modules among the known ones that a text imports, wherever it does."""
    found = set(imports_of(source))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found & set(known)


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules each of which imports, by way of others, all others of its group."""
    reached: dict[str, set[str]] = {}
    for name in imports:
        seen: set[str] = set()
        ahead = list(imports[name])
        while ahead:
            if (one := ahead.pop()) not in seen:
                seen.add(one)
                ahead += imports[one]
        reached[name] = seen
    return sorted(
        sorted(other for other in imports if name in reached[other] and other in reached[name])
        for name in imports
        if name in reached[name] and name == min({o for o in reached[name] if name in reached[o]})
    )


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = modules()
    # A package's own __init__ offers what its modules have, and nobody inside imports it for that.
    files = {name: path for name, path in known.items() if path.name != "__init__.py"}
    imports = {n: imported_by(path.read_text(), files) - {n} for n, path in files.items()}
    assert circles(imports) == []


def test_a_circle_is_found_wherever_its_imports_stand() -> None:
    texts = {
        "weir.spark.a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
        "    from weir.spark.b import B",
        "weir.spark.b": "def work():\n    from weir.spark import c",
        "weir.spark.c": "import weir.spark.a",
        "weir.spark.d": "import weir.spark.c",
        "weir.spark.e": "import weir.spark.d",
    }
    found = circles({name: imported_by(text, texts) for name, text in texts.items()})
    assert found == [["weir.spark.a", "weir.spark.b", "weir.spark.c"]]


def test_what_lies_below_all_rooms_imports_from_none() -> None:
    for name in ("errors.py", "front_ends.py", "settings.py"):
        found = [one for one in imports_of((LIBRARY / name).read_text()) if below(one, {"weir"})]
        assert set(found) <= {"weir.errors"}, name


@pytest.mark.parametrize("room", ORDER)
def test_no_room_writes_to_the_tables_of_one_above_it(room: str) -> None:
    wrong = {
        shown(p): found for p in files_of(room) if (found := upward_writes(room, p.read_text()))
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("room", "source", "table"),
    [
        (
            "controller",
            "'DELETE FROM reader_group_segment WHERE stream_id = :s'",
            "reader_group_segment",
        ),
        ("controller", "f'UPDATE {x} SET y = 1; INSERT INTO stream_cut VALUES (1)'", "stream_cut"),
        ("reader_groups", "'SELECT * FROM prune_below(1, 2)'", "scale_decision"),
        ("local", "'INSERT INTO nobodys VALUES (1)'", "nobodys"),
        ("controller", "'DELETE FROM weir_internal.reader'", "reader"),
        ("controller", "'UPDATE ONLY reader SET x = 1'", "reader"),
        ("controller", "'MERGE INTO reader USING stream ON x'", "reader"),
        ("controller", "'TRUNCATE reader'", "reader"),
        ("controller", "'SELECT lock_streams(1); DELETE FROM reader'", "reader"),
        ("controller", "'DELETE FROM ' + 'reader'", "reader"),
    ],
)
def test_an_upward_write_is_found(room: str, source: str, table: str) -> None:
    assert table in upward_writes(room, source)


@pytest.mark.parametrize("room", ORDER)
def test_no_room_reads_the_tables_of_one_above_it(room: str) -> None:
    wrong = {
        shown(p): found for p in files_of(room) if (found := upward_reads(room, p.read_text()))
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("room", "source", "table"),
    [
        ("controller", "'SELECT 1 FROM stream JOIN reader USING (x)'", "reader"),
        ("controller", "'SELECT 1 FROM stream s, reader r WHERE x'", "reader"),
        (
            "controller",
            "'SELECT 1 FROM f(1, 2) AS s (epoch), LATERAL (SELECT 1 FROM reader)'",
            "reader",
        ),
        ("controller", "'SELECT 1 FROM (stream JOIN a USING (b)), reader'", "reader"),
        ("controller", "'UPDATE stream SET a = 1, b = 2 FROM epoch, reader WHERE x'", "reader"),
        ("controller", "'DELETE FROM stream USING epoch, reader WHERE x'", "reader"),
        ("controller", "'SELECT 1 FROM weir_internal.reader'", "reader"),
        ("controller", "'SELECT 1 FROM weir.readers'", "reader"),
        ("controller", "'TABLE reader'", "reader"),
        ("controller", "f'SELECT 1 FROM {x}, reader'", "reader"),
        ("controller", "\"DO 'BEGIN EXECUTE SELECT 1 FROM reader'\"", "reader"),
        ("controller", "'SELECT unread_events_lost(1, 2)'", "reader_group_stream"),
        ("controller", "'SELECT * FROM group_completeness'", "reader_group"),
        ("warehouse", "'SELECT FROM garbage g, batches_protecting_files(0) r'", "adjunct_version"),
    ],
)
def test_an_upward_read_is_found(room: str, source: str, table: str) -> None:
    assert table in upward_reads(room, source)
    assert upward_reads("local", source) == {}


def test_every_room_is_in_the_order_and_says_in_a_line_what_lives_in_it() -> None:
    folders = {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    assert folders | {"jobs"} == set(ORDER)
    assert {path.name for path in LIBRARY.glob("*.py")} == {
        "__init__.py",
        "errors.py",
        "front_ends.py",
        "settings.py",
    }
    for room in ORDER:
        said = ast.get_docstring(ast.parse((FOLDERS[room] / "__init__.py").read_text()))
        assert said, f"{room} has no docstring"
        assert said.splitlines()[0].endswith("."), (
            f"{room} does not say in one line what lives in it"
        )


def test_each_table_is_in_a_room() -> None:
    schema = "".join(path.read_text() for path in (REPOSITORY / "sql/schema").glob("*.sql"))
    tables = re.findall(
        r"^CREATE (?:\w+ )?TABLE (?:IF NOT EXISTS )?weir_internal\.(\w+)", schema, re.MULTILINE
    )
    assert sorted(tables) == sorted([*ROOM_OF_TABLE, "alembic_version"])


def test_the_architecture_page_draws_this_order() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text()
    drawn = re.findall(r"^\| `(\w+)` \|", page[page.index("## The packages") :], re.MULTILINE)
    assert drawn[: len(ORDER)] == ORDER[::-1]


def test_the_model_does_nothing_but_compute() -> None:
    allowed = {"weir.model", "weir.errors", "weir.front_ends", "xxhash", *sys.stdlib_module_names}
    allowed -= {"os", "pathlib", "socket"}
    for path in files_of("model"):
        for module in imports_of(path.read_text()):
            assert below(module, allowed), f"{shown(path)} imports {module}"


def test_packages_of_others_are_imported_by_their_rooms_only() -> None:
    found = {
        (shown(path), module)
        for room in ORDER
        for path in files_of(room)
        for module in imports_of(path.read_text())
        if any(below(module, {package}) and room not in rooms for package, rooms in ONLY.items())
        or below(module, APART.get(room, set()))
    }
    assert found == ALLOWED


def test_dags_and_the_plugin_import_airflow_and_weir_airflow_only() -> None:
    files = [*sorted((REPOSITORY / "dags").glob("*.py")), *sorted(PLUGINS.glob("*.py"))]
    assert len(files) > 10
    for path in files:
        for module in imports_of(path.read_text()):
            assert below(module, {"airflow", "weir.airflow"}), f"{shown(path)} imports {module}"


def test_only_two_modules_open_a_connection() -> None:
    opening = set()
    folders = [LIBRARY, *(REPOSITORY / name for name in ("spark_jobs", "dags", "sql"))]
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        drivers = {"psycopg2", "psycopg", "asyncpg", "pg8000"}
        named = {
            getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "name", None)
            for node in ast.walk(ast.parse(path.read_text()))
        }
        if any(below(module, drivers) for module in imports_of(path.read_text())) or named & {
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
    names = module_names(*(room for room in ORDER if room not in ("spark", "airflow")))
    assert import_without("airflow,pyspark", names, tmp_path) == {}


def test_what_runs_in_spark_is_importable_without_airflow(tmp_path: Path) -> None:
    assert import_without("airflow", module_names("spark"), tmp_path) == {}


def test_operators_and_dags_are_importable_without_pyspark(tmp_path: Path) -> None:
    dags = [str(path) for path in sorted((REPOSITORY / "dags").glob("*.py"))]
    assert import_without("pyspark", [*module_names("airflow"), *dags], tmp_path) == {}


def test_the_blocking_of_packages_works(tmp_path: Path) -> None:
    assert set(
        import_without("pyspark", ["weir.spark.session", "weir.operations.runner"], tmp_path)
    ) == {"weir.spark.session"}


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


def test_the_benchmarks_import_only_what_there_is() -> None:
    importlib.import_module("benchmarks.__main__")  # which imports all of them


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


def test_no_module_is_longer_than_400_lines_or_named_for_anything() -> None:
    modules = [*PLUGINS.rglob("*.py")]
    assert len(modules) > 200
    assert [one.name for one in modules if one.read_text().count("\n") > 400] == []
    assert not {one.stem for one in modules} & {"utils", "util", "helpers", "common", "misc"}
