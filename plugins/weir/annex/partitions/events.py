"""How many events of a commit came late for their hour or day of event time."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from weir.controller.locks import no_such_stream
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.kernel.event_time import times_of
from weir.kernel.transforms import Computation
from weir.model.clock import clock_time
from weir.model.names import stream_name
from weir.model.transform_nodes import Transform
from weir.model.transforms import value_of
from weir.programs.opening import shared
from weir.queries.annex.partitions import events as sql

_MICROSECOND = timedelta(microseconds=1)
MOST = 100  # commits whose files are read to find where hours begin


def late_partitions(
    database: Database, stream: str, span: int, number: int, before: int, bound: int
) -> tuple[dict[int, int | None], int]:
    """Return how many events of a transaction are of hours or days that end by an event time, by
    where these begin, and how many are of those that begin before `bound`. None: some, of which
    Weir does not compute the event times any more. All in microseconds."""
    commit = _commit_of(database, stream, number)
    if commit.time is None:
        first = max(commit.min_event_time, bound) // span
        last = min(commit.max_event_time, before - 1) // span
        return {n * span: None for n in range(first, last + 1)}, 0
    times = _times(commit)
    counted: dict[int, int | None] = {}
    far = 0
    for row in pc.value_counts(pc.subtract(times, _remainder(times, span))).to_pylist():
        begin, count = row["values"], row["counts"]
        if begin is not None and begin + span <= before:
            if begin < bound:
                far += count
            else:
                counted[begin] = count
    return counted, far


def first_after(database: Database, stream: str, numbers: Sequence[int], bound: int) -> int | None:
    """Return the first event time at or after `bound` of some transactions; `bound` itself if it
    can't be computed, or if they are too many to read; None if there is none."""
    first: int | None = None
    if len(numbers) > MOST:
        return bound
    for number in numbers:
        commit = _commit_of(database, stream, number)
        if commit.time is None:
            return bound
        times = _times(commit)
        found = pc.min(pc.filter(times, pc.greater_equal(times, bound))).as_py()
        first = found if first is None or (found is not None and found < first) else first
    return first


class _Commit(NamedTuple):
    stream: str
    time: Transform | None
    clock: int
    min_event_time: int
    max_event_time: int


def _commit_of(database: Database, stream: str, number: int) -> _Commit:
    commit = database.transaction(lambda c: sql.commit(c, stream=stream, number=number))
    if commit is None:
        raise no_such_stream(stream_name(stream))
    time = _computable(commit.event_time)
    return _Commit(stream, time, commit.clock, commit.min_event_time, commit.max_event_time)


def _times(commit: _Commit) -> pa.ChunkedArray:
    assert commit.time is not None, commit
    at = clock_time(commit.clock)
    columns = list(commit.time.columns)
    rows = shared().read(commit.stream, since=at - _MICROSECOND, until=at, columns=columns)
    return _times_of(commit.time, rows)


def _computable(event_time: str | None) -> Transform | None:
    """Return the event time of a stream; None if it has none that Weir still computes."""
    with suppress(InvalidInput):
        return value_of(event_time or "", "event time")
    return None


def _times_of(time: Transform, rows: pa.Table) -> pa.ChunkedArray:
    return times_of(Computation.of(time, rows.schema, "event time").over(rows).values)


def _remainder(times: pa.ChunkedArray, span: int) -> pa.ChunkedArray:
    """Return how far each time is after the beginning of its partition, also before 1970."""
    rest = pc.subtract(times, pc.multiply(pc.divide(times, span), span))
    return pc.if_else(pc.less(rest, 0), pc.add(rest, span), rest)
