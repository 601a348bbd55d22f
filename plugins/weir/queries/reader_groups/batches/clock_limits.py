"""Clocks up to which batches read. Made by `make queries` from sql/queries/reader_groups/batches/clock_limits.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

ENDS_AT = text(
    """SELECT w.stream_id, w.segment_id, coalesce((
    SELECT i.start_offset + i.events
    FROM commit_by(w.stream_id, w.segment_id, w.clock) i), 0) AS ends_at
FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
            CAST(:clocks AS bigint[])) AS w (stream_id, segment_id, clock)"""
)


class EndAt(NamedTuple):
    """A row of `ends_at`."""

    stream_id: int
    segment_id: int
    ends_at: int


def ends_at(
    connection: Connection,
    *,
    streams: Sequence[int],
    segments: Sequence[int],
    clocks: Sequence[int],
) -> list[EndAt]:
    """Return the offsets at which segments end at clocks."""
    result = connection.execute(
        ENDS_AT, {"streams": list(streams), "segments": list(segments), "clocks": list(clocks)}
    )
    return [EndAt._make(row) for row in result]


OLDEST_UNREAD = text("""SELECT stream_id, segment_id, clock FROM oldest_unread(:group_id)""")


class OldestUnread(NamedTuple):
    """A row of `oldest_unread`."""

    stream_id: int
    segment_id: int
    clock: int


def oldest_unread(connection: Connection, *, group_id: int) -> list[OldestUnread]:
    """Return the clocks of the oldest unread events of a group, by position."""
    result = connection.execute(OLDEST_UNREAD, {"group_id": group_id})
    return [OldestUnread._make(row) for row in result]


EPOCHS = text(
    """SELECT e.stream_id, e.created_at
FROM unnest(CAST(:streams AS bigint[]), CAST(:epochs AS integer[]))
    AS w (stream_id, epoch)
JOIN epoch e USING (stream_id, epoch)"""
)


class Epoch(NamedTuple):
    """A row of `epochs`."""

    stream_id: int
    created_at: int


def epochs(connection: Connection, *, streams: Sequence[int], epochs: Sequence[int]) -> list[Epoch]:
    """Return when epochs were created."""
    result = connection.execute(EPOCHS, {"streams": list(streams), "epochs": list(epochs)})
    return [Epoch._make(row) for row in result]
