"""Epochs: which segments tile the key space, and the step from one epoch to the next.

A scale and a roll both use `next_epoch`, which is one statement for any number of segments.
"""

from collections.abc import Sequence

from sqlalchemy import Connection

from weir.controller.locks import LockedStream
from weir.model.segment import Segment
from weir.queries.controller import epochs as sql


def close(connection: Connection, streams: Sequence[LockedStream], clock: int) -> None:
    """Close a time of locked streams: no later commit gets a clock at or before `clock` (semantics
    8.4).

    `clock` is in microseconds. Raises InvalidInput for a future time.
    """
    sql.close(connection, stream_ids=[stream.stream_id for stream in streams], clock=clock)


def next_epoch(
    connection: Connection,
    stream: LockedStream,
    *,
    epoch: int,
    reference_epoch: int,
    seal: Sequence[int],
    create: Sequence[Segment],
    splits_and_merges: tuple[int, int],
    cause: str,
    reason: str,
    request_id: str,
    next_segment_number: int,
) -> None:
    """Seal segments at their tails, create others, and make `epoch` the current one.

    `epoch` must be the current one plus 1. `seal`: ids.
    `splits_and_merges`: what this epoch adds to the counts (semantics 6.5). `cause`, `reason` and
    `request_id` are recorded with the epoch.
    """
    sql.next_epoch(
        connection,
        stream_id=stream.stream_id,
        stream=str(stream.name),
        epoch=epoch,
        reference_epoch=reference_epoch,
        clock=sql.tick(connection, stream_id=stream.stream_id),
        seal=list(seal),
        ids=[s.segment_id for s in create],
        lows=[s.key_low for s in create],
        highs=[s.key_high for s in create],
        splits=splits_and_merges[0],
        merges=splits_and_merges[1],
        cause=cause,
        reason=reason,
        request_id=request_id,
        next_segment_number=next_segment_number,
    )
