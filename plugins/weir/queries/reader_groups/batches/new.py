"""Batches that are opened, and segments that are given to readers. Made by `make queries` from sql/queries/reader_groups/batches/new.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

OPEN = text(
    """WITH counted AS (
    UPDATE reader_group SET next_batch = next_batch + 1 WHERE group_id = :group_id
)
INSERT INTO reader_batch (group_id, group_name, batch_id, reader_id, token, state,
                          bounds, events, bytes, read_order, readers, up_to, opened_at,
                          complete_until)
SELECT :group_id, :group, :batch_id, :reader_id, :token, 'open', n.bounds,
       :events - holes_of(n.bounds),
       :bytes, :read_order, :readers, :up_to, clock_timestamp(),
       batch_complete_until(:group_id, n.bounds)
FROM (SELECT CAST(:bounds AS jsonb) AS bounds OFFSET 0) n  -- long, so sent once
RETURNING complete_until, events"""
)


class Opened(NamedTuple):
    """A row of `open`."""

    complete_until: int | None
    events: int


def open(
    connection: Connection,
    *,
    group_id: int,
    group: str,
    batch_id: int,
    reader_id: str,
    token: int,
    events: int,
    bytes: int,
    read_order: str,
    readers: int,
    up_to: int | None,
    bounds: str,
) -> Opened:
    """Record a batch, and return how many events it has without those that were erased."""
    result = connection.execute(
        OPEN,
        {
            "group_id": group_id,
            "group": group,
            "batch_id": batch_id,
            "reader_id": reader_id,
            "token": token,
            "events": events,
            "bytes": bytes,
            "read_order": read_order,
            "readers": readers,
            "up_to": up_to,
            "bounds": bounds,
        },
    )
    row = result.one()
    return Opened._make(row)


GIVE = text(
    """UPDATE reader_group_segment p SET reader_id = m.reader_id,
    state = CASE WHEN m.reader_id IS NULL THEN 'unassigned' ELSE 'assigned' END
FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
            CAST(:readers AS text[])) AS m (stream_id, segment_id, reader_id)
WHERE p.group_id = :group_id AND p.stream_id = m.stream_id
  AND p.segment_id = m.segment_id"""
)


def give(
    connection: Connection,
    *,
    streams: Sequence[int],
    segments: Sequence[int],
    readers: Sequence[str | None],
    group_id: int,
) -> None:
    """Assign segments to readers, or free them."""
    result = connection.execute(
        GIVE,
        {
            "streams": list(streams),
            "segments": list(segments),
            "readers": list(readers),
            "group_id": group_id,
        },
    )
    result.close()
