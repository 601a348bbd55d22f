"""Where copies of a stream's events are. Made by `make queries` from sql/annex/erasure/queries/copies.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

OWN = text("""SELECT stream_name, routing_key FROM stream WHERE stream_id = :stream_id""")


class Own(NamedTuple):
    """A row of `own`."""

    stream_name: str
    routing_key: str


def own(connection: Connection, *, stream_id: int) -> Own:
    """Return the name and the routing key of a stream."""
    result = connection.execute(OWN, {"stream_id": stream_id})
    row = result.one()
    return Own._make(row)


MADE = text(
    """SELECT s.stream_id, s.stream_name, s.routing_key, NULL AS subject
FROM stream s JOIN stream o ON s.stream_name = o.stream_name || '.rejected'
WHERE o.stream_id = :stream_id AND s.state <> 'deleted'
UNION
SELECT s.stream_id, s.stream_name, s.routing_key, nullif(g.subject, '')
FROM placement p LEFT JOIN reader_group g USING (group_id) CROSS JOIN stream s
WHERE p.stream_id = :stream_id AND p.number = 1 AND s.state <> 'deleted' AND EXISTS (
    SELECT FROM transaction t WHERE t.stream_name = s.stream_name
    AND t.writer_id = 'group ' || p.group_name
    AND starts_with(t.batch_id, p.group_id || '.') AND t.state = 'committed')"""
)


class Made(NamedTuple):
    """A row of `made`."""

    stream_id: int
    stream_name: str
    routing_key: str
    subject: str | None


def made(connection: Connection, *, stream_id: int) -> list[Made]:
    """Return the streams made of one, each with the column that has the keys there as its group declares it. By the writers: batches are pruned, and groups are deleted or read other streams; where they were put, and the transactions of what can be read, are kept."""
    result = connection.execute(MADE, {"stream_id": stream_id})
    return [Made._make(row) for row in result]


PINNED = text(
    """SELECT DISTINCT g.name FROM reader_group_pin p JOIN reader_group g USING (group_id)
JOIN reader_group_stream gs USING (group_id) WHERE gs.stream_id = ANY(:streams) ORDER BY 1"""
)


def pinned(connection: Connection, *, streams: Sequence[int]) -> list[str]:
    """Return the groups of some streams that have pins."""
    result = connection.execute(PINNED, {"streams": list(streams)})
    return [row[0] for row in result]


DELETED_GROUPS = text(
    """SELECT DISTINCT p.group_name FROM placement p
WHERE p.stream_id = ANY(:streams) AND p.number = 1 AND p.group_name NOT LIKE '%/%'
    AND NOT EXISTS (SELECT FROM reader_group g WHERE g.group_id = p.group_id)
    AND EXISTS (SELECT FROM delivered_range d
        WHERE d.group_id = p.group_id AND d.stream_id = p.stream_id) ORDER BY 1"""
)


def deleted_groups(connection: Connection, *, streams: Sequence[int]) -> list[str]:
    """Return the groups that have read some streams and are deleted. Those of adjunct stores write to these only."""
    result = connection.execute(DELETED_GROUPS, {"streams": list(streams)})
    return [row[0] for row in result]


UNSEEN = text(
    """SELECT g.name FROM reader_group g
WHERE strpos(g.name, '/') = 0 AND EXISTS (
        SELECT FROM placement p JOIN delivered_range d USING (group_id, stream_id)
        WHERE p.group_id = g.group_id AND p.stream_id = ANY(:streams))
    AND NOT EXISTS (SELECT FROM parquet_output o WHERE o.group_id = g.group_id)
    AND NOT EXISTS (SELECT FROM transaction t WHERE t.writer_id = 'group ' || g.name
        AND t.stream_name IN (SELECT s.stream_name FROM stream s WHERE s.state <> 'deleted'))
    AND NOT EXISTS (SELECT FROM reader_batch b WHERE b.group_id = g.group_id
        AND b.state = 'committed' AND jsonb_array_length(b.outputs) > 0)
ORDER BY 1"""
)


def unseen(connection: Connection, *, streams: Sequence[int]) -> list[str]:
    """Return the groups whose batches name nothing that was written: neither here, nor in a list of files."""
    result = connection.execute(UNSEEN, {"streams": list(streams)})
    return [row[0] for row in result]


INPUTS = text(
    """SELECT s.stream_name, count(*) AS files, min(i.path) AS first
FROM transaction_input i JOIN stream s USING (stream_id)
WHERE i.stream_id = ANY(:streams) GROUP BY 1 ORDER BY 1"""
)


class Inputs(NamedTuple):
    """A row of `inputs`."""

    stream_name: str
    files: int
    first: str


def inputs(connection: Connection, *, streams: Sequence[int]) -> list[Inputs]:
    """Return the streams with events of input files, how many, and an example."""
    result = connection.execute(INPUTS, {"streams": list(streams)})
    return [Inputs._make(row) for row in result]


DELETED_STREAMS = text("""SELECT count(*) FROM stream WHERE state = 'deleted'""")


def deleted_streams(connection: Connection) -> int:
    """Return how many streams are deleted."""
    result = connection.execute(DELETED_STREAMS)
    value: int = result.scalar_one()
    return value


SEES_ALL = text("""SELECT sees_all(current_user)""")


def sees_all(connection: Connection) -> bool:
    """Return whether this login sees what all teams have."""
    result = connection.execute(SEES_ALL)
    value: bool = result.scalar_one()
    return value
