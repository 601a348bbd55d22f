"""The rooms of `weir` in their order, and what is in a file of a room: its imports, its SQL."""

import ast
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from tests.controller.statements import WRITE, inlined, read_by

REPOSITORY = Path(__file__).parents[1]
PLUGINS = REPOSITORY / "plugins"
LIBRARY = PLUGINS / "weir"
QUERIES = "queries"  # of the library: a folder of typed statements for each room, made from SQL
JOBS = REPOSITORY / "spark_jobs"  # a room beside the library: what spark-submit runs

# The rooms from bottom to top, with the tables of each: a room reads and writes its own, and those
# of the rooms below it. `weir.errors`, `weir.front_ends` and `weir.settings` lie below all of them.
# A large room has rooms itself: what lies beside them is the floor on which they stand, or, where
# it comes after them, the door in front of them.
ROOMS = {
    "model": "",
    "database": "request",
    "warehouse": "",
    "kernel": "",
    "installation": "",
    "controller": """installation garbage stream stream_schema epoch segment segment_tail data_file
        time_index hole erased_keys packed_commits transaction transaction_input
        stream_writer stream_cut capture_queue retention_queue retention_decision truncation
        stream_history owner_history truncated_range watch announcement""",
    "reader_groups": """reader_group reader_group_stream reader_group_segment reader_group_pin
        reader reader_batch batch_input adjunct_pin checkpoint group_history parquet_output
        placement delivered_range""",
    "reader_groups.outputs": "",
    "reader_groups.groups": "",
    "reader_groups.checkpoints": "",
    "reader_groups.batches": "",
    "scaling": "scale_decision scale_evaluation scale_measurement hot_key",
    "adjunct": """adjunct_store adjunct_definition adjunct_version adjunct_file
        adjunct_version_file""",
    "compaction": "compaction",
    "history": "job_run",
    "inputs": "",
    "consumers": "",
    "arrow": "",
    "retention": "",
    "spark.failures": "",
    "spark.base": "",
    "spark.inputs": "",
    "spark.appends": "",
    "spark.reads": "",
    "spark.adjuncts": "",
    "spark.consumers": "",
    "spark": "",
    "operations": "",
    "annex": "",
    "annex.publication": "publication published_file",
    "annex.recovery": "",
    "annex.verification": "found_damage verification",
    "annex.erasure": "erasure erasure_request signing_key",
    "annex.audit": "audit counter_example audited_stream",
    "annex.declarations": "",
    "annex.back_test": "",
    "spark_jobs": "",
    "pages": "",
    "programs": "",
    "airflow": "",
    "annex.partitions": "watched_partition",
    "annex.alerts": "",
    "local": "",
    "terminal": "",
}
for _room in [room for room in ROOMS if room.startswith("annex.")]:
    if not (LIBRARY / _room.replace(".", "/")).is_dir():
        del ROOMS[_room]  # it was taken off (tests/annex/test_taken_off.py)
ORDER = list(ROOMS)
ROOM_OF_TABLE = {table: room for room, tables in ROOMS.items() for table in tables.split()}


def shown(path: Path) -> str:
    """The path below plugins/ or the repository."""
    return str(path.relative_to(PLUGINS if path.is_relative_to(PLUGINS) else REPOSITORY))


def folder_of(room: str) -> Path:
    """The folder of a room."""
    return JOBS if room == JOBS.name else LIBRARY / room.replace(".", "/")


def files_of(room: str) -> list[Path]:
    """The files of a room, without those of the rooms in it, and the statements made for it."""
    statements = LIBRARY / QUERIES / room.replace(".", "/")
    return [*sorted(folder_of(room).glob("*.py")), *sorted(statements.glob("*.py"))]


def room_of(module: str) -> str | None:
    """The room that a module lies in; None: in none."""
    if below(module, {JOBS.name, f"weir.{JOBS.name}"}):
        return JOBS.name
    parts = module.split(".")[1:] if module.startswith("weir.") else []
    parts = parts[1:] if parts[:1] == [QUERIES] else parts
    names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in names if name in ROOMS), None)


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


@cache  # several tests ask about each file
def imports_of(source: str) -> tuple[str, ...]:
    """The modules that a text imports, anywhere in it, and those that it names in full, as for
    importlib or after `import weir`; `from a import b` may be the module a.b."""
    return tuple(_imports_of(source))


def _imports_of(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "there is a relative import"
            assert node.module is not None
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                room = room_of(name) != room_of(node.module)
                yield EXPORTED.get(name, name) if room or node.module == "weir" else node.module
        elif isinstance(node, ast.Attribute) and _begins_with(node) == "weir":
            yield EXPORTED.get(ast.unparse(node), ast.unparse(node))
        elif isinstance(node, ast.Constant) and _MODULE.fullmatch(str(node.value)):
            yield str(node.value)


def _begins_with(node: ast.expr) -> str:
    """The name of which something is an attribute, directly or not; empty if it is of none."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


@cache
def sql_of(source: str) -> tuple[str, ...]:
    """The strings of a text, and those that it adds up; other values in one are left out."""
    return tuple(_sql_of(source))


def _sql_of(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.JoinedStr, ast.BinOp)):
            parts = [part for part in ast.walk(node) if isinstance(part, ast.Constant)]
            parts.sort(key=lambda part: (part.lineno, part.col_offset))
            yield " ".join(str(part.value) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def upward_imports(room: str, source: str) -> list[str]:
    """What a file of a room imports from the rooms above it."""
    above = ORDER[ORDER.index(room) + 1 :]
    return [module for module in imports_of(source) if room_of(module) in above]


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
