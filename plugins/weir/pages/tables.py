"""Views of the database as tables: those of the core are here, those of annexes hang on a seam."""

from datetime import date, timedelta
from functools import cache
from typing import Annotated, Literal, get_type_hints

from fastapi import APIRouter, Query
from pydantic import BaseModel, JsonValue
from pydantic_core import to_jsonable_python
from sqlalchemy import Connection

from weir.errors import InvalidInput, NotFound
from weir.operations.shown import MOST, Part, Table, passed_of
from weir.pages.answering import Asked, Tagged, check_stream, not_a_page
from weir.queries.pages import tables as sql
from weir.seams import hung

router = APIRouter(route_class=Tagged, tags=["tables"])

LOOKED_AT = 100  # streams that an answer looks at, where each takes some milliseconds
SUMMED_UP = 200  # streams whose sizes an answer adds up
DAYS = 14  # of a calendar, at once
MOST_COLUMNS = 1000
Kind = Literal["text", "number", "size", "time", "span", "stream", "group", "run", "flag", "hours"]


class Name(BaseModel):
    """A table that there is. `of_stream`: it is of one stream only."""

    name: str
    title: str
    about: str
    of_stream: bool


class Names(BaseModel):
    """The tables that there are."""

    tables: list[Name]


class Column(BaseModel):
    """A column of a table, and what its values are."""

    name: str
    title: str
    kind: Kind


class Shown(Name):
    """Some rows of a table, each with a value for each column. `next`: what to give as `after` for
    those that follow; `none`: what to say where there is no row."""

    none: str
    columns: list[Column]
    rows: list[list[JsonValue]]
    next: str | None


@router.get("/tables")
def list_tables() -> Names:
    """Return the tables that there are. It asks no database."""
    return Names(tables=[_name_of(one) for one in tables().values()])


@router.get("/tables/{table}")
def show_table(
    asked: Asked,
    table: str,
    stream: Annotated[str, Query(max_length=140, description="only of this stream")] = "",
    after: Annotated[str, Query(max_length=140, description="`next` of the page before")] = "",
) -> Shown:
    """Return some rows of a table. At most three statements."""
    of = tables().get(table)
    if of is None:
        raise NotFound("table_not_found", f"there is no table {table}.")

    def read(connection: Connection) -> Part:
        if of.of_stream and not stream:
            raise InvalidInput("argument_missing", f"table {table} is of one stream; give stream.")
        part = of.part(connection, stream, after)
        if stream and not part.rows:  # a stream that was deleted may have some
            check_stream(connection, stream)
        return part

    part = asked.snapshot(read)
    columns = _columns_of(type(part.rows[0])) if part.rows else []
    return Shown(
        **vars(_name_of(of)),
        none=of.none,
        columns=columns,
        rows=[[to_jsonable_python(getattr(row, one.name)) for one in columns] for row in part.rows],
        next=part.next or None,
    )


@cache
def tables() -> dict[str, Table]:
    """Return the tables by their names, in the order of their titles."""
    return {one.name: one for one in sorted([*CORE, *hung(Table)], key=lambda one: one.title)}


def _name_of(of: Table) -> Name:
    return Name(name=of.name, title=of.title, about=of.about, of_stream=of.of_stream)


_KINDS: dict[str, Kind] = {
    "stream": "stream", "reader_group": "group", "request": "run", "requested_by": "run",
    "hours": "hours",
}  # fmt: skip
_TYPES: dict[str, Kind] = {  # the first that a type names: its module is datetime, too
    "timedelta": "span", "datetime": "time", "int": "number", "bool": "flag",
}  # fmt: skip


def _columns_of(row: type) -> list[Column]:
    """Return the columns of a class of rows: what each value is follows from its name and type."""
    hints = (
        {name: one.annotation for name, one in row.model_fields.items()}
        if issubclass(row, BaseModel)
        else get_type_hints(row)
    )
    columns = []
    for name, hint in hints.items():
        said = getattr(hint, "__name__", str(hint))
        kind: Kind = next((kind for type_, kind in _TYPES.items() if type_ in said), "text")
        kind = "size" if name.endswith("bytes") else _KINDS.get(name, kind)
        columns.append(Column(name=name, title=name.replace("_", " ").capitalize(), kind=kind))
    return columns


def _alerts(connection: Connection, stream: str, after: str) -> Part:
    names = sql.names(connection, stream=stream, after=after, most=LOOKED_AT)
    more = names[-1] if len(names) == LOOKED_AT else ""
    return Part(sql.alerts(connection, names=names), more)


def _disk(connection: Connection, stream: str, after: str) -> Part:
    names = sql.names(connection, stream=stream, after=after, most=SUMMED_UP)
    found = sql.disk(connection, names=names, rest=not (stream or after))
    return Part(found, names[-1] if len(names) == SUMMED_UP else "")


def _deleted(connection: Connection, stream: str, after: str) -> Part:
    found = sql.deleted(
        connection, stream=stream, before=passed_of(after, 2**31 - 1), most=MOST + 1
    )
    return Part(found[:MOST], str(found[MOST - 1].folder) if len(found) > MOST else "")


def _columns(connection: Connection, stream: str, after: str) -> Part:
    return Part(sql.columns(connection, stream=stream, most=MOST_COLUMNS))


def _calendar(connection: Connection, stream: str, after: str) -> Part:
    try:
        before = date.fromisoformat(after) if after else date.max - timedelta(days=1)
    except ValueError:
        raise not_a_page(after) from None
    if before < date.min + timedelta(days=DAYS):
        raise not_a_page(after)
    found = sql.calendar(connection, stream=stream, before=before, days=DAYS)
    return Part(found, found[-1].day.isoformat() if found else "")


CORE = (
    Table(
        "alerts", "Alerts",
        "Subscribers that have timed out, that lost events in the last week, or whose events "
        "retention will soon truncate.",
        "Nobody has to look at anything.", _alerts,
    ),
    Table(
        "disk", "Disk",
        "What takes how much space, and what frees it. The sizes of Parquet outputs and of open "
        "appends are not known.",
        "Nothing takes space.", _disk,
    ),
    Table(
        "deleted", "Deleted streams",
        "What is left of streams that were deleted: who did it, and when.",
        "No stream was deleted.", _deleted,
    ),
    Table(
        "columns", "Columns",
        "The columns that the stream has or had: when they were added, renamed, widened and "
        "dropped, and who names them.",
        "The first append says which columns it has.", _columns, of_stream=True,
    ),
    Table(
        "calendar", "Calendar",
        "Days of the stream by hours, by event time if it has one, else by when it was appended. "
        "An hour that is complete without an event is missing; a task that should have appended "
        "and has not is counted as failed.",
        "There is no day yet.", _calendar, of_stream=True,
    ),
)  # fmt: skip
