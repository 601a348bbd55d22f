"""Event times as starting points: the commits between which the events of some event times lie.

Events of one event time may be in any commit, so an event time is no place in a stream. What is
recorded of each commit is the range of its event times (semantics 8.4). That gives the last commit
before all that may hold an event time, and the last commit that may. Ranges that are not recorded,
or that are of another event time, may hold any.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta

from sqlalchemy import Connection

from weir.controller.locks import LockedStream
from weir.controller.times import parse_time
from weir.errors import InvalidInput
from weir.model.clock import EPOCH
from weir.model.event_time import say_time
from weir.model.stream_cut import StreamCut
from weir.queries.reader_groups import event_time_points as sql

_WRITTEN = re.compile(r"event\s+time\b(.*)", re.DOTALL)


def event_time_of(written: str) -> int | None:
    """Return the event time that a starting point names, in microseconds since 1970 UTC; None if it
    names none. Raises InvalidInput for what is not a time."""
    found = _WRITTEN.fullmatch(written.strip())
    if found is None:
        return None
    return (parse_time(found[1]) - EPOCH) // timedelta(microseconds=1)


def commits_at(
    connection: Connection, streams: Sequence[LockedStream], event_time: int, *, as_end: bool
) -> dict[int, sql.CommitPlace]:
    """Return the place of an event time in each of the locked streams, by stream id: the time of a
    commit (1970: before the first one), and the cut that was the tail then.

    No committed event at or after the time lies before it; with `as_end`, no committed event before
    the time lies after it. Raises InvalidInput for a stream without an event time.
    """
    rows = sql.commits_at(
        connection, ids=[s.stream_id for s in streams], event_time=event_time, as_end=as_end
    )
    names = {stream.stream_id: stream.name for stream in streams}
    for row in rows:
        if row.event_time is None:
            raise InvalidInput(
                "argument_invalid",
                f"event time {say_time(event_time)} is no place in stream {names[row.stream_id]}, "
                "which has no event time; name the time of a commit (time ...) instead.",
            )
    return {row.stream_id: row for row in rows}


def say_between(
    connection: Connection,
    streams: Sequence[LockedStream],
    starts: Mapping[int, StreamCut],
    ends: Mapping[int, StreamCut],
    *written: str,
) -> list[str]:
    """Return a line per stream that says how many events a group reads between a start and an end
    (or the tail), if an event time is `written`."""
    if all(event_time_of(one) is None for one in written):
        return []
    here = [s for s in streams if s.stream_id in starts]
    cuts = [
        {
            "s": s.stream_id,
            "start": starts[s.stream_id].to_json(),
            "past": ends[s.stream_id].to_json() if s.stream_id in ends else None,
        }
        for s in here
    ]
    rows = sql.between(connection, cuts=json.dumps(cuts))
    found = {row.stream_id: row.events for row in rows}
    return [_between(str(s.name), found[s.stream_id]) for s in here]


def _between(stream: str, events: int) -> str:
    if not events:
        return f"no event of stream {stream} lies there by its event time"
    if events == 1:
        return (
            f"1 event of stream {stream} lies there, in a whole commit, so it may have another "
            "event time; let the function leave it out: events.where(...)"
        )
    return (
        f"{events:,} events of stream {stream} lie there, in whole commits, so some may "
        "have other event times; let the function leave those out: events.where(...)"
    )
