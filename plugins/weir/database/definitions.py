"""Bring functions, views and comments of a database to what the SQL files say.

They hold no data, so no migration has them: each upgrade replaces them all. What other people built
on them is kept: an object that can be replaced in place keeps its grants and the views that use it.
One that can't is dropped and created again with its grants, unless an object that is not Weir's
uses it; then the upgrade is refused.

An annex has its files below `annex/<name>`, in folders as the core has them. Where one of the core
has a line `-- each annex: some.sql`, the files of that name of all annexes are put in.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from sqlalchemy import Connection, exc

from weir.errors import Conflict
from weir.queries.database import definitions as sql

_NOT_IN_PLACE = {"42P13", "42P16"}  # another result, or name of a parameter; other columns
_IN_USE = "2BP01"  # dependent objects still exist
# In the SQL files a statement begins at the beginning of a line, and nothing inside of one does.
_BEGIN = re.compile(r"^(?=(?:ALTER|COMMENT|CREATE|DO) )", re.MULTILINE)
_VIEW = re.compile(r"CREATE OR REPLACE VIEW (\S+) AS")
_FUNCTION = re.compile(r"CREATE OR REPLACE FUNCTION ")
_EACH_ANNEX = re.compile(r"^-- each annex: (\w+\.sql)\n", re.MULTILINE)
_COMMENT = re.compile(r"COMMENT ON FUNCTION (.*?) IS '")


@dataclass(frozen=True)
class _Object:
    """A function or view; `kind` is FUNCTION or VIEW, and `name` of a function has its types."""

    kind: str
    name: str
    statement: str

    def number(self, connection: Connection) -> int | None:
        """Return the oid of the object; None if the database has no such object."""
        return next(iter(_numbers(connection, [self])), None)


def files(folder: Path, kind: str) -> list[Path]:
    """Return the files of a kind (schema, functions or views), in the order of their names."""
    found = [*folder.glob(f"{kind}/*.sql"), *folder.glob(f"annex/*/{kind}/*.sql")]
    return sorted(found, key=lambda path: path.name)


def grants(folder: Path) -> str:
    """Return the statements that say who may do what."""
    return "\n".join(
        path.read_text()
        for path in (folder / "roles.sql", *sorted(folder.glob("annex/*/roles.sql")))
    )


def _with_annexes(folder: Path, sql: str) -> str:
    """Return the text of a file with what annexes put into it."""

    def parts(line: re.Match[str]) -> str:
        return "".join(path.read_text() for path in sorted(folder.glob(f"annex/*/{line[1]}")))

    return _EACH_ANNEX.sub(parts, sql)


def replace_definitions(connection: Connection, folder: Path) -> None:
    """Create or replace the functions and views of `folder`, and set all comments anew.

    Raises Conflict if an object that can't be replaced in place is used by one that is not Weir's.
    """
    statements = [
        statement
        for path in [*files(folder, "functions"), *files(folder, "views")]
        for statement in split(_with_annexes(folder, path.read_text()))
    ]
    objects = list(_objects(statements))
    _clear_column_comments(connection, objects)
    for path in files(folder, "schema"):
        _run(connection, (one for one in split(path.read_text()) if one.startswith("COMMENT ")))
    grants: list[str] = []
    by_statement = {one.statement: one for one in objects}
    for found, several in groupby(statements, by_statement.get):
        if found is None:
            _run(connection, several)
        else:
            grants += _replace(connection, found, objects)
    _drop_obsolete(connection, objects)
    for grant in grants:
        connection.exec_driver_sql(grant)


def _run(connection: Connection, statements: Iterable[str]) -> None:
    """Run statements in one call: hundreds of comments would take as many."""
    if several := "".join(statements):
        connection.exec_driver_sql(several)


def split(sql: str) -> list[str]:
    """Return the statements of an SQL file, each with the comments behind it."""
    return [part for part in _BEGIN.split(sql) if _BEGIN.match(part)]


def _objects(statements: list[str]) -> Iterator[_Object]:
    """Yield the functions and views that are created. The types of a function are in its
    comment."""
    for statement, following in zip(statements, [*statements[1:], ""], strict=True):
        if (view := _VIEW.match(statement)) is not None:
            yield _Object("VIEW", view[1], statement)
        elif _FUNCTION.match(statement):
            comment = _COMMENT.match(following)
            if comment is None:
                raise ValueError(f"no comment on its function follows: {statement[:80]}")
            yield _Object("FUNCTION", comment[1], statement)


def _numbers(connection: Connection, objects: list[_Object]) -> dict[int, _Object]:
    """Return the objects that the database has, by their oids."""
    by_name = {(one.kind, one.name): one for one in objects}
    found = sql.numbers(
        connection, kinds=[kind for kind, _ in by_name], names=[name for _, name in by_name]
    )
    return {one.number: by_name[one.kind, one.name] for one in found if one.number is not None}


def _replace(connection: Connection, one: _Object, objects: list[_Object]) -> list[str]:
    """Create or replace one object; returns the grants to give once all objects are there."""
    number = one.number(connection) if one.kind == "FUNCTION" else None
    is_new = one.kind == "FUNCTION" and number is None
    grants: list[str] = []
    # What weir_publisher owns the owner of the schema may drop, but not replace.
    if in_place := number is None or not sql.is_of_another_role(connection, number=number):
        try:
            with connection.begin_nested():
                connection.exec_driver_sql(one.statement)
        except exc.DBAPIError as error:
            if getattr(error.orig, "pgcode", None) not in _NOT_IN_PLACE:
                raise
            in_place = False
    if not in_place:
        grants = _drop(connection, one, objects)
        is_new = one.kind == "FUNCTION"
        connection.exec_driver_sql(one.statement)
    if is_new:  # otherwise everybody might call it
        connection.exec_driver_sql(f"REVOKE EXECUTE ON FUNCTION {one.name} FROM PUBLIC")
    return grants


def _drop(connection: Connection, one: _Object, objects: list[_Object]) -> list[str]:
    """Drop an object and those of Weir's that use it, which come after it and are created again
    in their turn; returns the statements that give all their grants."""
    numbers = _numbers(connection, objects)
    catalogue = "pg_class" if one.kind == "VIEW" else "pg_proc"
    found = sql.users(connection, catalogue=catalogue, number=one.number(connection) or 0)
    gone = [(number, numbers[number]) for number in found if number in numbers]
    grants = [
        grant
        for number, other in gone
        for grant in sql.grants(
            connection, kind="TABLE" if other.kind == "VIEW" else "FUNCTION", name=other.name,
            number=number,
        )
    ]  # fmt: skip
    for kind in ("VIEW", "FUNCTION"):
        names = ", ".join(other.name for _, other in gone if other.kind == kind)
        if names:
            drop(connection, f"DROP {kind} {names}")
    return grants


def drop(connection: Connection, statement: str) -> None:
    """Run a DROP without CASCADE. Raises Conflict if something else uses what is dropped."""
    try:
        connection.exec_driver_sql(statement)
    except exc.DBAPIError as error:
        if getattr(error.orig, "pgcode", None) != _IN_USE:
            raise
        raise in_use(error) from None


def in_use(error: exc.DBAPIError) -> Conflict:
    """Return the error of an upgrade that would drop what objects that are not Weir's use."""
    detail = getattr(getattr(error.orig, "diag", None), "message_detail", None) or ""
    users = "; ".join(detail.splitlines())
    return Conflict(
        "database_unsuitable",
        f"the upgrade replaces objects that others use ({users}); drop those others, upgrade, and "
        "create them again.",
    )


def _drop_obsolete(connection: Connection, objects: list[_Object]) -> None:
    """Drop the functions of weir_internal that no file has. Only a migration that names it drops
    what people may query."""
    wanted = list(_numbers(connection, [one for one in objects if one.kind == "FUNCTION"]))
    obsolete = sql.obsolete(connection, wanted=wanted)
    if obsolete is not None:
        drop(connection, f"DROP FUNCTION {obsolete}")


def _clear_column_comments(connection: Connection, objects: list[_Object]) -> None:
    """Remove the comments on columns: some files of views derive theirs from those of tables."""
    views = list(_numbers(connection, [one for one in objects if one.kind == "VIEW"]))
    found = sql.clearing(connection, views=views)
    _run(connection, (f"{statement};" for statement in found))
