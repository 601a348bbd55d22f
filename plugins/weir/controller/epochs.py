"""Epochs: which segments tile the key space, and the step from one epoch to the next.

A scale and a roll both use `next_epoch`, which is one statement for any number of segments.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from weir.controller.locks import LockedStream
from weir.model.segment import Segment


@dataclass(frozen=True)
class Tail:
    """An active segment, the offset of its next event, and the bytes before that offset."""

    segment: Segment
    offset: int
    bytes: int


def active_segments(connection: Connection, stream_id: int) -> list[Tail]:
    """Return the segments of a stream's current epoch, by key, with their tails."""
    rows = connection.execute(
        text(
            """SELECT t.segment_id, s.key_low, s.key_high, t.tail_offset, t.tail_bytes
            FROM segment_tail t JOIN segment s USING (stream_id, segment_id)
            WHERE t.stream_id = :stream_id ORDER BY s.key_low"""
        ),
        {"stream_id": stream_id},
    )
    return [Tail(Segment(r[0], r[1], r[2]), r[3], r[4]) for r in rows]


def segments_at(connection: Connection, stream_id: int, epoch: int) -> list[Segment]:
    """Return the segments that tiled [0, 1) in an epoch, by key (semantics 8.3)."""
    rows = connection.execute(
        text("SELECT * FROM active_segments_at(:stream_id, :epoch) ORDER BY key_low"),
        {"stream_id": stream_id, "epoch": epoch},
    )
    return [Segment(*row) for row in rows]


def tick(connection: Connection, stream: LockedStream, ticks: int = 1) -> int:
    """Issue `ticks` consecutive clocks of a locked stream and return the first, in microseconds
    (semantics 16.1).
    """
    last = connection.execute(
        text(
            """UPDATE stream SET last_clock =
                greatest(last_clock + 1, now_clock()) + :more
            WHERE stream_id = :stream_id RETURNING last_clock"""
        ),
        {"stream_id": stream.stream_id, "more": ticks - 1},
    ).scalar_one()
    return int(last) - ticks + 1


def close(connection: Connection, streams: Sequence[LockedStream], clock: int) -> None:
    """Close a time of locked streams: no later commit gets a clock at or before `clock` (semantics
    8.4).

    `clock` is in microseconds. Raises InvalidInput for a future time.
    """
    connection.execute(
        text("SELECT close_streams(CAST(:ids AS bigint[]), :clock)"),
        {"ids": [stream.stream_id for stream in streams], "clock": clock},
    )


def next_epoch(
    connection: Connection,
    stream: LockedStream,
    *,
    epoch: int,
    reference_epoch: int,
    clock: int,
    seal: Sequence[int],
    create: Sequence[Segment],
    splits_and_merges: tuple[int, int],
    cause: str,
    reason: str,
    request_id: str,
    next_segment_number: int,
) -> None:
    """Seal segments at their tails, create others, and make `epoch` the current one.

    `epoch` must be the current one plus 1. `seal`: ids. `clock`: the time of the epoch.
    `splits_and_merges`: what this epoch adds to the counts (semantics 6.5). `cause`, `reason` and
    `request_id` are recorded with the epoch.
    """
    connection.execute(
        text(
            """WITH gone AS (
                DELETE FROM segment_tail WHERE stream_id = :stream_id AND segment_id = ANY(:seal)
                RETURNING segment_id, tail_offset, tail_bytes
            ), sealed AS (
                UPDATE segment s
                SET sealed_epoch = :epoch, sealed_clock = :clock, events = g.tail_offset,
                    bytes = g.tail_bytes
                FROM gone g WHERE s.stream_id = :stream_id AND s.segment_id = g.segment_id
            ), made AS (
                INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high)
                SELECT :stream_id, :stream, * FROM unnest(CAST(:ids AS bigint[]),
                    CAST(:lows AS double precision[]), CAST(:highs AS double precision[]))
                RETURNING segment_id
            ), tails AS (
                INSERT INTO segment_tail (stream_id, segment_id)
                SELECT :stream_id, segment_id FROM made
            ), moved AS (
                INSERT INTO capture_queue (stream_id) VALUES (:stream_id)
            ), entered AS (
                INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at,
                                   splits, merges, sealed_events, sealed_bytes, cause, reason,
                                   request_id)
                SELECT :stream_id, p.stream_name, :epoch, :reference_epoch, :clock,
                       p.splits + :splits, p.merges + :merges,
                       p.sealed_events + (SELECT coalesce(sum(tail_offset), 0) FROM gone),
                       p.sealed_bytes + (SELECT coalesce(sum(tail_bytes), 0) FROM gone),
                       :cause, :reason, :request_id
                FROM epoch p WHERE p.stream_id = :stream_id AND p.epoch = :epoch - 1
            )
            UPDATE stream SET current_epoch = :epoch, next_segment_number = :next_segment_number
            WHERE stream_id = :stream_id"""
        ),
        {
            "stream_id": stream.stream_id,
            "stream": str(stream.name),
            "epoch": epoch,
            "reference_epoch": reference_epoch,
            "clock": clock,
            "seal": list(seal),
            "ids": [s.segment_id for s in create],
            "lows": [s.key_low for s in create],
            "highs": [s.key_high for s in create],
            "splits": splits_and_merges[0],
            "merges": splits_and_merges[1],
            "cause": cause,
            "reason": reason,
            "request_id": request_id,
            "next_segment_number": next_segment_number,
        },
    )
