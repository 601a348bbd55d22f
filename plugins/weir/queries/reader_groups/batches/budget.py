"""What fits into a budget. Made by `make queries` from sql/queries/reader_groups/batches/budget.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

FIT = text(
    """SELECT stream_id IS NULL AS all_fit, coalesce(stream_id, 0) AS stream_id,
    coalesce(segment_id, 0) AS segment_id, coalesce(past, 0) AS past, bytes, clock
FROM what_fits(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
CAST(:starts AS bigint[]), CAST(:ends AS bigint[]), :events, :bytes, :files, :unit)"""
)


class FitRow(NamedTuple):
    """A row of `fit`."""

    all_fit: bool
    stream_id: int
    segment_id: int
    past: int
    bytes: int
    clock: int | None


def fit(
    connection: Connection,
    *,
    streams: Sequence[int],
    segments: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    events: int,
    bytes: int,
    files: int,
    unit: str,
) -> list[FitRow]:
    """Return how far segments may be read within a budget; one row without a stream if all fits."""
    result = connection.execute(
        FIT,
        {
            "streams": list(streams),
            "segments": list(segments),
            "starts": list(starts),
            "ends": list(ends),
            "events": events,
            "bytes": bytes,
            "files": files,
            "unit": unit,
        },
    )
    return [FitRow._make(row) for row in result]
