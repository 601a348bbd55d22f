"""Read exactly the events of a span of event times (semantics 8.4): whole commits that may have
some, without the files that have none, and of these the rows whose event time lies in it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from weir.controller.locks import StreamRow
from weir.controller.read_plan import FileSlice
from weir.controller.times import Moment, Span, parse_span
from weir.errors import InvalidInput
from weir.front_ends import do
from weir.kernel.matching import Matching, with_event_time
from weir.kernel.schema import to_read
from weir.model.clock import EPOCH
from weir.model.event_time import FIRST, PAST
from weir.model.schema import Field
from weir.queries.controller import event_times as sql
from weir.queries.reader_groups import event_time_points as points


class EventSpan(NamedTuple):
    """Event times in microseconds since 1970 UTC: at or after `low` and before `high`."""

    low: int
    high: int

    def files(
        self, connection: Connection, stream_id: int, slices: Sequence[FileSlice]
    ) -> list[FileSlice]:
        """Return the slices whose commits may have such an event."""
        ranges = ranges_of(connection, stream_id, slices)
        return [one for one in slices if self._may_have(ranges[one.first_clock, one.last_clock])]

    def _may_have(self, of: sql.TimeRange) -> bool:
        if not of.known:
            return True
        return of.low is not None and of.high is not None and self.low <= of.high and (
            of.low < self.high
        )  # fmt: skip

    def commits(self, connection: Connection, stream: StreamRow, asked: Span) -> Span:
        """Return the times between which all commits lie that may have such an event, within what
        is asked for. Raises InvalidInput for a stream without an event time."""
        since, until = asked
        places = []
        for at, as_end in ((self.low, False), (self.high, True)):
            [place] = points.commits_at(
                connection, ids=[stream.stream_id], event_time=at, as_end=as_end
            )
            places.append(place.at)
        if self.low > FIRST:
            since = max(since or places[0], places[0])
        if self.high < PAST:
            until = min(until or places[1], places[1])
        return Span(since, max(until, since) if until and since else until)

    def matching(self, stream: StreamRow, fields: list[Field]) -> Matching:
        """Return what says of rows with these columns whether they are such events."""
        text = stream.configuration.event_time
        if text is None:
            raise InvalidInput(
                "argument_invalid",
                f"stream {stream.name} has no event time, so no event lies between event times; "
                f"{do('update_stream', stream=str(stream.name), event_time='COLUMN')}, or filter "
                "the rows by a column.",
            )
        return with_event_time(stream.name, text, to_read(fields), *self)


def event_span(since: Moment | None, until: Moment | None) -> EventSpan | None:
    """Return the span of two event times; None without any. Raises InvalidInput for what is no
    time, and if `since` is later."""
    if since is None and until is None:
        return None
    span = parse_span(since, until)
    low, high = (None if at is None else _micros(at) for at in span)
    return EventSpan(max(FIRST, FIRST if low is None else low),
                     min(PAST, PAST if high is None else high))  # fmt: skip


def _micros(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def ranges_of(
    connection: Connection, stream_id: int, slices: Sequence[FileSlice]
) -> dict[tuple[int, int], sql.TimeRange]:
    """Return the event times of the commits of files, by their first and last clocks."""
    clocks = sorted({(one.first_clock, one.last_clock) for one in slices})
    firsts, lasts = [one[0] for one in clocks], [one[1] for one in clocks]
    rows = sql.ranges(connection, stream_id=stream_id, firsts=firsts, lasts=lasts)
    return dict(zip(clocks, rows, strict=True))
