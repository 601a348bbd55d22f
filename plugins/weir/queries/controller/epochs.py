"""Epochs: which segments tile the key space, and the step from one epoch to the next. Made by `make queries` from sql/queries/controller/epochs.sql."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from weir.model.segment import Segment

ACTIVE_SEGMENTS = text(
    """SELECT t.segment_id, s.key_low, s.key_high
FROM segment_tail t JOIN segment s USING (stream_id, segment_id)
WHERE t.stream_id = :stream_id ORDER BY s.key_low"""
)


def active_segments(connection: Connection, *, stream_id: int) -> list[Segment]:
    """Return the segments of a stream's current epoch, by key."""
    result = connection.execute(ACTIVE_SEGMENTS, {"stream_id": stream_id})
    return [Segment._make(row) for row in result]


SEGMENTS_AT = text(
    """SELECT segment_id, key_low, key_high FROM active_segments_at(:stream_id, :epoch) ORDER BY key_low"""
)


def segments_at(connection: Connection, *, stream_id: int, epoch: int) -> list[Segment]:
    """Return the segments that tiled [0, 1) in an epoch, by key (semantics 8.3)."""
    result = connection.execute(SEGMENTS_AT, {"stream_id": stream_id, "epoch": epoch})
    return [Segment._make(row) for row in result]


TICK = text(
    """UPDATE stream SET last_clock = greatest(last_clock + 1, now_clock())
WHERE stream_id = :stream_id RETURNING last_clock"""
)


def tick(connection: Connection, *, stream_id: int) -> int:
    """Issue the next clock of a locked stream and return it, in microseconds (semantics 16.1)."""
    result = connection.execute(TICK, {"stream_id": stream_id})
    value: int = result.scalar_one()
    return value


CLOSE = text("""SELECT close_streams(CAST(:stream_ids AS bigint[]), :clock)""")


def close(connection: Connection, *, stream_ids: Sequence[int], clock: int) -> None:
    """Close a time of locked streams: no later commit gets a clock at or before `clock` (semantics 8.4). Refuses a future time (InvalidInput)."""
    result = connection.execute(CLOSE, {"stream_ids": list(stream_ids), "clock": clock})
    result.close()


NEXT_EPOCH = text(
    """WITH gone AS (
    DELETE FROM segment_tail WHERE stream_id = :stream_id AND segment_id = ANY(:seal)
    RETURNING segment_id, tail_offset, tail_bytes
), sealed AS (
    UPDATE segment s
    SET sealed_epoch = :epoch, sealed_clock = :clock, events = g.tail_offset, bytes = g.tail_bytes
    FROM gone g WHERE s.stream_id = :stream_id AND s.segment_id = g.segment_id
), made AS (
    INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high)
    SELECT :stream_id, :stream, * FROM unnest(CAST(:ids AS bigint[]),
        CAST(:lows AS double precision[]), CAST(:highs AS double precision[]))
    RETURNING segment_id
), tails AS (
    INSERT INTO segment_tail (stream_id, segment_id) SELECT :stream_id, segment_id FROM made
), moved AS (
    INSERT INTO capture_queue (stream_id) VALUES (:stream_id)
), entered AS (
    INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at, splits, merges,
                       sealed_events, sealed_bytes, cause, reason, request_id)
    SELECT :stream_id, p.stream_name, :epoch, :reference_epoch, :clock,
           p.splits + :splits, p.merges + :merges,
           p.sealed_events + (SELECT coalesce(sum(tail_offset), 0) FROM gone),
           p.sealed_bytes + (SELECT coalesce(sum(tail_bytes), 0) FROM gone),
           :cause, :reason, :request_id
    FROM epoch p WHERE p.stream_id = :stream_id AND p.epoch = :epoch - 1
)
UPDATE stream SET current_epoch = :epoch, next_segment_number = :next_segment_number
WHERE stream_id = :stream_id"""
)


def next_epoch(
    connection: Connection,
    *,
    stream_id: int,
    seal: Sequence[int],
    epoch: int,
    clock: int,
    stream: str,
    ids: Sequence[int],
    lows: Sequence[float],
    highs: Sequence[float],
    reference_epoch: int,
    splits: int,
    merges: int,
    cause: str,
    reason: str,
    request_id: str,
    next_segment_number: int,
) -> None:
    """Seal segments at their tails, create others, and make `epoch`, the current one plus 1, current."""
    result = connection.execute(
        NEXT_EPOCH,
        {
            "stream_id": stream_id,
            "seal": list(seal),
            "epoch": epoch,
            "clock": clock,
            "stream": stream,
            "ids": list(ids),
            "lows": list(lows),
            "highs": list(highs),
            "reference_epoch": reference_epoch,
            "splits": splits,
            "merges": merges,
            "cause": cause,
            "reason": reason,
            "request_id": request_id,
            "next_segment_number": next_segment_number,
        },
    )
    result.close()
