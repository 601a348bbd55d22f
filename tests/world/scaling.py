"""What the tests of scaling by load do to a stream: load of any rate, and time that passes."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.controller.operations import equal_ranges
from tests.world.streams import Lane, run, unique
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.model.names import StreamName
from weir.model.segment import parse_segment_name
from weir.model.split_points import Found, HotSegment
from weir.scaling.run import scale_by_load

BY_RATE: dict[str, Any] = {"scaling": "event_rate", "target_rate": 10, "scale_factor": 4}


def made(database: Database, segments: int = 1, **more: Any) -> Lane:
    """Return a stream that scales by load, to 10 events per second and segment."""
    return Lane.made(database, segments=segments, **{**BY_RATE, **more})


def by_rate(lane: Lane, **more: Any) -> None:
    """Let a stream scale by load, like the one that `made` returns."""
    update_stream(lane.database, lane.name, {**BY_RATE, **more}, request_id=unique("update"))


def pass_time(lane: Lane, seconds: float) -> None:
    """Set back all that has happened to a stream by so many seconds."""
    run(
        lane.database,
        """WITH i AS (UPDATE time_index SET clock = clock - :by WHERE stream_id = :s),
        e AS (UPDATE epoch SET created_at = created_at - :by WHERE stream_id = :s),
        g AS (UPDATE segment SET sealed_clock = sealed_clock - :by WHERE stream_id = :s),
        v AS (UPDATE scale_evaluation SET clock = clock - :by,
                  next_at = next_at - :by * interval '1 microsecond' WHERE stream_id = :s)
        UPDATE stream SET last_clock = last_clock - :by WHERE stream_id = :s""",
        by=round(seconds * 1_000_000), s=lane.stream_id,
    )  # fmt: skip


def write(lane: Lane, rates: Mapping[str, float], *, minutes: int = 30, every: int = 60) -> None:
    """Append events at a rate per second and segment, committed every `every` seconds while time
    passes, the last time now."""
    count = minutes * 60 // every
    pass_time(lane, count * every)
    written = {name: round(rate * every) for name, rate in rates.items() if rate}
    run(
        lane.database,
        """WITH w AS (
            SELECT * FROM unnest(CAST(:ids AS bigint[]), CAST(:amounts AS bigint[]))
                AS u (segment_id, amount)
        ), i AS (
            INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events,
                                    start_byte, bytes, clock, transaction_number)
            SELECT :s, :name, t.segment_id, t.tail_offset + k * w.amount, w.amount,
                   t.tail_bytes + k * 10 * w.amount, 10 * w.amount,
                   n.now - (:count - 1 - k) * CAST(:every AS bigint) * 1000000, 1
            FROM w JOIN segment_tail t ON t.stream_id = :s AND t.segment_id = w.segment_id
            CROSS JOIN generate_series(0, :count - 1) AS k
            CROSS JOIN (SELECT time_clock(now()) AS now) n
        ), t AS (
            UPDATE segment_tail t SET tail_offset = tail_offset + :count * w.amount,
                tail_bytes = tail_bytes + :count * 10 * w.amount
            FROM w WHERE t.stream_id = :s AND t.segment_id = w.segment_id
        )
        UPDATE stream SET last_clock = time_clock(now()) WHERE stream_id = :s""",
        s=lane.stream_id, name=str(lane.name), count=count, every=every,
        ids=[parse_segment_name(name) for name in written], amounts=list(written.values()),
    )  # fmt: skip


def never(hot: Sequence[HotSegment]) -> Found:
    """Fail, because nobody may ask for split points."""
    raise AssertionError(f"split points were asked for: {hot}")


def scaled(
    lane: Lane,
    find_points: Any = equal_ranges,
    *,
    request_id: str | None = None,
    dry_run: bool = False,
) -> Mapping[str, Any]:
    """Run scaling for one stream, and return the report."""
    names: list[StreamName] = [lane.name]
    [report] = scale_by_load(
        lane.database, find_points, names=names, dry_run=dry_run,
        request_id=request_id or unique("run"),
    )  # fmt: skip
    return report
