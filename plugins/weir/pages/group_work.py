"""What a reader group has done and what it costs: its newest batches over time, up to which event
time it has read everything, and what it reads, writes and makes streams keep."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.errors import NotFound
from weir.history.over_time import Unread, unread_over_time
from weir.pages.answering import Asked, Tagged, rows

router = APIRouter(route_class=Tagged, tags=["reader groups"])

_Query = Callable[[str], list[dict[str, Any]]]  # of a statement
_Answer = TypeVar("_Answer")

NEWEST = 200  # batches
COMMITS = 20_000  # and a tenth as many batches: how far back unread events are shown
OUTPUTS = 20  # Parquet folders

_FOUND = "SELECT 1 FROM weir.reader_groups WHERE reader_group = :group"
_BATCHES = f"""SELECT opened_at, extract(epoch FROM ended_at - opened_at)::float8 AS seconds,
    events, state, attempt, rejected
FROM weir.batches WHERE reader_group = :group AND ended_at IS NOT NULL
ORDER BY batch_id DESC LIMIT {NEWEST}"""  # noqa: S608 - a constant
# As of all of them one would be added up after the other: hundreds of thousands.
_SINCE = f"""SELECT time_clock(max(f.at)) FROM (
    SELECT (SELECT b.opened_at FROM reader_batch b WHERE b.group_id = g.group_id
            ORDER BY b.batch_id DESC OFFSET {COMMITS // 10} LIMIT 1) AS at
    FROM reader_group g WHERE g.name = :group
    UNION ALL
    SELECT (SELECT t.opened_at FROM transaction t WHERE t.stream_id = s.stream_id
                AND t.transaction_number >= s.next_transaction_number - {COMMITS}
            ORDER BY t.transaction_number LIMIT 1)
    FROM reader_group g JOIN reader_group_stream USING (group_id) JOIN stream s USING (stream_id)
    WHERE g.name = :group AND s.next_transaction_number > {COMMITS}) f"""  # noqa: S608 - constants
_COMPLETE = """SELECT stream, complete_until, newest_event_time, stream_complete_until
FROM weir.group_completeness WHERE reader_group = :group ORDER BY stream"""
_OUTPUTS = f"""SELECT batch_id AS batch, committed_at, output, path FROM weir.parquet_outputs
WHERE reader_group = :group ORDER BY batch_id DESC, output LIMIT {OUTPUTS}"""  # noqa: S608
_COST = """SELECT function, since, batches, attempts, events, seconds, read_bytes, written_bytes,
    kept_bytes, kept_alone_bytes
FROM weir.cost WHERE reader_group = :group ORDER BY since DESC NULLS LAST"""


class Ended(BaseModel):
    """A batch that has ended. `attempt`: the last of it; `rejected`: events."""

    opened_at: datetime
    seconds: float
    events: int | None
    state: str
    attempt: int
    rejected: int | None


class Complete(BaseModel):
    """Up to which event time the group has read everything of a stream; the stream is complete to
    `stream_complete_until`."""

    stream: str
    complete_until: datetime | None
    newest_event_time: datetime | None
    stream_complete_until: datetime | None


class Folder(BaseModel):
    """A Parquet folder that a batch has written."""

    batch: int
    committed_at: datetime | None
    output: str
    path: str


class Work(BaseModel):
    """What was unread over time, as far as batches are recorded and not very many, of the streams
    with most; the newest batches that have ended, the oldest first; completeness; the newest
    folders."""

    unread: list[Unread]
    batches: list[Ended]
    completeness: list[Complete]
    folders: list[Folder]


class Cost(BaseModel):
    """What the batches with a function took, since `since`; and what the group makes streams keep,
    of which `kept_alone_bytes` for nobody else."""

    function: str | None
    since: datetime | None
    batches: int | None
    attempts: int | None
    events: int | None
    seconds: float | None
    read_bytes: int | None
    written_bytes: int | None
    kept_bytes: int
    kept_alone_bytes: int


class Costs(BaseModel):
    """What a group costs, by function."""

    costs: list[Cost]


@router.get("/groups/{name}/work")
def show_work(asked: Asked, name: str) -> Work:
    """Return what a group has done lately. Seven statements, and two for each of eight streams at
    most."""

    def read(connection: Connection, of: _Query) -> Work:
        [(since,)] = rows(connection, _SINCE, group=name)
        return Work(
            unread=unread_over_time(connection, name, since),
            batches=[Ended(**row) for row in reversed(of(_BATCHES))],
            completeness=[Complete(**row) for row in of(_COMPLETE)],
            folders=[Folder(**row) for row in of(_OUTPUTS)],
        )

    return _of_group(asked, name, read)


@router.get("/groups/{name}/cost")
def show_cost(asked: Asked, name: str) -> Costs:
    """Return what a group costs. It adds up all its batches that are not pruned. Two statements."""
    return _of_group(asked, name, lambda _, of: Costs(costs=[Cost(**row) for row in of(_COST)]))


def _of_group(asked: Asked, name: str, read: Callable[[Connection, _Query], _Answer]) -> _Answer:
    def work(connection: Connection) -> _Answer:
        def of(statement: str) -> list[dict[str, Any]]:
            return [dict(row._mapping) for row in rows(connection, statement, group=name)]

        if not of(_FOUND):
            raise NotFound("group_not_found", f"there is no reader group {name}.")
        return read(connection, of)

    return asked.snapshot(work)
