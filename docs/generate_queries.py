"""Writes `plugins/weir/queries`: a function and a typed row for each statement of `sql/queries`.

`python -m docs.generate_queries` migrates a database on a throw-away server and has it describe
each statement, without running one. A file of `sql/queries` becomes a module of the same path, and
one of `sql/annex/<name>/queries` a module below `annex/<name>`:

    -- How readers wait.                          first lines: the module's docstring
    -- fragments: reader_groups/moves.sql         takes the fragments of another file

    -- fragment: expired                          a text for the `{expired}` of statements below
    clock_timestamp() > lease_until

    -- name: waiting -> many Waiting              Waiting: the class of a row; else the name's
    -- Return who waits, for whom.                the function's docstring
    -- row: Who waits, and for whom.              the class's docstring
    -- null: since, :after                        columns and parameters that may be null
    -- type: cut = dict[str, int | str]           a type that the catalogue doesn't know
    SELECT ... WHERE reader_group = :group

After `-- import: from weir.model.segment import Segment` in its first lines, a file can name that
class for rows with its fields. What may be null in a class need not be so in each statement of it.

Kinds: `one` row, `maybe` one or none, `many` rows, the `count` of rows that were changed, `none`.
A row of one column is its value. Statements of `pages` give rows that are models of their JSON.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import psycopg

from weir.database import migrate, session
from weir.local import logins
from weir.local.throw_away import throw_away_postgres

REPOSITORY = Path(__file__).parents[1]
SOURCES, TARGET = REPOSITORY / "sql" / "queries", REPOSITORY / "plugins" / "weir" / "queries"
ANNEXES = REPOSITORY / "sql" / "annex"
_SCALARS = {
    "bool": "bool", "int2": "int", "int4": "int", "int8": "int", "oid": "int",
    "float4": "float", "float8": "float", "numeric": "Decimal", "text": "str", "name": "str",
    "varchar": "str", "unknown": "str", "uuid": "UUID", "bytea": "bytes", "date": "date",
    "timestamptz": "datetime", "timestamp": "datetime", "interval": "timedelta", "jsonb": "Any",
    "json": "Any", "xid8": "str", "regclass": "str", "char": "str", "pg_lsn": "str", "inet": "str",
}  # fmt: skip
_IMPORTS = {
    "Sequence": "from collections.abc import Sequence",
    "date": "from datetime import date", "datetime": "from datetime import datetime",
    "timedelta": "from datetime import timedelta", "Decimal": "from decimal import Decimal",
    "Any": "from typing import Any", "Literal": "from typing import Literal",
    "NamedTuple": "from typing import NamedTuple", "UUID": "from uuid import UUID",
    "BaseModel": "from pydantic import BaseModel", "Row": "from sqlalchemy import Row",
}  # fmt: skip
_PARAMETER = re.compile(r"(?<![:\w\\]):(\w+)(?!:)")
_NAME = re.compile(r"(\w+) -> (one|maybe|many|count|none)(?: (\w+))?$")


class Wrong(Exception):
    """A statement that can't be taken, with its file and the reason."""


@dataclass
class Statement:
    """A statement as its file has it."""

    name: str
    kind: str
    row: str
    text: str
    about: list[str] = field(default_factory=list)
    row_about: list[str] = field(default_factory=list)
    null: set[str] = field(default_factory=set)
    types: dict[str, str] = field(default_factory=dict)


@dataclass
class Queries:
    """A file of statements."""

    path: Path
    about: str
    imports: list[str]
    statements: list[Statement]
    fragments: dict[str, str]

    @property
    def models(self) -> bool:
        """Whether rows are models of JSON."""
        return _relative(self.path).parts[0].split(".")[0] == "pages"


def _relative(path: Path) -> Path:
    """Return the place of a file's module below `weir.queries`."""
    if path.is_relative_to(ANNEXES):
        name, _, *rest = path.relative_to(ANNEXES).parts
        return Path("annex", name, *rest)
    return path.relative_to(SOURCES)


def read(path: Path) -> Queries:
    """Read a file of statements."""
    head, *parts = re.split(r"^-- (?=name: |fragment: )", path.read_text(), flags=re.M)
    about = [line.removeprefix("--").strip() for line in head.strip().splitlines()]
    imports = [line.removeprefix("import: ") for line in about if line.startswith("import: ")]
    fragments: dict[str, str] = {}
    for line in about:
        if line.startswith("fragments: "):
            name = line.removeprefix("fragments: ")
            beside = path.parent / name
            fragments |= read(beside if beside.exists() else SOURCES / name).fragments
    said = " ".join(a for a in about if not a.startswith(("import: ", "fragments: ")))
    found = Queries(path, said, imports, [], fragments)
    for part in parts:
        first, _, body = part.partition("\n")
        what, _, called = first.partition(": ")
        for name, text in fragments.items():
            body = body.replace(f"{{{name}}}", text)
        if what == "fragment":
            fragments[called.strip()] = re.sub(r"\A(--.*\n)*", "", body).strip().rstrip(";")
            continue
        if not (match := _NAME.match(called.strip())):
            raise Wrong(f"{path}: {called!r} is not `name -> one|maybe|many|count|none [Class]`")
        name, kind, row = match.groups()
        one = Statement(name, kind, row or "".join(map(str.capitalize, name.split("_"))), "")
        lines = body.splitlines()
        while lines and lines[0].startswith("--"):
            said = lines.pop(0).removeprefix("--").strip()
            if said.startswith("null: "):
                one.null |= {n.strip() for n in said.removeprefix("null: ").split(",")}
            elif said.startswith("row: "):
                one.row_about.append(said.removeprefix("row: ").strip())
            elif said.startswith("type: "):
                name, _, hint = said.removeprefix("type: ").partition(" = ")
                one.types[name.strip()] = hint.strip()
            else:
                one.about.append(said)
        one.text = "\n".join(lines).strip().rstrip(";")
        found.statements.append(one)
    return found


@dataclass
class Described:
    """What the server says of a statement: its parameters and columns, with their types."""

    parameters: dict[str, str]
    columns: dict[str, str]


class Server:
    """Describes statements."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, options=session.OPTIONS, autocommit=True)
        rows = self._connection.execute(
            """SELECT t.oid, t.typname, e.typname FROM pg_type t
            LEFT JOIN pg_type e ON t.typelem = e.oid AND t.typname LIKE '\\_%'"""
        )
        self._types = {oid: (name, of) for oid, name, of in rows}

    def describe(self, statement: Statement, where: str) -> Described:
        """Describe a statement. Raises Wrong if the server refuses it."""
        names = list(dict.fromkeys(_PARAMETER.findall(statement.text)))
        numbered = _PARAMETER.sub(lambda m: f"${names.index(m[1]) + 1}", statement.text)
        connection = self._connection.pgconn
        done = connection.prepare(b"", numbered.replace("\\:", ":").encode())
        if done.status != psycopg.pq.ExecStatus.COMMAND_OK:
            raise Wrong(f"{where}: {done.get_error_message()}")
        done = connection.describe_prepared(b"")
        given = {name: self._python(done.param_type(i), True) for i, name in enumerate(names)}
        columns = [
            ((done.fname(i) or b"").decode(), self._python(done.ftype(i), False))
            for i in range(done.nfields)
        ]
        if statement.kind != "none" and len(columns) != len(dict(columns)):
            raise Wrong(f"{where}: two columns have one name")
        for name in [*statement.types, *statement.null]:
            if name.removeprefix(":") not in (given if name.startswith(":") else dict(columns)):
                raise Wrong(f"{where}: has no {name}")
        hints = statement.types
        return Described(
            {
                name: hints.get(f":{name}", kind) + " | None" * (f":{name}" in statement.null)
                for name, kind in given.items()
            },
            {
                name: hints.get(name, kind) + " | None" * (name in statement.null)
                for name, kind in columns
            },
        )

    def _python(self, oid: int, given: bool) -> str:
        name, of = self._types[oid]
        if of:
            inner = _SCALARS.get(of, "Any")
            return f"Sequence[{inner}]" if given else f"list[{inner}]"
        if given and name in ("json", "jsonb"):
            return "str"  # a text of JSON
        return _SCALARS.get(name, "Any")


def module(queries: Queries, server: Server) -> str:
    """Return the module of a file of statements."""
    source = queries.path.relative_to(REPOSITORY)
    body: list[str] = []
    classes = dict(map(_imported, queries.imports))
    for one in queries.statements:
        described = server.describe(one, f"{source}: {one.name}")
        body += _of(one, described, classes, queries.models)
    text = "\n".join(body)
    used = [line for name, line in _IMPORTS.items() if re.search(rf"\b{name}\b", text)]
    used += ["from sqlalchemy import Connection, text", *queries.imports]
    about = f"{queries.about} Made by `make queries` from {source}."
    return "\n".join([f'"""{about}"""', "", *used, "", *body])


def _imported(line: str) -> tuple[str, dict[str, str]]:
    """Return the name of a class that is imported, and its fields with their types."""
    _, module, _, name = line.split()
    annotations = getattr(getattr(import_module(module), name), "__annotations__", {})
    return name, {
        field: getattr(kind, "__name__", re.sub(r"\b\w+\.", "", str(kind)))
        for field, kind in annotations.items()
    }


def _of(
    one: Statement, described: Described, classes: dict[str, dict[str, str]], models: bool
) -> Iterator[str]:
    """Yield the lines of a statement's text, row and function."""
    constant = one.name.upper()
    yield f'{constant} = text(\n    """{one.text.replace(chr(92), chr(92) * 2)}"""\n)\n\n'
    columns = described.columns
    if one.kind in ("count", "none"):
        row = {"count": "int", "none": "None"}[one.kind]
    elif len(columns) == 1:
        (row,) = columns.values()
    else:
        row = one.row
        if classes.setdefault(row, columns) is columns:
            yield f"class {row}({'BaseModel' if models else 'NamedTuple'}):"
            yield f'    """{" ".join(one.row_about) or f"A row of `{one.name}`."}"""\n'
            yield from (f"    {name}: {kind}" for name, kind in columns.items())
            yield "\n"
        elif [*classes[row]] != [*columns] or any(
            set(kind.split(" | ")) - set(classes[row][name].split(" | "))
            for name, kind in columns.items()
        ):
            raise Wrong(f"{one.name}: its columns are not those of the class {row}")
    returns = {"maybe": f"{row.removesuffix(' | None')} | None", "many": f"list[{row}]"}
    given = "".join(f", {name}: {kind}" for name, kind in described.parameters.items())
    star = ", *" if given else ""
    yield f"def {one.name}(connection: Connection{star}{given}) -> {returns.get(one.kind, row)}:"
    yield f'    """{" ".join(one.about) or "Run the statement."}"""'
    sent = [f'"{name}": {_sent(name, kind)}' for name, kind in described.parameters.items()]
    values = f"{{{', '.join(sent)}}}"
    yield f"    result = connection.execute({constant}{f', {values}' if given else ''})"
    value, made = len(columns) == 1, f"{row}(**row._mapping)" if models else f"{row}._make(row)"
    if one.kind == "count":
        yield "    return result.rowcount"
    elif one.kind == "many":
        yield f"    return [{'row[0]' if value else made} for row in result]"
    elif one.kind == "none":
        yield "    result.close()"
    elif value:
        method = {"one": "scalar_one", "maybe": "scalar_one_or_none"}[one.kind]
        yield f"    value: {returns.get(one.kind, row)} = result.{method}()"
        yield "    return value"
    elif one.kind == "one":
        yield "    row = result.one()"
        yield f"    return {made}"
    else:
        yield "    row = result.one_or_none()"
        yield f"    return None if row is None else {made}"
    yield "\n"


def _sent(name: str, kind: str) -> str:
    """Return how a parameter is sent: a sequence as a list, as the driver makes rows of tuples."""
    if not kind.startswith("Sequence"):
        return name
    unless = f"None if {name} is None else " if kind.endswith(" | None") else ""
    return f"{unless}list({name})"


def modules(dsn: str) -> dict[Path, str]:
    """Return the modules by their paths, as they belong to a migrated database."""
    server = Server(dsn)
    made: dict[Path, str] = {}
    for path in sorted([*SOURCES.rglob("*.sql"), *ANNEXES.glob("*/queries/*.sql")]):
        if not (queries := read(path)).statements:
            continue  # others have its fragments
        target = TARGET / _relative(path).with_suffix(".py")
        made[target] = _formatted(module(queries, server))
        for folder in target.relative_to(TARGET).parents:
            made.setdefault(
                TARGET / folder / "__init__.py",
                '"""Statements with names and typed rows, made from `sql/queries`."""\n',
            )
    return made


def _formatted(source: str) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "-q", "--fix", "--select", "I,E501", "--ignore", "E501"], ["format"]):
        source = subprocess.run(
            [*ruff, *command, "--stdin-filename", str(TARGET / "made.py"), "-"],
            input=source, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    return source


def main() -> None:
    """Write the modules; delete those whose file is gone."""
    with throw_away_postgres() as server:
        migrate.upgrade(server.dsn("weir", "weir_owner"))
        logins.make_users(server)
        made = modules(server.dsn("weir", "weir_app"))
    for path, source in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != source:
            path.write_text(source)
    for path in TARGET.rglob("*.py"):
        if path not in made:
            path.unlink()
    print(f"{TARGET} is up to date")


if __name__ == "__main__":
    main()
