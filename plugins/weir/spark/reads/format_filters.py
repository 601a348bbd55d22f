"""Which files may have rows that Spark's filters keep: others are not opened.

Only the metadata decides: the segment, its key range, offsets, clocks, and event times of commits.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)
from sqlalchemy import Connection

from weir.arrow.event_time import ranges_of
from weir.controller.locks import read_stream
from weir.controller.read_plan import FileSlice
from weir.model.clock import EPOCH
from weir.model.key_space import STEPS, routing_steps
from weir.model.plain_column import plain_column
from weir.spark.reads.format_source import StreamSource


def matching(
    source: StreamSource, slices: Sequence[FileSlice], filters: Sequence[Filter]
) -> list[FileSlice]:
    """Return the slices that may have rows which all filters keep, and of these the rows whose
    offsets may match."""
    stream = source.ask(lambda c: read_stream(c, source.stream))
    types = {field["name"]: field["type"] for field in source.fields}
    settings = stream.configuration
    key, time = plain_column(settings.routing_key), plain_column(settings.event_time or "")
    by_column: dict[str, list[Filter]] = defaultdict(list)
    for one in filters:
        path: tuple[str, ...] = getattr(one, "attribute", ())
        if len(path) == 1:
            by_column[path[0]].append(one)
    kept = list(slices)
    kept = [s for s in kept if _may_be(by_column["_segment"], s.segment_id, s.segment_id)]
    kept = [s for s in kept if _may_be(by_column["_clock"], s.first_clock, s.last_clock)]
    kept = [part for s in kept if (part := _of_offsets(s, by_column["_offset"])) is not None]
    if key and types.get(key) == "string":
        kept = [s for s in kept if _may_have(by_column[key], s)]
    if time and types.get(time) in ("timestamp", "timestamp_ntz") and by_column[time]:
        times = source.ask(lambda c: _event_times(c, stream.stream_id, kept))
        kept = [s for s in kept if _may_be(by_column[time], *times[s.first_clock, s.last_clock])]
    return kept


def _may_be(filters: Sequence[Filter], low: int | None, high: int | None) -> bool:
    """Return whether a value from `low` to `high` may pass all filters. A bound None is unknown."""
    if low is None or high is None:
        return True
    for one in filters:
        value = getattr(one, "value", None)
        if isinstance(one, EqualNullSafe) and value is None:
            continue  # rows without a value are in no bounds
        if isinstance(one, EqualTo | EqualNullSafe | In):
            values = one.value if isinstance(one, In) else (value,)
            if all(v is None or not low <= _number(v) <= high for v in values):
                return False
        elif value is None:
            continue
        elif (
            (isinstance(one, GreaterThan) and high <= _number(value))
            or (isinstance(one, GreaterThanOrEqual) and high < _number(value))
            or (isinstance(one, LessThan) and low >= _number(value))
            or (isinstance(one, LessThanOrEqual) and low > _number(value))
        ):
            return False
    return True


def _number(value: object) -> int:
    """Return a value as Weir's metadata has it: times in microseconds since 1970 UTC."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (aware - EPOCH) // timedelta(microseconds=1)
    assert isinstance(value, int)
    return value


def _of_offsets(part: FileSlice, filters: Sequence[Filter]) -> FileSlice | None:
    """Return the rows of a slice whose offsets may pass the filters; None if there are none."""
    first, last = part.start_offset + part.first_row, part.start_offset + part.end_row - 1
    if not _may_be(filters, first, last):
        return None
    for one in filters:
        value = getattr(one, "value", None)
        if isinstance(one, EqualTo | GreaterThanOrEqual | GreaterThan) and value is not None:
            first = max(first, value)
        if isinstance(one, EqualTo | LessThanOrEqual | LessThan) and value is not None:
            last = min(last, value)
    if first > last:
        return None
    return part._replace(first_row=first - part.start_offset, end_row=last - part.start_offset + 1)


def _may_have(filters: Sequence[Filter], part: FileSlice) -> bool:
    """Return whether a file may have one of the routing keys that the filters ask for."""
    for one in filters:
        if not isinstance(one, EqualTo | EqualNullSafe | In):
            continue
        values = one.value if isinstance(one, In) else (one.value,)
        if any(not isinstance(v, str) for v in values):
            continue
        places = [routing_steps(v.encode()) / STEPS for v in values]
        if not any(part.key_low <= place < part.key_high for place in places):
            return False
    return True


def _event_times(
    connection: Connection, stream_id: int, slices: Sequence[FileSlice]
) -> dict[tuple[int, int], tuple[int | None, int | None]]:
    """Return by first and last clock the least and the greatest event time of these commits."""
    # What is no event time to Weir, such as 9999-12-31, is in no bounds, so all must be some.
    return {
        both: (row.low, row.high) if row.known and not row.untimed else (None, None)
        for both, row in ranges_of(connection, stream_id, slices).items()
    }
