"""What a reader group has done and what it costs. Made by `make queries` from sql/queries/pages/group_work.sql."""

from datetime import datetime

from pydantic import BaseModel
from sqlalchemy import Connection, text

IS_GROUP = text(
    """SELECT EXISTS (SELECT FROM weir.reader_groups WHERE reader_group = :group) AS there"""
)


def is_group(connection: Connection, *, group: str) -> bool:
    """Return whether there is a group."""
    result = connection.execute(IS_GROUP, {"group": group})
    value: bool = result.scalar_one()
    return value


BATCHES = text(
    """SELECT opened_at, seconds, events, state, attempt, rejected FROM (
    SELECT batch_id, opened_at, extract(epoch FROM ended_at - opened_at)::float8 AS seconds,
        events, state, attempt, rejected
    FROM weir.batches WHERE reader_group = :group AND ended_at IS NOT NULL
    ORDER BY batch_id DESC LIMIT :most) b
ORDER BY batch_id"""
)


class Ended(BaseModel):
    """A batch that has ended. `attempt`: the last of it; `rejected`: events."""

    opened_at: datetime
    seconds: float
    events: int | None
    state: str
    attempt: int
    rejected: int | None


def batches(connection: Connection, *, group: str, most: int) -> list[Ended]:
    """Return the newest batches that have ended, the oldest of them first."""
    result = connection.execute(BATCHES, {"group": group, "most": most})
    return [Ended(**row._mapping) for row in result]


SINCE = text(
    """SELECT time_clock(max(f.at)) AS since FROM (
    SELECT (SELECT b.opened_at FROM reader_batch b WHERE b.group_id = g.group_id
            ORDER BY b.batch_id DESC OFFSET CAST(:commits AS bigint) / 10 LIMIT 1) AS at
    FROM reader_group g WHERE g.name = :group
    UNION ALL
    SELECT (SELECT t.opened_at FROM transaction t WHERE t.stream_id = s.stream_id
                AND t.transaction_number >= s.next_transaction_number - :commits
            ORDER BY t.transaction_number LIMIT 1)
    FROM reader_group g JOIN reader_group_stream USING (group_id) JOIN stream s USING (stream_id)
    WHERE g.name = :group AND s.next_transaction_number > :commits) f"""
)


def since(connection: Connection, *, commits: int, group: str) -> int | None:
    """Return from which time on unread events are counted back. As of all of them one would be added up after the other: hundreds of thousands."""
    result = connection.execute(SINCE, {"commits": commits, "group": group})
    value: int | None = result.scalar_one()
    return value


COMPLETE = text(
    """SELECT stream, complete_until, newest_event_time, stream_complete_until
FROM weir.group_completeness WHERE reader_group = :group ORDER BY stream"""
)


class Complete(BaseModel):
    """Up to which event time the group has read everything of a stream; the stream is complete to `stream_complete_until`."""

    stream: str
    complete_until: datetime | None
    newest_event_time: datetime | None
    stream_complete_until: datetime | None


def complete(connection: Connection, *, group: str) -> list[Complete]:
    """Return up to which event times a group has read everything."""
    result = connection.execute(COMPLETE, {"group": group})
    return [Complete(**row._mapping) for row in result]


FOLDERS = text(
    """SELECT batch_id AS batch, committed_at, output, path FROM weir.parquet_outputs
WHERE reader_group = :group ORDER BY batch_id DESC, output LIMIT :most"""
)


class Folder(BaseModel):
    """A Parquet folder that a batch has written."""

    batch: int
    committed_at: datetime | None
    output: str
    path: str


def folders(connection: Connection, *, group: str, most: int) -> list[Folder]:
    """Return the newest Parquet folders."""
    result = connection.execute(FOLDERS, {"group": group, "most": most})
    return [Folder(**row._mapping) for row in result]


COST = text(
    """SELECT function, since, batches, attempts, events, seconds, read_bytes, written_bytes,
    kept_bytes, kept_alone_bytes
FROM weir.cost WHERE reader_group = :group ORDER BY since DESC NULLS LAST"""
)


class Cost(BaseModel):
    """What the batches with a function took, since `since`; and what the group makes streams keep, of which `kept_alone_bytes` for nobody else."""

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


def cost(connection: Connection, *, group: str) -> list[Cost]:
    """Return what a group costs, by function."""
    result = connection.execute(COST, {"group": group})
    return [Cost(**row._mapping) for row in result]
