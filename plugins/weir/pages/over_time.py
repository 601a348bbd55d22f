"""Numbers over time, of which only the value of now and its changes are known: what a stream kept,
and what a reader group had not read. Each change of one is told, of a stream or group that began a
minute ago too; `weir.pages.timeline` has several by what is recorded, in parts of five minutes.
Neither can stand on the other: a record may be five minutes old, and to count commits back over
weeks is too dear."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from weir.errors import InvalidInput, NotFound
from weir.model.clock import clock_time, say_time
from weir.model.names import StreamName
from weir.queries.pages import over_time as sql

STREAMS = 8  # of a group, each of which has a chart: those with most unread events
BINS = 240  # parts of a time in which changes are one


@dataclass(frozen=True)
class Unread:
    """How many events of a stream were unread: `events[i]` from `at[i]` on."""

    stream: str
    at: list[datetime]
    events: list[int]


@dataclass(frozen=True)
class Kept:
    """The bytes that a stream kept, `kept[i]` from `at[i]` on, and those that were truncated by
    then; `next_time`: what of those of now the next retention truncates."""

    at: list[datetime]
    kept: list[int]
    truncated: list[int]
    next_time: int


def unread_over_time(
    connection: Connection, reader_group: str, since: int | None = None, until: int | None = None
) -> list[Unread]:
    """Return what a group had not read over time, of the `STREAMS` with most. It is what is unread
    now, counted back by what was appended and what batches have read since, as far as batches are
    recorded. Two statements, and two for each stream.

    Raises NotFound for the group, and InvalidInput if nothing is known between the times.
    """
    group = sql.known_group(connection, name=reader_group)
    if group is None:
        raise NotFound(
            "group_not_found", f"there is no reader group {reader_group}; check its name."
        )
    begin = group.known if since is None else max(since, group.known)
    end = group.now if until is None else min(until, group.now)
    if begin >= end:
        raise InvalidInput(
            "time_invalid",
            f"nothing is recorded of {reader_group} between these times: give a time to begin with "
            "that is before the one to end with, between "
            f"{say_time(group.known)} and {say_time(group.now)} UTC.",
        )
    unread = []
    width = width_of_bin(begin, group.now)
    for one in sql.most_unread(connection, name=reader_group, most=STREAMS):
        id = one.stream_id
        came = sql.came(connection, begin=begin, id=id, width=width)
        read = sql.read(connection, group_id=group.group_id, begin=begin, id=id, width=width)
        changes = [(c.clock, c.events) for c in came] + [(r.clock, -r.amount) for r in read]
        unread.append(Unread(one.stream, *_counted_back(one.unread_events, begin, end, changes)))
    return unread


def kept_over_time(connection: Connection, stream: StreamName, begin: int, end: int) -> Kept:
    """Return what a stream kept between two times, and what retention took away since the first.
    Three statements."""
    name = str(stream)
    now = sql.retained(connection, stream=name)
    came = sql.came(connection, id=now.stream_id, begin=begin, width=width_of_bin(begin, end))
    gone = sql.truncated(connection, stream=name, begin=begin)
    whole = sum(one.amount for one in gone)
    more = [(c.clock, c.bytes) for c in came] + [(g.clock, -g.amount) for g in gone]
    less = [(c.clock, 0) for c in came] + [(g.clock, g.amount) for g in gone]  # at the same times
    at, kept = _counted_back(now.kept, begin, end, more)
    _, truncated = _counted_back(whole, begin, end, less)
    return Kept(at, kept, truncated, now.next_time or 0)


def width_of_bin(begin: int, end: int) -> int:
    """Return the length of each of the `BINS` parts of a time."""
    return max(-(-(end - begin) // BINS), 1)


def _counted_back(
    now: int, begin: int, end: int, changes: Iterable[tuple[int, int]]
) -> tuple[list[datetime], list[int]]:
    """Return a number over time, from each time on, by what it is now and its (clock, change)."""
    changes = sorted(changes, key=lambda one: one[0])
    value = now - sum(amount for _, amount in changes)
    clocks, values = [begin], [max(value, 0)]
    for clock, amount in changes:
        value += amount
        if clock <= end:
            clocks.append(clock)
            values.append(max(value, 0))
    return [clock_time(clock) for clock in [*clocks, end]], [*values, values[-1]]
