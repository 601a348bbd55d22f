"""What changed over time: what streams kept, and what groups had not read. Made by `make queries` from sql/queries/pages/over_time.sql."""

from pydantic import BaseModel
from sqlalchemy import Connection, text

CAME = text(
    """SELECT max(clock) AS clock, sum(events)::bigint AS events, sum(bytes)::bigint AS bytes
FROM commits_between(:id, CAST(:begin AS bigint) + 1, 9223372036854775807)
GROUP BY (clock - :begin) / :width ORDER BY 1"""
)


class Came(BaseModel):
    """A row of `came`."""

    clock: int
    events: int
    bytes: int


def came(connection: Connection, *, id: int, begin: int, width: int) -> list[Came]:
    """Return what was appended to a stream after a time, what came close to each other as one."""
    result = connection.execute(CAME, {"id": id, "begin": begin, "width": width})
    return [Came(**row._mapping) for row in result]


TRUNCATED = text(
    """SELECT time_clock(truncated_at) AS clock, bytes AS amount FROM weir.truncations
WHERE stream = :stream AND truncated_at > clock_time(:begin) ORDER BY 1"""
)


class Change(BaseModel):
    """A row of `truncated`."""

    clock: int
    amount: int


def truncated(connection: Connection, *, stream: str, begin: int) -> list[Change]:
    """Return the bytes that were truncated after a time, each time."""
    result = connection.execute(TRUNCATED, {"stream": stream, "begin": begin})
    return [Change(**row._mapping) for row in result]


RETAINED = text(
    """SELECT s.stream_id, s.bytes_retained AS kept,
    (SELECT n.bytes FROM weir.next_retention n WHERE n.stream = s.stream) AS next_time
FROM weir.streams s WHERE s.stream = :stream"""
)


class Retained(BaseModel):
    """A row of `retained`."""

    stream_id: int
    kept: int
    next_time: int | None


def retained(connection: Connection, *, stream: str) -> Retained:
    """Return the bytes that a stream keeps, and those of them that the next retention truncates."""
    result = connection.execute(RETAINED, {"stream": stream})
    row = result.one()
    return Retained(**row._mapping)


KNOWN_GROUP = text(
    """SELECT g.group_id, now_clock() AS now, greatest(time_clock(g.created_at), (
    SELECT CASE WHEN b.batch_id > 1 THEN time_clock(b.opened_at) END FROM reader_batch b
    WHERE b.group_id = g.group_id ORDER BY b.batch_id LIMIT 1), (
    SELECT time_clock(max(p.placed_at)) FROM placement p WHERE p.group_id = g.group_id AND p.cause = 'reset')) AS known
FROM reader_group g WHERE g.name = :name"""
)


class KnownGroup(BaseModel):
    """A row of `known_group`."""

    group_id: int
    now: int
    known: int


def known_group(connection: Connection, *, name: str) -> KnownGroup | None:
    """Return a group, and since when it is known what it had not read: old batches are pruned, and what was before a reset is not counted back from what is unread now."""
    result = connection.execute(KNOWN_GROUP, {"name": name})
    row = result.one_or_none()
    return None if row is None else KnownGroup(**row._mapping)


MOST_UNREAD = text(
    """SELECT stream, stream_id, unread_events FROM weir.lag WHERE reader_group = :name
ORDER BY unread_events DESC, stream LIMIT :most"""
)


class MostUnread(BaseModel):
    """A row of `most_unread`."""

    stream: str
    stream_id: int
    unread_events: int


def most_unread(connection: Connection, *, name: str, most: int) -> list[MostUnread]:
    """Return what a group has not read now, of the streams with most."""
    result = connection.execute(MOST_UNREAD, {"name": name, "most": most})
    return [MostUnread(**row._mapping) for row in result]


READ = text(
    """SELECT max(time_clock(b.committed_at)) AS clock,
    sum((e ->> 'to')::bigint - (e ->> 'from')::bigint)::bigint AS amount
FROM reader_batch b CROSS JOIN LATERAL jsonb_array_elements(b.bounds) e
WHERE b.group_id = :group_id AND b.state = 'committed' AND b.committed_at > clock_time(:begin)
    AND (e ->> 'stream')::bigint = :id
GROUP BY (time_clock(b.committed_at) - :begin) / :width ORDER BY 1"""
)


def read(connection: Connection, *, group_id: int, begin: int, id: int, width: int) -> list[Change]:
    """Return how many events of a stream a group has read after a time, those that are close as one."""
    result = connection.execute(
        READ, {"group_id": group_id, "begin": begin, "id": id, "width": width}
    )
    return [Change(**row._mapping) for row in result]
