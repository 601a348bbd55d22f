"""The rooms of `weir` have one order: none imports from a room above it, or reads or writes its
tables.

Checked on every import statement and every SQL text, wherever it stands.
"""

import ast
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.rooms import (
    JOBS,
    LIBRARY,
    ORDER,
    PLUGINS,
    QUERIES,
    REPOSITORY,
    ROOM_OF_TABLE,
    below,
    circles,
    files_of,
    folder_of,
    imported_by,
    imports_of,
    modules,
    room_of,
    shown,
    upward_imports,
    upward_reads,
    upward_writes,
)
from weir.database.definitions import files

# Who may import a package of others. The JVM's file systems are pyarrow's for all above them.
ONLY = {
    "pyspark": {"spark"},
    "py4j": {"spark"},
    "airflow": {"airflow", "annex.alerts", "annex.partitions"},
}
ALLOWED = {
    ("weir/warehouse/hadoop.py", "pyspark"),
    ("weir/warehouse/hadoop.py", "pyspark.errors.exceptions.captured"),
    ("weir/warehouse/hadoop.py", "py4j.java_gateway"),
    ("weir/warehouse/hadoop.py", "py4j.protocol"),
    # A type, for the type checker only.
    ("weir/installation/opened.py", "pyspark.sql"),
    ("weir/operations/action.py", "pyspark.sql"),
    ("weir/programs/opening.py", "pyspark.sql"),
    ("weir/terminal/work.py", "pyspark.sql"),
    ("weir/airflow/links.py", "pyspark.sql"),
    # The name of a process of its own.
    ("weir/local/spark_server.py", "weir.spark.base.serve"),
    # A name among Airflow's settings, which only Airflow imports.
    ("weir/local/airflow_environment.py", "weir.airflow.executor.LocalExecutor"),
}
# What one room may not import, though it is below: they are never installed in the same place.
APART = {
    "airflow": {"weir.spark"},
    "annex.alerts": {"weir.spark"},
    "annex.partitions": {"weir.spark"},
    "local": {"weir.spark", "weir.airflow"},
    "terminal": {"weir.airflow"},
}
# The one door to the database, and the owner's door, through which migrations come: it has another
# login and another way of failing, and must work when the tables of the first one don't exist yet.
DOORS = {"weir/database/connection.py", "weir/database/migrate.py"}
# Ask the driver how a connection string is read or a session ended, and open nothing.
READING = {"weir/database/connection_string.py", "weir/database/session.py"}


@pytest.mark.parametrize("upward", [upward_imports, upward_writes, upward_reads])
@pytest.mark.parametrize("room", ORDER)
def test_no_room_imports_from_one_above_it_or_reads_or_writes_its_tables(
    room: str, upward: Callable[[str, str], Any]
) -> None:
    assert files_of(room)
    wrong = {shown(p): found for p in files_of(room) if (found := upward(room, p.read_text()))}
    assert wrong == {}


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("model", "from weir.database.connection import Database"),
        ("controller", "from weir.reader_groups import batches"),
        ("reader_groups", "import weir.retention.run"),
        ("retention", "def work():\n    from weir import spark"),
        ("controller", "from weir import open"),
        ("controller", "import weir\nweir.open"),
        ("controller", "import weir.model\nweir.retention.run.run_due"),
        ("arrow", "importlib.import_module('weir.spark.appends')"),
        ("reader_groups", "from weir.reader_groups.batches import plan"),
        ("reader_groups.groups", "import weir.reader_groups.checkpoints.records"),
        ("spark.appends", "from weir.spark import reads"),
        ("spark.appends", "from weir.spark.adjuncts.build import build_due"),
        ("spark.base", "def work():\n    from weir.spark.inputs import files"),
        ("spark.consumers", "from weir.spark import Reader"),
        ("controller", "__import__('weir.adjunct')"),
        ("operations", "from spark_jobs.ingest import ACTION"),
        ("annex", "import weir.spark_jobs.apply"),
    ],
)
def test_an_upward_import_is_found(room: str, source: str) -> None:
    assert upward_imports(room, source) != []
    assert upward_imports("local", source) == []


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
    for name in ("errors.py", "front_ends.py", "seams.py", "settings.py", "source_tree.py"):
        found = [one for one in imports_of((LIBRARY / name).read_text()) if below(one, {"weir"})]
        assert set(found) <= {"weir.errors", "weir.source_tree"}, name


@pytest.mark.parametrize(
    ("room", "source", "table"),
    [
        (
            "controller",
            "'DELETE FROM reader_group_segment WHERE stream_id = :s'",
            "reader_group_segment",
        ),
        (
            "controller",
            "f'UPDATE {x} SET y = 1; INSERT INTO found_damage VALUES (1)'",
            "found_damage",
        ),
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
    folders = {path.parent.relative_to(LIBRARY) for path in LIBRARY.glob("*/**/*.py")}
    folders = {folder for folder in folders if folder.parts[0] != QUERIES}
    assert {".".join(folder.parts) for folder in folders} == set(ORDER) - {JOBS.name}
    assert {path.name for path in LIBRARY.glob("*.py")} == {
        "__init__.py",
        "errors.py",
        "front_ends.py",
        "seams.py",
        "settings.py",
        "source_tree.py",
    }
    for room in set(ORDER) - {JOBS.name}:
        said = ast.get_docstring(ast.parse((folder_of(room) / "__init__.py").read_text()))
        assert said, f"{room} has no docstring"
        assert said.splitlines()[0].endswith("."), (
            f"{room} does not say in one line what lives in it"
        )


def test_each_table_is_in_a_room() -> None:
    schema = "".join(path.read_text() for path in files(REPOSITORY / "sql", "schema"))
    tables = re.findall(
        r"^CREATE (?:\w+ )?TABLE (?:IF NOT EXISTS )?weir_internal\.(\w+)", schema, re.MULTILINE
    )
    assert sorted(tables) == sorted([*ROOM_OF_TABLE, "alembic_version"])


def test_the_architecture_page_draws_this_order() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text()
    drawn = re.findall(r"^\| `([\w.]+)` \|", page[page.index("## The packages") :], re.MULTILINE)
    there = [room for room in drawn if room in ORDER or not room.startswith("annex.")]
    assert there[: len(ORDER)] == ORDER[::-1]


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
        if any(
            below(module, {package}) and not below(room, rooms) for package, rooms in ONLY.items()
        )
        or below(module, APART.get(room, set()))
    }
    assert found == ALLOWED


def test_dags_and_the_plugin_import_airflow_and_what_is_made_for_it_only() -> None:
    files = [*sorted((REPOSITORY / "dags").glob("*.py")), *sorted(PLUGINS.glob("*.py"))]
    assert len(files) >= 4
    allowed = {"airflow", "weir.airflow", "weir.annex"}
    for path in files:
        for module in imports_of(path.read_text()):
            assert below(module, allowed), f"{shown(path)} imports {module}"


def test_nobody_imports_a_job_and_each_ends_with_the_line_that_runs_it() -> None:
    """`weir.operations.jobs` finds jobs by their files, so that one that is broken hides itself."""
    for room in ORDER:
        for path in files_of(room):
            found = [one for one in imports_of(path.read_text()) if room_of(one) == JOBS.name]
            assert found == [], f"{shown(path)} imports {found}"
    for path in JOBS.glob("*.py"):
        assert path.read_text().endswith("\nrun_if_main(ACTION, __name__)\n"), shown(path)


def test_only_two_modules_open_a_connection() -> None:
    opening = set()
    folders = [LIBRARY, JOBS, *(REPOSITORY / name for name in ("dags", "sql"))]
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


def test_no_module_is_longer_than_400_lines_or_named_for_anything() -> None:
    modules = [*PLUGINS.rglob("*.py"), *JOBS.glob("*.py")]
    modules = [one for one in modules if LIBRARY / QUERIES not in one.parents]  # they are made
    assert len(modules) > 200
    assert [one.name for one in modules if one.read_text().count("\n") > 400] == []
    assert not {one.stem for one in modules} & {"utils", "util", "helpers", "common", "misc"}
