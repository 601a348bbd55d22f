"""What a reader group has done and what it costs: its newest batches over time, up to which event
time it has read everything, and what it reads, writes and makes streams keep."""

from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.errors import NotFound
from weir.pages.answering import Asked, Tagged
from weir.pages.over_time import Unread, unread_over_time
from weir.queries.pages import group_work as sql

router = APIRouter(route_class=Tagged, tags=["reader groups"])

NEWEST = 200  # batches
COMMITS = 20_000  # and a tenth as many batches: how far back unread events are shown
OUTPUTS = 20  # Parquet folders


class Work(BaseModel):
    """What was unread over time, as far as batches are recorded and not very many, of the streams
    with most; the newest batches that have ended, the oldest first; completeness; the newest
    folders."""

    unread: list[Unread]
    batches: list[sql.Ended]
    completeness: list[sql.Complete]
    folders: list[sql.Folder]


class Costs(BaseModel):
    """What a group costs, by function."""

    costs: list[sql.Cost]


@router.get("/groups/{name}/work")
def show_work(asked: Asked, name: str) -> Work:
    """Return what a group has done lately. Seven statements, and two for each of eight streams at
    most."""

    def read(c: Connection) -> Work:
        _check_group(c, name)
        return Work(
            unread=unread_over_time(c, name, sql.since(c, group=name, commits=COMMITS)),
            batches=sql.batches(c, group=name, most=NEWEST),
            completeness=sql.complete(c, group=name),
            folders=sql.folders(c, group=name, most=OUTPUTS),
        )

    return asked.snapshot(read)


@router.get("/groups/{name}/cost")
def show_cost(asked: Asked, name: str) -> Costs:
    """Return what a group costs. It adds up all its batches that are not pruned. Two statements."""

    def read(c: Connection) -> Costs:
        _check_group(c, name)
        return Costs(costs=sql.cost(c, group=name))

    return asked.snapshot(read)


def _check_group(connection: Connection, name: str) -> None:
    if not sql.is_group(connection, group=name):
        raise NotFound("group_not_found", f"there is no reader group {name}.")
