"""Release the events of a subscriber by hand. Made by `make queries` from sql/queries/retention/release.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

RELEASED = text(
    """SELECT stream_id, released_cut FROM reader_group_stream
WHERE group_id = :group_id AND stream_id = ANY(:ids)"""
)


class Released(NamedTuple):
    """A row of `released`."""

    stream_id: int
    released_cut: dict[str, int | str]


def released(connection: Connection, *, group_id: int, ids: Sequence[int]) -> list[Released]:
    """Return what a group has released of streams."""
    result = connection.execute(RELEASED, {"group_id": group_id, "ids": list(ids)})
    return [Released._make(row) for row in result]


RELEASE = text(
    """UPDATE reader_group_stream gs SET released_cut = c.cut, released_at = clock_timestamp()
FROM jsonb_to_recordset(CAST(:cuts AS jsonb)) AS c (stream bigint, cut jsonb)
WHERE gs.group_id = :group_id AND gs.stream_id = c.stream"""
)


def release(connection: Connection, *, cuts: str, group_id: int) -> None:
    """Release cuts of a locked group, given as a list of `stream` and `cut`."""
    result = connection.execute(RELEASE, {"cuts": cuts, "group_id": group_id})
    result.close()


ALERTS = text(
    """SELECT message FROM retention_alerts WHERE stream = ANY(:streams) ORDER BY at, message"""
)


def alerts(connection: Connection, *, streams: Sequence[str]) -> list[str]:
    """Return the messages of alerts about streams, by time."""
    result = connection.execute(ALERTS, {"streams": list(streams)})
    return [row[0] for row in result]
